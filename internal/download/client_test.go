package download_test

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/download"
	"kprobelab/internal/tinyarchive"
)

// served is an archive with one file, and a client that does not wait.
func served(t *testing.T) (*tinyarchive.Archive, *download.Client, []byte) {
	t.Helper()
	a, stop := tinyarchive.Serve()
	t.Cleanup(stop)
	b := bytes.Repeat([]byte("0123456789abcdef"), 20_000)
	a.Put("f", b)
	c := download.New(nil)
	c.Pause = time.Millisecond
	return a, c, b
}

// left are the files of a folder.
func left(t *testing.T, dir string) (names []string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

func TestBrokenConnectionsAreGoneOnWith(t *testing.T) {
	a, c, b := served(t)
	dir, sum := t.TempDir(), tinyarchive.Sum(b)
	var most int64
	c.Progress = func(_ string, done, total int64) { require.Equal(t, int64(len(b)), total); most = done }
	a.Cut(100_000, 0, 70_000)
	name, err := c.Fetch(t.Context(), a.URL+"/f", sum, int64(len(b)), dir, "f")
	require.NoError(t, err)
	got, err := os.ReadFile(name)
	require.NoError(t, err)
	require.True(t, bytes.Equal(b, got))
	require.Equal(t, 4, a.Asked("f"))
	require.Equal(t, int64(len(b)), most)
	require.Equal(t, []string{sum}, left(t, dir))
	// The file exists: no server is asked.
	_, err = c.Fetch(t.Context(), a.URL+"/f", sum, int64(len(b)), dir, "f")
	require.NoError(t, err)
	require.Equal(t, 4, a.Asked("f"))
}

func TestAnotherProcessGoesOn(t *testing.T) {
	a, c, b := served(t)
	dir, sum := t.TempDir(), tinyarchive.Sum(b)
	a.Cut(150_000, 0, 0, 0, 0)
	_, err := c.Fetch(t.Context(), a.URL+"/f", sum, int64(len(b)), dir, "f")
	require.ErrorIs(t, err, download.ErrAnswer)
	require.ErrorContains(t, err, "the connection broke off")
	st, err := os.Stat(filepath.Join(dir, sum+".part"))
	require.NoError(t, err)
	require.Equal(t, int64(150_000), st.Size())
	var first int64 = -1
	c.Progress = func(_ string, done, _ int64) {
		if first < 0 {
			first = done
		}
	}
	_, err = c.Fetch(t.Context(), a.URL+"/f", sum, int64(len(b)), dir, "f")
	require.NoError(t, err)
	require.Greater(t, first, int64(150_000), "it began anew")
	require.Equal(t, []string{sum}, left(t, dir))
}

func TestFilesThatAreNotTheOnesThatWereAskedFor(t *testing.T) {
	a, c, b := served(t)
	sum := tinyarchive.Sum(b)
	for name, other := range map[string][]byte{
		"changed": append([]byte("x"), b[1:]...), "shorter": b[:len(b)-1], "longer": append(bytes.Clone(b), 'x'), "empty": {},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			a.Put("g", other)
			_, err := c.Fetch(t.Context(), a.URL+"/g", sum, int64(len(b)), dir, "g")
			require.Error(t, err)
			require.NotContains(t, err.Error(), "\n")
			require.ErrorIs(t, err, download.ErrSum)
			require.Empty(t, left(t, dir))
			// Once the right one is served, it arrives.
			a.Put("g", b)
			_, err = c.Fetch(t.Context(), a.URL+"/g", sum, int64(len(b)), dir, "g")
			require.NoError(t, err)
		})
	}
	t.Run("none", func(t *testing.T) {
		dir := t.TempDir()
		_, err := c.Fetch(t.Context(), a.URL+"/none", sum, 1, dir, "none")
		require.ErrorIs(t, err, fs.ErrNotExist)
		require.ErrorContains(t, err, "the server says 404")
		require.Empty(t, left(t, dir))
		require.Equal(t, 1, a.Asked("none"), "what is not there is asked for once")
	})
	t.Run("part_of_another", func(t *testing.T) {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, sum+".part"), []byte("what was there"), 0o600))
		_, err := c.Fetch(t.Context(), a.URL+"/f", sum, int64(len(b)), dir, "f")
		require.ErrorIs(t, err, download.ErrSum)
		require.Empty(t, left(t, dir))
	})
}

func TestTwoAtOnceFetchOnce(t *testing.T) {
	a, c, b := served(t)
	dir, sum := t.TempDir(), tinyarchive.Sum(b)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			_, err := c.Fetch(t.Context(), a.URL+"/f", sum, int64(len(b)), dir, "f")
			require.NoError(t, err)
		})
	}
	all.Wait()
	require.Equal(t, 1, a.Asked("f"))
}

func TestGet(t *testing.T) {
	a, c, _ := served(t)
	a.Put("short", []byte("text"))
	b, err := c.Get(t.Context(), a.URL+"/short", 10)
	require.NoError(t, err)
	require.Equal(t, "text", string(b))
	_, err = c.Get(t.Context(), a.URL+"/short", 3)
	require.ErrorContains(t, err, "more than 3 bytes are not read")
	_, err = c.Get(t.Context(), "http://127.0.0.1:1/x", 3)
	require.ErrorIs(t, err, download.ErrAnswer)
	require.Equal(t, 1, strings.Count(err.Error(), "127.0.0.1:1/x"))
	_, err = c.Get(t.Context(), "::", 3)
	require.ErrorIs(t, err, download.ErrAnswer)
	name := filepath.Join(t.TempDir(), "x")
	require.NoError(t, os.WriteFile(name, []byte("of a disk"), 0o600))
	b, err = c.Get(t.Context(), "file://"+name, 100)
	require.NoError(t, err)
	require.Equal(t, "of a disk", string(b))
	_, err = c.Get(t.Context(), "file://"+name+"x", 100)
	require.ErrorIs(t, err, fs.ErrNotExist)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = c.Get(ctx, a.URL+"/short", 10)
	require.ErrorIs(t, err, context.Canceled)
}

// An answer that another try does not change is requested once; one that may change, five times.
func TestAnswersOfServers(t *testing.T) {
	for status, want := range map[int]int{400: 1, 403: 1, 404: 1, 418: 1, 408: 5, 429: 5, 500: 5, 503: 5} {
		asked := 0
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { asked++; w.WriteHeader(status) }))
		c := download.New(nil)
		c.Pause = time.Millisecond
		_, err := c.Get(t.Context(), s.URL, 10)
		s.Close()
		require.ErrorIs(t, err, download.ErrAnswer)
		require.Equal(t, want, asked, status)
	}
}

// What apt's configuration says of proxies counts where the environment says nothing.
func TestProxies(t *testing.T) {
	for _, name := range []string{"http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"} {
		if os.Getenv(name) != "" {
			t.Skip("this environment has a proxy")
		}
	}
	a, _, _ := served(t)
	a.Put("x", []byte("by a proxy"))
	c := download.New(func(scheme string) string {
		require.Equal(t, "http", scheme)
		return strings.TrimSuffix(a.URL, "/debian")
	})
	// A proxy is asked for the whole address; this one looks at its path alone.
	b, err := c.Get(t.Context(), "http://nowhere.invalid/debian/x", 100)
	require.NoError(t, err)
	require.Equal(t, "by a proxy", string(b))
}

// A container may have no certificates: the sentence says what to do, and no other try helps.
func TestServersOfUnknownAuthorities(t *testing.T) {
	asked := 0
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	_, err := download.New(nil).Get(t.Context(), server.URL+"/f", 100)
	require.ErrorIs(t, err, download.ErrAnswer)
	require.ErrorContains(t, err, "SSL_CERT_FILE names a file")
	require.Zero(t, asked)
}
