package kernels

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"kprobelab/internal/bounded"
	"kprobelab/internal/debian"
	"kprobelab/internal/download"
	"kprobelab/internal/unpack"
)

// ErrMirror: the system's configuration does not name Debian's archive.
var ErrMirror = errors.New("apt's sources name no mirror of Debian's; --mirror URL (or KPROBELAB_MIRROR) does")

// origins are the archives from which suites are fetched, and the keys that sign them.
type origins struct {
	debian.Mirrors
	rings map[*debian.Source]*debian.Keyring
}

// proxy returns the proxy that apt's configuration names for a scheme.
func (s *Store) proxy(scheme string) string {
	return debian.Configuration(s.o.Root)["acquire::"+scheme+"::proxy"]
}

// find returns the archives from which suites are fetched.
func (s *Store) find() (*origins, error) {
	if s.origins != nil {
		return s.origins, nil
	}
	o := &origins{rings: map[*debian.Source]*debian.Keyring{}}
	mirror := s.o.Mirror
	if mirror == "" {
		mirror = os.Getenv("KPROBELAB_MIRROR")
	}
	if mirror != "" {
		scheme, _, ok := strings.Cut(mirror, "://")
		if !ok || !slices.Contains(download.Schemes, scheme) {
			return nil, fmt.Errorf("%q is no address of a mirror, as http://deb.debian.org/debian", mirror)
		}
		o.Main = &debian.Source{URI: mirror}
		// Apt's settings are about the system's archive, and this is one by another way.
		o.Main.Expired = !debian.Configuration(s.o.Root).Bool("Acquire::Check-Valid-Until", true)
	} else {
		list, err := s.sources()
		if err != nil {
			return nil, err
		}
		o.Mirrors = debian.Debian(list)
	}
	if o.Main == nil {
		return nil, ErrMirror
	}
	s.origins = o
	return o, nil
}

// sources returns the user's own sources of packages, or the system's.
func (s *Store) sources() ([]debian.Source, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return debian.SystemSources(s.o.Root), nil
	}
	for _, name := range []string{"debian.sources", "debian.list"} {
		list, err := debian.ReadSources(filepath.Join(dir, "kprobelab", name))
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return list, err
		}
	}
	return debian.SystemSources(s.o.Root), nil
}

// ring has the keys of a source.
func (s *Store) ring(o *origins, from *debian.Source) (*debian.Keyring, error) {
	if r := o.rings[from]; r != nil {
		return r, nil
	}
	var r *debian.Keyring
	var err error
	switch {
	case len(s.o.Keyrings) > 0:
		r, err = debian.ReadKeyring(s.o.Keyrings...)
	case from.Key != "":
		r, err = debian.ParseKeyring(from.Key)
	default:
		r, err = debian.ReadKeyring(from.KeyFiles(s.o.Root)...)
	}
	if err == nil {
		o.rings[from] = r
	}
	return r, err
}

// security reports whether a suite has updates of its own in the archive of security updates.
func security(suite string) bool {
	switch suite {
	case "sid", "unstable", "testing", "experimental":
		return false
	}
	return !strings.HasSuffix(suite, "-backports") && !strings.HasSuffix(suite, "-updates") && !strings.HasSuffix(suite, "-security")
}

// list returns the wanted packages of suites, security updates included. A suite that the mirror
// lacks, or whose index is too old, is an error only if it is the only one. An old index is reported.
func (s *Store) list(ctx context.Context, suites []string, kind string, wanted func(string) bool) (*debian.List, error) {
	o, err := s.find()
	if err != nil {
		return nil, err
	}
	l, found := debian.NewList(), 0
	var lacks error
	for _, suite := range suites {
		of, err := s.suite(ctx, o, o.Main, suite, kind, wanted)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			lacks = fmt.Errorf("%s has no suite %s: %w", o.Main.URI, strings.Join(suites, " or "), err)
			continue
		case errors.Is(err, debian.ErrOld) && len(suites) > 1:
			s.say("kernels of %s are not looked for: %v", suite, err)
			lacks = err
			continue
		case err != nil:
			return nil, err
		}
		l.Add(of)
		found++
		if o.Security == nil || !security(suite) {
			continue
		}
		of, err = s.suite(ctx, o, o.Security, suite+"-security", kind, wanted)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		l.Add(of)
	}
	if found == 0 && lacks != nil {
		return nil, lacks
	}
	return l, nil
}

// allPackages is the kind of a list that has all of a suite.
const allPackages = "all"

// lasts is the time for which a fetched index is used.
const lasts = 24 * time.Hour

// kept is a list of packages in the cache.
type kept struct {
	Packages []*debian.Package
}

// suite returns a suite's packages, from the cache or the archive.
func (s *Store) suite(ctx context.Context, o *origins, from *debian.Source, suite, kind string, wanted func(string) bool) ([]*debian.Package, error) {
	base := strings.TrimSuffix(from.URI, "/")
	at := sha256.Sum256([]byte(base + " " + strings.Join(s.o.Keyrings, " ")))
	name := filepath.Join(s.o.Dir, indexDir, fmt.Sprintf("%s-%s-%s.json", suite, kind, hex.EncodeToString(at[:6])))
	unlock, err := s.lock(ctx, filepath.Base(name))
	if err != nil {
		return nil, err
	}
	defer unlock()
	st, err := os.Stat(name)
	if err == nil && (s.o.Offline || (!s.o.Refresh || s.fresh[name]) && s.now().Sub(st.ModTime()) < lasts) {
		var k kept
		if b, err := bounded.ReadFile(name, bounded.PackageIndex); err == nil && json.Unmarshal(b, &k) == nil {
			return k.Packages, nil
		}
	}
	if s.o.Offline {
		return nil, fmt.Errorf("the index of %s: %w", suite, ErrOffline)
	}
	if !s.told[base] {
		s.told[base] = true
		s.say("fetching indexes from %s", base)
	}
	list, err := s.fetchSuite(ctx, o, from, base, suite, wanted)
	if err != nil {
		return nil, err
	}
	s.fresh[name] = true
	if kind == allPackages {
		return list, nil // some ten MB, of use once
	}
	b, err := json.Marshal(kept{list})
	if err == nil {
		err = os.MkdirAll(filepath.Dir(name), 0o755)
	}
	if err == nil {
		err = replace(name, b)
	}
	return list, err
}

// replace writes a file as a whole.
func replace(name string, b []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// fetchSuite fetches and checks a suite's index and its list of packages.
func (s *Store) fetchSuite(ctx context.Context, o *origins, from *debian.Source, base, suite string, wanted func(string) bool) ([]*debian.Package, error) {
	ring, err := s.ring(o, from)
	if err != nil {
		return nil, err
	}
	dist := base + "/dists/" + suite
	text, err := s.signed(ctx, ring, dist)
	if err != nil {
		return nil, err
	}
	r, err := debian.ParseRelease(text)
	if err == nil {
		err = r.Of(suite, s.now(), from.Expired)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dist, err)
	}
	name, sum, ok := r.Packages("main")
	if !ok {
		return nil, fmt.Errorf("%s: %w: it has no list of packages for amd64", dist, debian.ErrIndex)
	}
	if sum.Size > bounded.PackageIndex {
		return nil, fmt.Errorf("%s: %w: its list of packages has %d bytes", dist, debian.ErrIndex, sum.Size)
	}
	file, err := s.client.Fetch(ctx, dist+"/"+r.Path(name, sum), sum.SHA256, sum.Size, filepath.Join(s.o.Dir, partsDir), "index of "+suite)
	if r.ByHash && errors.Is(err, fs.ErrNotExist) {
		file, err = s.client.Fetch(ctx, dist+"/"+name, sum.SHA256, sum.Size, filepath.Join(s.o.Dir, partsDir), "index of "+suite)
	}
	if err != nil {
		return nil, err
	}
	defer os.Remove(file)
	f, err := bounded.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := unpack.Stream(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dist+"/"+name, err)
	}
	defer z.Close()
	list, err := debian.ReadPackages(z, base, wanted)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dist+"/"+name, err)
	}
	return list, nil
}

// signed fetches the signed text of a suite: InRelease, or Release with its signature beside it.
func (s *Store) signed(ctx context.Context, ring *debian.Keyring, dist string) ([]byte, error) {
	text, err := s.client.Get(ctx, dist+"/InRelease", bounded.SignedIndex)
	if err == nil {
		if text, err = ring.Inline(text, s.now()); err != nil {
			err = fmt.Errorf("%s: %w", dist+"/InRelease", err)
		}
		return text, err
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	text, err = s.client.Get(ctx, dist+"/Release", bounded.SignedIndex)
	if err != nil {
		return nil, err
	}
	signature, err := s.client.Get(ctx, dist+"/Release.gpg", bounded.SignedIndex)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w: there is none", dist+"/Release", debian.ErrSignature)
	}
	if err != nil {
		return nil, err
	}
	if err := ring.Detached(text, signature, s.now()); err != nil {
		return nil, fmt.Errorf("%s: %w", dist+"/Release", err)
	}
	return text, nil
}
