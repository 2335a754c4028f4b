// Package bounded reads files and streams up to a limit. Whatever the program
// reads whole, it reads by this package, except for an image, whose limit is
// package kimage's own: a device or a pipe may never end.
package bounded

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// ErrTooLong is a file or a stream that has more bytes than the limit.
var ErrTooLong = errors.New("too long")

// ErrOthers is a file or a folder that another user can change.
var ErrOthers = errors.New("another user can change it")

// Reader reads from r, and fails with ErrTooLong once more than limit bytes come.
func Reader(r io.Reader, limit int64) io.Reader { return &reader{r, limit, limit} }

type reader struct {
	r           io.Reader
	left, limit int64
}

func (b *reader) Read(p []byte) (int, error) {
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1] // the one byte too many tells the end from a limit reached
	}
	n, err := b.r.Read(p)
	if int64(n) > b.left {
		n, err = int(b.left), fmt.Errorf("%w: more than %s are not read", ErrTooLong, size(b.limit))
	}
	b.left -= int64(n)
	return n, err
}

// ReadAll reads r to its end.
func ReadAll(r io.Reader, limit int64) ([]byte, error) { return io.ReadAll(Reader(r, limit)) }

// ReadFile reads a whole file. Its error is an *fs.PathError.
func ReadFile(name string, limit int64) ([]byte, error) {
	f, err := Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// The size is a hint: there are files that say 0, and some grow.
	var b bytes.Buffer
	if st, err := f.Stat(); err == nil {
		n := min(max(st.Size(), 0), limit)
		if err := Room(n); err != nil {
			return nil, &fs.PathError{Op: "read", Path: name, Err: err}
		}
		b.Grow(int(n) + bytes.MinRead)
	}
	_, err = b.ReadFrom(Reader(f, limit))
	if errors.Is(err, ErrTooLong) {
		err = &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return b.Bytes(), err
}

// size is a number of bytes as people write it.
func size(n int64) string {
	switch {
	case n >= 1<<30 && n%(1<<30) == 0:
		return fmt.Sprintf("%d GiB", n>>30)
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d bytes", n)
}
