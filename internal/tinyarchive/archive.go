package tinyarchive

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/clearsign"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
)

// Key signs.
type Key struct{ entity *openpgp.Entity }

// NewKey makes a key.
func NewKey() *Key {
	e, err := openpgp.NewEntity("archive", "", "archive@example.org", &packet.Config{Algorithm: packet.PubKeyAlgoEdDSA})
	must(err)
	return &Key{e}
}

// Public is the key for whoever checks, as text.
func (k *Key) Public() []byte {
	var b bytes.Buffer
	w, err := armor.Encode(&b, openpgp.PublicKeyType, nil)
	must(err)
	must(k.entity.Serialize(w))
	must(w.Close())
	return b.Bytes()
}

// Sign puts signatures around a text.
func Sign(text string, keys ...*Key) []byte {
	var b bytes.Buffer
	var private []*packet.PrivateKey
	for _, k := range keys {
		private = append(private, k.entity.PrivateKey)
	}
	w, err := clearsign.EncodeMulti(&b, private, nil)
	must(err)
	_, err = w.Write([]byte(text))
	must(err)
	must(w.Close())
	return b.Bytes()
}

// SignBeside is a signature beside a text.
func (k *Key) SignBeside(text string) []byte {
	var b bytes.Buffer
	must(openpgp.ArmoredDetachSign(&b, k.entity, bytes.NewReader([]byte(text)), nil))
	return b.Bytes()
}

// Archive is an archive of packages, served over HTTP.
type Archive struct {
	Key *Key
	// URL is its address.
	URL string

	mu    sync.Mutex
	files map[string][]byte
	asked map[string]int
	// cut ends the connection of the next answers after so many bytes.
	cut []int64
}

// Serve makes an empty archive. The server ends with stop.
func Serve() (a *Archive, stop func()) {
	a = &Archive{Key: NewKey(), files: map[string][]byte{}, asked: map[string]int{}}
	s := httptest.NewServer(a)
	a.URL = s.URL + "/debian"
	return a, s.Close
}

// Put serves bytes under a path below the address.
func (a *Archive) Put(path string, b []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.files["/debian/"+path] = b
}

// Get has what is served under a path.
func (a *Archive) Get(path string) []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.files["/debian/"+path]
}

// Hide serves nothing under a path any more.
func (a *Archive) Hide(path string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.files, "/debian/"+path)
}

// Beside serves a suite's signature beside its index, as older archives do.
func (a *Archive) Beside(suite string) {
	text := a.list(suite)
	a.Hide("dists/" + suite + "/InRelease")
	a.Put("dists/"+suite+"/Release", []byte(text))
	a.Put("dists/"+suite+"/Release.gpg", a.Key.SignBeside(text))
}

// ByHash serves a suite's list of packages under its checksum alone.
func (a *Archive) ByHash(suite string) {
	name := "dists/" + suite + "/main/binary-amd64/Packages.gz"
	b := a.Get(name)
	a.Put("dists/"+suite+"/main/binary-amd64/by-hash/SHA256/"+Sum(b), b)
	a.Put("dists/"+suite+"/InRelease", Sign("Acquire-By-Hash: yes\n"+a.list(suite), a.Key))
	a.Hide(name)
}

// list is the text of a suite's index.
func (a *Archive) list(suite string) string {
	name := "main/binary-amd64/Packages.gz"
	return ReleaseText(suite, name, a.Get("dists/"+suite+"/"+name))
}

// Replace serves other bytes as a package, with the checksum that the suite's list then has.
func (a *Archive) Replace(suite string, d *Deb, b []byte) {
	d.whole = b
	a.Suite(suite, d, &Deb{Name: "linux-image-cloud-amd64", Version: "1", Fields: "Depends: " + d.Name + "\n"})
}

// Asked is how often a path was asked for.
func (a *Archive) Asked(path string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.asked["/debian/"+path]
}

// Cut breaks the connection of each of the next answers after so many bytes.
func (a *Archive) Cut(after ...int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cut = append(a.cut, after...)
}

// Suite serves a suite with these packages, signed.
func (a *Archive) Suite(suite string, debs ...*Deb) {
	var list bytes.Buffer
	for _, d := range debs {
		b, path := d.Bytes(), "pool/"+d.Name+"_"+d.Version+"_amd64.deb"
		a.Put(path, b)
		fmt.Fprintf(&list, "%s\nFilename: %s\nSize: %d\nSHA256: %s\n\n", bytes.TrimSpace([]byte(d.control())), path, len(b), Sum(b))
	}
	packed := Pack("gz", list.Bytes())
	name := "main/binary-amd64/Packages.gz"
	a.Put("dists/"+suite+"/"+name, packed)
	a.Put("dists/"+suite+"/InRelease", Sign(ReleaseText(suite, name, packed), a.Key))
}

// ReleaseText is an index of a suite with one file.
func ReleaseText(suite, name string, b []byte) string {
	return fmt.Sprintf("Origin: Debian\nSuite: stable\nCodename: %s\nDate: %s\nSHA256:\n %s %d %s\n",
		suite, time.Now().UTC().Format(time.RFC1123), Sum(b), len(b), name)
}

// Sum is a checksum, SHA-256 in hexadecimal.
func Sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// ServeHTTP implements http.Handler. It knows ranges.
func (a *Archive) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	b, ok := a.files[r.URL.Path]
	a.asked[r.URL.Path]++
	var cut int64 = -1
	if ok && len(a.cut) > 0 {
		cut, a.cut = a.cut[0], a.cut[1:]
	}
	a.mu.Unlock()
	if !ok {
		http.NotFound(w, r)
		return
	}
	if cut >= 0 {
		w = &broken{w, cut}
	}
	w.Header().Set("ETag", `"`+Sum(b)[:16]+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(b))
}

// broken ends its connection after some bytes.
type broken struct {
	http.ResponseWriter
	left int64
}

func (b *broken) Write(p []byte) (int, error) {
	if int64(len(p)) <= b.left {
		b.left -= int64(len(p))
		return b.ResponseWriter.Write(p)
	}
	_, _ = b.ResponseWriter.Write(p[:b.left])
	_ = http.NewResponseController(b.ResponseWriter).Flush()
	panic(http.ErrAbortHandler)
}
