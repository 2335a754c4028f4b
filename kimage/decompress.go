package kimage

import (
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"errors"
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/ulikunitz/xz/lzma"
)

// compression is one of the formats that a kernel image, or a file beside it,
// may be packed in.
type compression struct {
	name  string
	magic string
	// unpack appends what b decompresses to, at most limit bytes; hint is
	// the expected size, 0 if unknown. What follows the packed stream is
	// ignored.
	unpack func(b []byte, hint int, p *progress) ([]byte, error)
}

var compressions = []compression{
	{"gzip", "\x1f\x8b\x08", unpackGzip},
	{"zstd", "\x28\xb5\x2f\xfd", unpackZstd},
	{"xz", "\xfd7zXZ\x00", unpackXz},
	{"lz4", "\x02\x21\x4c\x18", unpackLz4Legacy},
	{"lz4", "\x04\x22\x4d\x18", unpackLz4},
	{"bzip2", "BZh", unpackBzip2},
	{"lzma", "\x5d\x00\x00", unpackLzma},
	{"lzo", "\x89LZO\x00\x0d\x0a\x1a\x0a", unpackLzo},
}

// compressionOf returns the format that b begins with, or nil.
func compressionOf(b []byte) *compression {
	for i := range compressions {
		if bytes.HasPrefix(b, []byte(compressions[i].magic)) {
			return &compressions[i]
		}
	}
	return nil
}

var errTooLarge = errors.New("it unpacks to more than 1 GiB")

// progress reports how far a stage is.
type progress struct {
	report func(stage string, done, total int64)
	stage  string
	total  int64
	last   int64
}

// step is how many bytes lie between two reports.
const progressStep = 1 << 20

func (p *progress) at(done int64) {
	if p == nil || p.report == nil || done == p.last || done < p.last+progressStep && done != p.total {
		return
	}
	p.last = done
	p.report(p.stage, done, p.total)
}

// decompress unpacks b, which begins with one of the known magics. hint is
// the expected size, 0 if unknown.
func decompress(file string, at int64, b []byte, hint int, report func(string, int64, int64)) ([]byte, error) {
	c := compressionOf(b)
	if c == nil {
		return nil, badFormat(file, at, "compressed data is wanted (gzip, zstd, xz, lz4, bzip2, lzma or lzo)")
	}
	// A believable hint saves growing; a damaged one must not cost memory.
	if hint < 0 || hint > maxImage || hint/300 > len(b) {
		hint = 0
	}
	out, err := c.unpack(b, hint, &progress{report: report, stage: "decompress", total: int64(hint)})
	switch {
	case errors.Is(err, errTooLarge):
		return nil, badFormat(file, at, "%v", err)
	case err != nil:
		return nil, badFormat(file, at, "intact %s data is wanted: %v", c.name, plain(err))
	}
	return out, nil
}

// plain keeps an error to one line.
func plain(err error) error {
	s := err.Error()
	if i := bytes.IndexByte([]byte(s), '\n'); i >= 0 {
		return errors.New(s[:i])
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the data is cut off")
	}
	return err
}

// readAll reads everything from r, at most maxImage bytes.
func readAll(r io.Reader, hint int, p *progress) ([]byte, error) {
	// One byte more than expected: the end shows without growing.
	return appendAll(make([]byte, 0, max(hint+1, 64<<10)), r, p)
}

// appendAll reads r to its end and appends it to out.
func appendAll(out []byte, r io.Reader, p *progress) ([]byte, error) {
	for {
		if len(out) == cap(out) {
			out = append(out, 0)[:len(out)]
		}
		n, err := r.Read(out[len(out):cap(out)])
		out = out[:len(out)+n]
		p.at(int64(len(out)))
		switch {
		case err == io.EOF:
			return out, nil
		case err != nil:
			return nil, err
		case len(out) > maxImage:
			return nil, errTooLarge
		}
	}
}

func unpackGzip(b []byte, hint int, p *progress) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	r.Multistream(false)
	return readAll(r, hint, p)
}

func unpackZstd(b []byte, hint int, p *progress) ([]byte, error) {
	n, err := zstdFrameLen(b)
	if err != nil {
		return nil, err
	}
	r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxImage))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	out, err := r.DecodeAll(b[:n], make([]byte, 0, hint))
	if errors.Is(err, zstd.ErrDecoderSizeExceeded) {
		return nil, errTooLarge
	}
	p.at(int64(len(out)))
	return out, err
}

// zstdFrameLen is the length of the frame that b begins with: what follows it
// (the image's size, in a kernel) would be taken for another frame (RFC 8878,
// "Frames").
func zstdFrameLen(b []byte) (int, error) {
	var h zstd.Header
	if err := h.Decode(b); err != nil {
		return 0, err
	}
	at := h.HeaderSize
	for last := false; !last; {
		if at+3 > len(b) {
			return 0, io.ErrUnexpectedEOF
		}
		head := uint32(b[at]) | uint32(b[at+1])<<8 | uint32(b[at+2])<<16
		size := int(head >> 3)
		if head>>1&3 == 1 {
			size = 1 // one byte, repeated
		}
		at += 3 + size
		last = head&1 != 0
	}
	if h.HasCheckSum {
		at += 4
	}
	if at > len(b) {
		return 0, io.ErrUnexpectedEOF
	}
	return at, nil
}

func unpackLzma(b []byte, hint int, p *progress) ([]byte, error) {
	r, err := lzma.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	return readAll(r, hint, p)
}

func unpackBzip2(b []byte, hint int, p *progress) ([]byte, error) {
	return readAll(bzip2.NewReader(bytes.NewReader(b)), hint, p)
}

func unpackLz4(b []byte, hint int, p *progress) ([]byte, error) {
	return readAll(lz4.NewReader(bytes.NewReader(b)), hint, p)
}

// lz4LegacyBlock is what a block of the legacy frame unpacks to; only the
// last one is shorter (LZ4 Frame Format, "Legacy frame").
const lz4LegacyBlock = 8 << 20

// unpackLz4Legacy unpacks the frame that the kernel's build makes, with no end
// mark: blocks follow each other until the data ends, or until something that
// cannot be a block's length, such as the image's size that the build appends.
func unpackLz4Legacy(b []byte, hint int, p *progress) ([]byte, error) {
	out := make([]byte, 0, hint)
	b = b[4:]
	for len(b) >= 4 {
		n := int(le.Uint32(b))
		if len(b) == 4 && n == len(out) {
			break
		}
		if n <= 0 || n > len(b)-4 {
			return nil, io.ErrUnexpectedEOF
		}
		var err error
		if out, err = appendLz4Block(out, b[4:4+n]); err != nil {
			return nil, err
		}
		p.at(int64(len(out)))
		b = b[4+n:]
	}
	if len(out) == 0 {
		return nil, io.ErrUnexpectedEOF
	}
	return out, nil
}

// appendLz4Block appends an unpacked block to out, first into the capacity that
// the expected size left, then into more.
func appendLz4Block(out, block []byte) ([]byte, error) {
	if len(out)+lz4LegacyBlock > maxImage {
		return nil, errTooLarge
	}
	for {
		room := out[len(out):min(cap(out), len(out)+lz4LegacyBlock)]
		n, err := lz4.UncompressBlock(block, room)
		switch {
		case err == nil:
			return out[:len(out)+n], nil
		case len(room) == lz4LegacyBlock:
			return nil, err
		}
		out = grow(out, lz4LegacyBlock)
	}
}

// grow makes room for n more bytes.
func grow(out []byte, n int) []byte {
	if cap(out)-len(out) >= n {
		return out
	}
	bigger := make([]byte, len(out), max(2*cap(out), len(out)+n))
	copy(bigger, out)
	return bigger
}
