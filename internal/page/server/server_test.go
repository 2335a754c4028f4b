package server_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/page/server"
)

// folder has a page, two images and a file that is neither.
func folder(t *testing.T) (dir string, s *server.Server) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range map[string]string{"page.html": "the page", "a.elf": "image a", "b\x1b.elf": "image b", "secret": "a secret"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	s, err := server.New(filepath.Join(dir, "page.html"), []string{filepath.Join(dir, "a.elf"), filepath.Join(dir, "b\x1b.elf")})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return dir, s
}

func get(s *server.Server, method, path, host string) (int, string) {
	r := httptest.NewRequest(method, "http://x/", nil)
	r.URL.Path, r.Host = path, host
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func TestServesThePageAndItsImagesAndNothingElse(t *testing.T) {
	dir, s := folder(t)
	const here = "127.0.0.1:8000"
	for name, c := range map[string]struct {
		method, path, host string
		code               int
		body               string
	}{
		"page":            {"GET", "/", here, 200, "the page"},
		"by_name":         {"GET", "/", "localhost:8000", 200, "the page"},
		"images":          {"GET", "/images", here, 200, `[{"name":"a.elf","size":7},{"name":"b\\u001b.elf","size":7}]` + "\n"},
		"first":           {"GET", "/image/0", here, 200, "image a"},
		"second":          {"GET", "/image/1", here, 200, "image b"},
		"third":           {"GET", "/image/2", here, 404, ""},
		"negative":        {"GET", "/image/-1", here, 404, ""},
		"not_canonical":   {"GET", "/image/01", here, 404, ""},
		"by_file_name":    {"GET", "/a.elf", here, 404, ""},
		"beside":          {"GET", "/secret", here, 404, ""},
		"above":           {"GET", "/image/../secret", here, 404, ""},
		"absolute":        {"GET", "/" + filepath.Join(dir, "secret"), here, 404, ""},
		"system":          {"GET", "/etc/passwd", here, 404, ""},
		"escaped":         {"GET", "/..%2fsecret", here, 404, ""},
		"post":            {"POST", "/", here, 405, ""},
		"another_site":    {"GET", "/images", "evil.example:8000", 403, ""},
		"alike":           {"GET", "/images", "127.0.0.1.evil.example", 403, ""},
		"no_host_at_all":  {"GET", "/images", "", 403, ""},
		"another_address": {"GET", "/", "192.0.2.1:8000", 403, ""},
	} {
		t.Run(name, func(t *testing.T) {
			code, body := get(s, c.method, c.path, c.host)
			require.Equal(t, c.code, code, body)
			if c.body != "" {
				require.Equal(t, c.body, body)
			}
			require.NotContains(t, body, "a secret")
		})
	}
}

// A page of another site gets nothing, and can put nothing into a frame.
func TestWhatBrowsersAreTold(t *testing.T) {
	_, s := folder(t)
	for path, code := range map[string]int{"/": 200, "/images": 403, "/image/0": 403, "/nosuch": 403} {
		r := httptest.NewRequest("GET", "http://127.0.0.1:8000"+path, nil)
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		require.Equal(t, code, w.Code, path)
	}
	for _, path := range []string{"/", "/images", "/image/0", "/nosuch"} {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest("GET", "http://127.0.0.1:8000"+path, nil))
		for name, value := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "no-store",
			"Content-Security-Policy": "frame-ancestors 'none'", "Referrer-Policy": "no-referrer",
		} {
			require.Equal(t, value, w.Header().Get(name), "%s: %s", path, name)
		}
		require.Empty(t, w.Header().Get("Access-Control-Allow-Origin"))
	}
}

// A name that is made to mean another file later still stands for the first.
func TestAnImageStaysTheFileThatItWas(t *testing.T) {
	dir, s := folder(t)
	require.NoError(t, os.Remove(filepath.Join(dir, "a.elf")))
	require.NoError(t, os.Symlink("secret", filepath.Join(dir, "a.elf")))
	_, body := get(s, "GET", "/image/0", "localhost")
	require.Equal(t, "image a", body)
}

func TestListensOnLoopbackOnly(t *testing.T) {
	_, s := folder(t)
	l, err := server.Listen(0)
	require.NoError(t, err)
	done := make(chan error)
	go func() { done <- s.Serve(l) }()
	require.True(t, l.Addr().(*net.TCPAddr).IP.IsLoopback(), "%s", l.Addr())

	r, err := http.Get("http://" + l.Addr().String() + "/image/1")
	require.NoError(t, err)
	body, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	require.NoError(t, r.Body.Close())
	require.Equal(t, "image b", string(body))

	require.NoError(t, l.Close())
	require.ErrorIs(t, <-done, net.ErrClosed)
}

func TestWhatCannotBeServed(t *testing.T) {
	dir, _ := folder(t)
	page := filepath.Join(dir, "page.html")
	fifo := filepath.Join(dir, "fifo")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	for name, c := range map[string]struct{ page, image string }{
		"no_page":         {filepath.Join(dir, "nosuch"), ""},
		"page_is_folder":  {dir, ""},
		"no_image":        {page, filepath.Join(dir, "nosuch")},
		"image_is_folder": {page, dir},
		"image_is_device": {page, "/dev/zero"},
		"image_is_fifo":   {page, fifo},
	} {
		t.Run(name, func(t *testing.T) {
			var images []string
			if c.image != "" {
				images = append(images, c.image)
			}
			_, err := server.New(c.page, images)
			require.Error(t, err)
		})
	}
}

// The page requests the list of images only where this server has marked it, so that it has no
// error on other servers.
func TestThePageIsMarkedAsServed(t *testing.T) {
	index := filepath.Join("..", "web", "index.html")
	page, err := os.ReadFile(index)
	require.NoError(t, err)
	require.NotContains(t, string(page), "data-served")
	s, err := server.New(index, nil)
	require.NoError(t, err)
	_, body := get(s, "GET", "/", "localhost")
	require.Contains(t, body, `<html lang="en" data-served="1">`)
	script, err := os.ReadFile(filepath.Join("..", "web", "ask.js"))
	require.NoError(t, err)
	require.Contains(t, string(script), "if (!document.documentElement.dataset.served) return;")
}

// Only the sites that are named may frame the page; the images stay the page's own.
func TestSitesThatMayFrameThePage(t *testing.T) {
	_, s := folder(t)
	for _, origin := range []string{"https://Course.example", "http://localhost:8000/", "http://[::1]:80"} {
		require.NoError(t, s.Frame(origin))
	}
	for path, want := range map[string]string{"/": "frame-ancestors https://course.example http://localhost:8000 http://[::1]:80", "/images": "frame-ancestors 'none'", "/image/0": "frame-ancestors 'none'"} {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest("GET", "http://127.0.0.1:8000"+path, nil))
		require.Equal(t, want, w.Header().Get("Content-Security-Policy"), path)
	}
	for _, origin := range []string{"", "*", "https://*", "https://*.example", "course.example", "file:///", "null", "https://a b", "https://a;script-src *", "https://a/path", "https://u@a", "javascript://a", "https://a?q", "https://a#f", "https://", "'self'"} {
		require.ErrorContains(t, s.Frame(origin), "is no origin: write a site as https://course.example", origin)
	}
}

// At another address the server answers to that address, and to no name of a site.
func TestListensAtAnAddress(t *testing.T) {
	for _, address := range []string{"", "localhost", "course.example", "127.0.0.1:80", "1.2.3"} {
		_, s := folder(t)
		_, err := s.ListenAt(address, 0)
		require.ErrorContains(t, err, "is no IP address", address)
	}
	_, s := folder(t)
	l, err := s.ListenAt("0.0.0.0", 0)
	require.NoError(t, err)
	require.NoError(t, l.Close())
	for host, code := range map[string]int{"192.0.2.1:8000": 200, "[2001:db8::1]:8000": 200, "localhost": 200, "evil.example:8000": 403, "192.0.2.1.evil.example": 403} {
		got, _ := get(s, "GET", "/", host)
		require.Equal(t, code, got, host)
	}
	_, s = folder(t)
	l, err = s.ListenAt("127.0.0.2", 0)
	require.NoError(t, err)
	require.NoError(t, l.Close())
	for host, code := range map[string]int{"127.0.0.2:8000": 200, "127.0.0.3:8000": 403, "192.0.2.1": 403} {
		got, _ := get(s, "GET", "/", host)
		require.Equal(t, code, got, host)
	}
}

// Lessons are offered by their names, and served as they are.
func TestLessons(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.html")
	require.NoError(t, os.WriteFile(page, []byte("<html>"), 0o666))
	s, err := server.New(page, nil)
	require.NoError(t, err)
	defer s.Close()
	got := func(path string) (int, string) {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "http://localhost"+path, nil)
		s.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	code, body := got("/lessons")
	require.Equal(t, http.StatusOK, code)
	require.JSONEq(t, "[]", body)
	s.AddLesson("a\n.json", []byte("{}"))
	_, body = got("/lessons")
	require.NotContains(t, body, "\\n")
	code, body = got("/lesson/0")
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, "{}", body)
	code, _ = got("/lesson/1")
	require.Equal(t, http.StatusNotFound, code)
}
