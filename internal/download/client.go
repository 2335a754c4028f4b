package download

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"kprobelab/internal/bounded"
)

// ErrSum is a file that differs from the requested one.
var ErrSum = errors.New("it is not the file that the index names")

// ErrAnswer is a server that has no such file, or does not answer.
var ErrAnswer = errors.New("it cannot be fetched")

const (
	// tries is the number of times that a fetch is tried.
	tries = 5
	// stalls is the time without a byte after which a connection counts as broken.
	stalls = 45 * time.Second
)

// Client fetches.
type Client struct {
	http *http.Client
	// Progress is called as bytes come; total is 0 if the size is unknown. It may be nil.
	Progress func(what string, done, total int64)
	// Pause is the wait before the server of a broken connection is tried again, times the number
	// of the try.
	Pause time.Duration
	// Once tries each server once.
	Once bool
}

// New makes a client. It uses the proxies of the environment, or else the result of proxy for a
// scheme: an address, "" for none.
func New(proxy func(scheme string) string) *Client {
	dialer := &net.Dialer{Timeout: 20 * time.Second}
	transport := &http.Transport{
		DialContext: dialer.DialContext, TLSHandshakeTimeout: 20 * time.Second, ResponseHeaderTimeout: stalls, ForceAttemptHTTP2: true,
		DisableCompression: true, // a checksum is of the bytes on the wire
		Proxy: func(r *http.Request) (*url.URL, error) {
			u, err := http.ProxyFromEnvironment(r)
			if u != nil || err != nil || proxy == nil {
				return u, err
			}
			if p := proxy(r.URL.Scheme); p != "" && !strings.EqualFold(p, "DIRECT") {
				return url.Parse(p)
			}
			return nil, nil
		},
	}
	transport.RegisterProtocol("file", http.NewFileTransport(http.Dir("/")))
	return &Client{Pause: time.Second, http: &http.Client{Transport: transport}}
}

// Schemes are the schemes of addresses that can be fetched.
var Schemes = []string{"http", "https", "file"}

// missing is an answer of 404 or its like.
type missing struct{ status string }

func (m *missing) Error() string { return "the server says " + m.status }
func (m *missing) Unwrap() error { return fs.ErrNotExist }

// refused is an answer that another try does not change.
type refused struct{ status string }

func (r *refused) Error() string { return "the server says " + r.status }

// Get returns a short file. One that is not there is an fs.ErrNotExist.
func (c *Client) Get(ctx context.Context, address string, limit int64) ([]byte, error) {
	var b []byte
	err := c.retry(ctx, address, func(ctx context.Context) error {
		r, stop, err := c.ask(ctx, address, 0)
		if err != nil {
			return err
		}
		defer stop()
		b, err = bounded.ReadAll(r.Body, limit)
		return err
	})
	return b, err
}

// Fetch puts a file of that checksum (SHA-256, in hexadecimal) and size into the folder, and
// returns its path there. A part that is there already is not fetched again.
func (c *Client) Fetch(ctx context.Context, address, sum string, size int64, folder, what string) (string, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	name := filepath.Join(folder, sum)
	unlock, err := Lock(ctx, name+".lock", nil)
	if err != nil {
		return "", err
	}
	defer unlock()
	defer os.Remove(name + ".lock")
	if st, err := os.Stat(name); err == nil && st.Size() == size {
		return name, nil // it got its name once its checksum was right
	}
	partial := name + ".part"
	f, err := os.OpenFile(partial, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return "", err
	}
	defer f.Close()
	err = c.retry(ctx, address, func(ctx context.Context) error { return c.goOn(ctx, f, address, size, what) })
	if err == nil {
		err = check(f, sum, size)
	}
	switch {
	case errors.Is(err, ErrSum):
		os.Remove(partial)
		return "", fmt.Errorf("%s: %w", address, err)
	case err != nil:
		// The next one goes on, but for a file of nothing.
		if st, statErr := f.Stat(); statErr == nil && st.Size() == 0 {
			os.Remove(partial)
		}
		return "", err
	}
	return name, os.Rename(partial, name)
}

// check compares a whole file with its checksum.
func check(f *os.File, sum string, size int64) error {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	h := sha256.New()
	n, err := io.Copy(h, f)
	if err != nil {
		return err
	}
	if got := hex.EncodeToString(h.Sum(nil)); n != size || got != sum {
		return fmt.Errorf("%w (SHA-256 %.12s… of %d bytes, not %.12s… of %d)", ErrSum, got, n, sum, size)
	}
	return nil
}

// goOn fetches the rest of the file.
func (c *Client) goOn(ctx context.Context, f *os.File, address string, size int64, what string) error {
	at, err := f.Seek(0, io.SeekEnd)
	if err != nil || at == size {
		return err
	}
	if at > size {
		at = 0
	}
	r, stop, err := c.ask(ctx, address, at)
	if err != nil {
		return err
	}
	defer stop()
	if r.StatusCode != http.StatusPartialContent {
		at = 0
	}
	// A file of another length is another file: no other try helps.
	if r.ContentLength >= 0 && at+r.ContentLength != size {
		return fmt.Errorf("%w: the server has %d bytes of it, not %d", ErrSum, at+r.ContentLength, size)
	}
	if err := f.Truncate(at); err != nil {
		return err
	}
	if _, err := f.Seek(at, io.SeekStart); err != nil {
		return err
	}
	n, err := io.Copy(f, &told{r.Body, c, what, at, size})
	switch {
	case errors.Is(err, ErrSum):
		return err
	case err == nil && at+n < size:
		err = io.ErrUnexpectedEOF
	}
	return err
}

// told reports progress, and stops at the expected size.
type told struct {
	r          io.Reader
	c          *Client
	what       string
	done, size int64
}

func (t *told) Read(p []byte) (int, error) {
	n, err := t.r.Read(p)
	if t.done += int64(n); t.done > t.size {
		return 0, fmt.Errorf("%w: it has more than %d bytes", ErrSum, t.size)
	}
	if t.c.Progress != nil && n > 0 {
		t.c.Progress(t.what, t.done, t.size)
	}
	return n, err
}

// ask requests the rest of a file from an offset on. Its answer ends when no byte comes for a
// while.
func (c *Client) ask(ctx context.Context, address string, from int64) (*http.Response, func(), error) {
	ctx, cancel := context.WithCancel(ctx)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		cancel()
		return nil, nil, err
	}
	r.Header.Set("User-Agent", "kprobelab")
	if from > 0 {
		r.Header.Set("Range", fmt.Sprintf("bytes=%d-", from))
	}
	answer, err := c.http.Do(r)
	if err != nil {
		cancel()
		return nil, nil, err
	}
	stop := func() { answer.Body.Close(); cancel() }
	switch answer.StatusCode {
	case http.StatusOK, http.StatusPartialContent:
	case http.StatusNotFound, http.StatusGone, http.StatusForbidden, http.StatusUnauthorized:
		stop()
		return nil, nil, &missing{answer.Status}
	case http.StatusRequestedRangeNotSatisfiable:
		stop()
		return nil, nil, fmt.Errorf("%w: the server has less of it than was fetched before", ErrSum)
	case http.StatusRequestTimeout, http.StatusTooManyRequests:
		stop()
		return nil, nil, fmt.Errorf("the server says %s", answer.Status)
	default:
		stop()
		if answer.StatusCode < 500 {
			return nil, nil, &refused{answer.Status}
		}
		return nil, nil, fmt.Errorf("the server says %s", answer.Status)
	}
	answer.Body = &watched{answer.Body, time.AfterFunc(stalls, cancel)}
	return answer, stop, nil
}

// watched ends a connection on which nothing comes.
type watched struct {
	io.ReadCloser
	t *time.Timer
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	if n > 0 {
		w.t.Reset(stalls)
	}
	return n, err
}

func (w *watched) Close() error {
	w.t.Stop()
	return w.ReadCloser.Close()
}

// retry repeats do if another try may help, and returns the last error.
func (c *Client) retry(ctx context.Context, address string, do func(context.Context) error) error {
	var err error
	for n := 1; ; n++ {
		if err = do(ctx); err == nil {
			return nil
		}
		var lacks *missing
		var never *refused
		var path *fs.PathError
		final := errors.As(err, &lacks) || errors.As(err, &never) || errors.As(err, &path) || untrusted(err) || errors.Is(err, ErrSum) || errors.Is(err, bounded.ErrTooLong)
		if final || c.Once || n == tries || ctx.Err() != nil {
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(n) * c.Pause):
		}
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if errors.Is(err, ErrSum) {
		return err
	}
	return fmt.Errorf("%s: %w: %w", address, ErrAnswer, short(err))
}

// short removes the address from the error: it is named once.
func short(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the connection broke off")
	}
	if untrusted(err) {
		return fmt.Errorf("%w; the package ca-certificates has the usual authorities, $SSL_CERT_FILE names a file of others, and an address of http needs none", err)
	}
	return err
}

// untrusted reports whether a server's certificate is by an authority that this system does not know, or none is known.
func untrusted(err error) bool {
	var unknown x509.UnknownAuthorityError
	var none x509.SystemRootsError
	return errors.As(err, &unknown) || errors.As(err, &none)
}
