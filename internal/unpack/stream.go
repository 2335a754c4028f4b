package unpack

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz/lzma"

	"kprobelab/internal/bounded"
	"kprobelab/internal/xz"
)

// ErrPacked is a packed stream that is damaged, cut off, or unpacks to too much.
var ErrPacked = errors.New("its packed data is of no use")

// slack is the number of bytes that any stream may unpack to: a short text packs well.
const slack = 1 << 20

// formats are the packing formats of packages and indexes, by the first bytes.
var formats = []struct {
	name, magic string
	open        func(*bufio.Reader) (io.Reader, func(), error)
}{
	{"gzip", "\x1f\x8b", func(r *bufio.Reader) (io.Reader, func(), error) { z, err := gzip.NewReader(r); return z, nil, err }},
	{"xz", xz.Magic, func(r *bufio.Reader) (io.Reader, func(), error) { z, err := xz.NewReader(r); return z, nil, err }},
	{"zstd", "\x28\xb5\x2f\xfd", func(r *bufio.Reader) (io.Reader, func(), error) {
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(bounded.UnpackWindow))
		if err != nil {
			return nil, nil, err
		}
		return z, z.Close, nil
	}},
	{"bzip2", "BZh", func(r *bufio.Reader) (io.Reader, func(), error) { return bzip2.NewReader(r), nil, nil }},
	{"lzma", "\x5d\x00\x00", func(r *bufio.Reader) (io.Reader, func(), error) {
		z, err := lzma.ReaderConfig{DictCap: bounded.UnpackWindow}.NewReader(r)
		return z, nil, err
	}},
}

// stream reads the unpacked content of a packed stream.
type stream struct {
	name   string
	r      io.Reader
	packed *count
	done   int64
	close  func()
}

type count struct {
	r io.Reader
	n int64
}

func (c *count) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// Stream unpacks r: gzip, xz, zstd, bzip2 or lzma by the first bytes; it passes other data
// unchanged.
func Stream(r io.Reader) (io.ReadCloser, error) {
	packed := &count{r: r}
	b := bufio.NewReader(packed)
	head, err := b.Peek(len(xz.Magic))
	if err != nil && err != io.EOF {
		return nil, err
	}
	for _, f := range formats {
		if !bytes.HasPrefix(head, []byte(f.magic)) {
			continue
		}
		z, done, err := f.open(b)
		if err != nil {
			return nil, damaged(f.name, err)
		}
		return &stream{f.name, z, packed, 0, done}, nil
	}
	return io.NopCloser(b), nil
}

// Read implements io.Reader.
func (s *stream) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if s.done += int64(n); s.done > slack+s.packed.n*bounded.UnpackRatio {
		return 0, fmt.Errorf("%w: it unpacks to more than %d times its size", ErrPacked, bounded.UnpackRatio)
	}
	if err != nil && err != io.EOF {
		err = damaged(s.name, err)
	}
	return n, err
}

// Close implements io.Closer.
func (s *stream) Close() error {
	if s.close != nil {
		s.close()
	}
	return nil
}

// damaged describes the error of a stream in one line. The stream's own reader may have a sentence
// of its own.
func damaged(format string, err error) error {
	switch {
	case errors.Is(err, bounded.ErrTooLong), errors.Is(err, ErrPacked):
		return err
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: the %s data is cut off", ErrPacked, format)
	}
	text, _, _ := bytes.Cut([]byte(err.Error()), []byte("\n"))
	return fmt.Errorf("%w: the %s data is damaged (%s)", ErrPacked, format, text)
}
