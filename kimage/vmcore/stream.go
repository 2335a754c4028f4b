package vmcore

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"kprobelab/internal/bounded"
)

// Limits on the unpacked size of a stream. A small file must not cost much memory.
const (
	// maxUnpacked is the longest file that comes of a stream: a dump's memory and its headers.
	maxUnpacked = bounded.DumpMemory + 1<<30
	// maxRatio bounds the bytes of a stream that are not zero, in multiples of its
	// packed size, once the stream is past thinFrom.
	maxRatio = bounded.UnpackRatio
	thinFrom = 64 << 20
)

func unwrapZstd(s source, to *spool) error {
	in := &counted{r: io.NewSectionReader(s, 0, s.size)}
	z, err := zstd.NewReader(in, zstd.WithDecoderMaxWindow(bounded.UnpackWindow), zstd.WithDecoderConcurrency(2))
	if err != nil {
		return err
	}
	defer z.Close()
	return unpack(z, in, to)
}

func unwrapGzip(s source, to *spool) error {
	in := &counted{r: io.NewSectionReader(s, 0, s.size)}
	z, err := gzip.NewReader(bufio.NewReaderSize(in, 1<<16))
	if err != nil {
		return packedError(err)
	}
	return unpack(z, in, to)
}

// counted knows how much was read.
type counted struct {
	r io.Reader
	n int64
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += int64(n)
	return n, err
}

// unpack writes a stream to a spool. What does not begin like a dump is refused by
// its first bytes.
func unpack(r io.Reader, in *counted, to *spool) error {
	b := make([]byte, 1<<20)
	for off := int64(0); ; {
		n, err := io.ReadFull(r, b)
		if off == 0 && n > 0 && formOf(b[:n]) == nil {
			return bad("a memory dump is wanted, the file holds something else, compressed")
		}
		if e := to.writeAt(b[:n], off); e != nil {
			return e
		}
		off += int64(n)
		switch {
		case err == io.EOF || err == io.ErrUnexpectedEOF && isEnd(r):
			return nil
		case err != nil:
			return packedError(err)
		case off > maxUnpacked:
			return bad("it unpacks to more than 65 GiB")
		case to.held > thinFrom && to.held/maxRatio > in.n:
			return bad("it unpacks to more than 100 times its size, which no dump does")
		}
	}
}

// isEnd tells a stream that has ended from one that is cut off: io.ReadFull says
// ErrUnexpectedEOF for both.
func isEnd(r io.Reader) bool {
	n, err := r.Read(make([]byte, 1))
	return n == 0 && err == io.EOF
}

func packedError(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return bad("the file is cut off: its compressed data has no end")
	}
	return bad("its compressed data is broken: %v", err)
}

func peekZstd(b []byte) []byte {
	z, err := zstd.NewReader(bytes.NewReader(b), zstd.WithDecoderMaxWindow(bounded.UnpackWindow), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil
	}
	defer z.Close()
	return begin(z)
}

func peekGzip(b []byte) []byte {
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil
	}
	return begin(z)
}

func begin(r io.Reader) []byte {
	b := make([]byte, headSize)
	n, _ := io.ReadFull(r, b)
	return b[:n]
}
