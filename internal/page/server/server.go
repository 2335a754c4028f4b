// Package server serves the page and the images that it is given, to this computer
// alone unless another address is given, and nothing else of the disk.
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
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
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
	// frames are the sites that may put the page into a frame.
	frames []string
	// address is one more address to listen at; if it is not valid, only this computer's own names are served.
	address netip.Addr
	// lessons are the files of lessons, lessonNames their names.
	lessons     [][]byte
	lessonNames []string
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

// AddLesson adds the file of a lesson.
func (s *Server) AddLesson(name string, file []byte) {
	s.lessons, s.lessonNames = append(s.lessons, file), append(s.lessonNames, printable.Name(name))
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

// Frame allows a site to put the page into a frame: an origin, such as https://course.example.
func (s *Server) Frame(origin string) error {
	u, err := url.Parse(origin)
	if err != nil || (u.Scheme != "https" && u.Scheme != "http") || !hostName.MatchString(u.Host) || u.User != nil || strings.Trim(u.Path, "/") != "" || strings.ContainsAny(origin, "?#") {
		return fmt.Errorf("%q is no origin: write a site as https://course.example or http://localhost:8000, without a path", origin)
	}
	s.frames = append(s.frames, u.Scheme+"://"+strings.ToLower(u.Host))
	return nil
}

// hostName is the host of an origin with its port: it cannot be a pattern or a word of the header.
var hostName = regexp.MustCompile(`^([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?$`)

// ErrAddress is a text that is no IP address.
var ErrAddress = errors.New("no IP address")

// ListenAt opens a port of an IP address of this computer; 0.0.0.0 or :: means all of its addresses. Other computers
// can then have the page and the images.
func (s *Server) ListenAt(address string, port int) (net.Listener, error) {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return nil, fmt.Errorf("%q is %w: write one of this computer, or 0.0.0.0 for all of them", address, ErrAddress)
	}
	l, err := net.Listen("tcp", net.JoinHostPort(ip.String(), strconv.Itoa(port)))
	if err != nil {
		return nil, err
	}
	s.address = ip
	return l, nil
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
	if !s.answersTo(r.Host) { // another site's name that leads here
		http.Error(w, "this server does not answer to this name: use the address that it has printed", http.StatusForbidden)
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
	if len(s.frames) > 0 && r.URL.Path == "/" {
		w.Header().Set("Content-Security-Policy", "frame-ancestors "+strings.Join(s.frames, " "))
		w.Header().Set("Cross-Origin-Resource-Policy", "cross-origin")
	}
	switch n, isImage := s.number(r.URL.Path); {
	case r.URL.Path == "/":
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(s.page) // a client that has gone
	case r.URL.Path == "/images":
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(s.list)
	case r.URL.Path == "/lessons":
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(append([]string{}, s.lessonNames...))
	case s.lesson(r.URL.Path) != nil:
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(s.lesson(r.URL.Path))
	case isImage:
		w.Header().Set("Content-Type", "application/octet-stream")
		http.ServeContent(w, r, "", time.Time{}, io.NewSectionReader(s.images[n], 0, s.list[n].Size))
	default:
		http.NotFound(w, r)
	}
}

// lesson is the file that a path names: /lesson/0 is the first; nil for none.
func (s *Server) lesson(path string) []byte {
	for n, file := range s.lessons {
		if path == fmt.Sprintf("/lesson/%d", n) {
			return file
		}
	}
	return nil
}

// number returns the number of the image that a path names: /image/0 is the first.
func (s *Server) number(path string) (int, bool) {
	for n := range s.images {
		if path == fmt.Sprintf("/image/%d", n) {
			return n, true
		}
	}
	return 0, false
}

// answersTo reports whether a request was made by one of this computer's own names, or by the address at which it
// listens. No other site has an IP address for its name.
func (s *Server) answersTo(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if host == "localhost" || host == "127.0.0.1" {
		return true
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && s.address.IsValid() && (ip == s.address || s.address.IsUnspecified())
}
