// Package server serves the page and the images that it is given, to this computer
// alone, and nothing else of the disk.
//
// It must not know what is in them.
package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"kprobelab/internal/bounded"
	"kprobelab/internal/printable"
)

// Server has the page and the images.
type Server struct {
	page   []byte
	images []*os.File
	// list has the images' names and sizes, in the form that the page requests.
	list []image
}

type image struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
}

// root is the page's first element. servedRoot says that the page came from this server: only such a
// page requests images.
const (
	root       = `<html lang="en">`
	servedRoot = `<html lang="en" data-served="1">`
)

// New reads the page and opens the images; a name stands for the file that it is
// now. The caller closes the Server.
func New(page string, images []string) (*Server, error) {
	b, err := bounded.ReadFile(page, bounded.PageFile)
	if err != nil {
		return nil, err
	}
	s := &Server{page: bytes.Replace(b, []byte(root), []byte(servedRoot), 1), list: []image{}}
	for _, name := range images {
		if err := s.add(name); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

func (s *Server) add(name string) error {
	f, err := bounded.Open(name)
	if err != nil {
		return err
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = fmt.Errorf("%s is no file", name)
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	s.images = append(s.images, f)
	s.list = append(s.list, image{printable.Name(filepath.Base(name)), st.Size()})
	return nil
}

// Close closes the images.
func (s *Server) Close() error {
	var err error
	for _, f := range s.images {
		err = errors.Join(err, f.Close())
	}
	return err
}

// Listen opens a port of the loopback interface, any free one for 0.
func Listen(port int) (net.Listener, error) {
	return net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
}

// Serve answers until the listener is closed.
func (s *Server) Serve(l net.Listener) error {
	h := &http.Server{Handler: s, ReadTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 64 << 10}
	return h.Serve(l)
}

// headers go with every answer. The page itself says what it may load; only a header
// can forbid other pages to frame it.
var headers = map[string]string{
	"Cache-Control":                "no-store",
	"Content-Security-Policy":      "frame-ancestors 'none'",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Referrer-Policy":              "no-referrer",
	"X-Content-Type-Options":       "nosniff",
}

// ServeHTTP answers what the page asks.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !local(r.Host) { // another site's name that leads here
		http.Error(w, "this server is for this computer alone", http.StatusForbidden)
		return
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site == "cross-site" && r.URL.Path != "/" { // a link to the page is no harm
		http.Error(w, "the images are for this page alone", http.StatusForbidden)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		http.Error(w, "there is only GET here", http.StatusMethodNotAllowed)
		return
	}
	for name, value := range headers {
		w.Header().Set(name, value)
	}
	switch n, isImage := s.number(r.URL.Path); {
	case r.URL.Path == "/":
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(s.page) // a client that has gone
	case r.URL.Path == "/images":
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(s.list)
	case isImage:
		w.Header().Set("Content-Type", "application/octet-stream")
		http.ServeContent(w, r, "", time.Time{}, io.NewSectionReader(s.images[n], 0, s.list[n].Size))
	default:
		http.NotFound(w, r)
	}
}

// number is which image a path names: /image/0 is the first.
func (s *Server) number(path string) (int, bool) {
	for n := range s.images {
		if path == fmt.Sprintf("/image/%d", n) {
			return n, true
		}
	}
	return 0, false
}

// local reports whether a request was made to this computer by its own names.
func local(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return host == "localhost" || host == "127.0.0.1"
}
