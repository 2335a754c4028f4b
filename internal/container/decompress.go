package container

import (
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/ulikunitz/xz/lzma"

	"kprobelab/internal/bounded"
	"kprobelab/internal/xz"
)

// Packed reports what is compressed.
func Packed(b []byte) bool { return compressionOf(b) != nil }

// le is the order of bytes of all formats but lzop's.
var le = binary.LittleEndian

// compression is one of the formats that a kernel image, or a file beside it,
// may be packed in.
type compression struct {
	name  string
	magic string
	// open returns what r, at the magic, unpacks to. What follows the packed
	// stream is ignored.
	open func(r *bytes.Reader) (io.Reader, error)
}

var compressions = []compression{
	{"gzip", "\x1f\x8b\x08", openGzip},
	{"zstd", "\x28\xb5\x2f\xfd", openZstd},
	{"xz", xz.Magic, openXz},
	{"lz4", "\x02\x21\x4c\x18", openLz4Legacy},
	{"lz4", "\x04\x22\x4d\x18", openLz4},
	{"bzip2", "BZh", openBzip2},
	{"lzma", "\x5d\x00\x00", openLzma},
	{"lzo", "\x89LZO\x00\x0d\x0a\x1a\x0a", openLzo},
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

// decompressImage unpacks an image, b, which begins with one of the known magics; at is its place in the file.
// A file of another kind is refused by its first bytes.
func decompressImage(at int64, b []byte, report func(string, int64, int64)) ([]byte, error) {
	return decompress(at, b, &collector{size: func(b []byte) (int64, error) {
		return imageExtent(at, b)
	}, max: bounded.Image, tooLong: errTooLarge}, report)
}

// Beside unpacks a file that is beside an image. The error is an *Error.
func Beside(b []byte, report func(string, int64, int64)) ([]byte, error) {
	size := func(b []byte) (int64, error) {
		if IsELF(b) {
			return elfExtent(b), nil
		}
		return 0, nil
	}
	return decompress(0, b, &collector{size: size, max: bounded.BesideImage, tooLong: errTooLong}, report)
}

func decompress(at int64, b []byte, c *collector, report func(string, int64, int64)) ([]byte, error) {
	format := compressionOf(b)
	if format == nil {
		return nil, bad(at, "compressed data is wanted (gzip, zstd, xz, lz4, bzip2, lzma or lzo)")
	}
	packed := bytes.NewReader(b)
	c.packed = func() int64 { return int64(len(b) - packed.Len()) }
	c.p = &progress{report: report, stage: "decompress"}
	var out []byte
	var err error
	if c.r, err = format.open(packed); err == nil {
		out, err = c.collect()
	}
	if z, ok := c.r.(*zstd.Decoder); ok {
		z.Close()
	}
	var known *Error
	switch {
	case err == nil:
		return out, nil
	case errors.As(err, &known):
		return nil, known
	case errors.Is(err, errTooLarge), errors.Is(err, errTooLong), errors.Is(err, errTooPacked), errors.Is(err, bounded.ErrNoRoom):
		return nil, bad(at, "%v", err)
	}
	return nil, bad(at, "intact %s data is wanted: %v", format.name, plain(err))
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

func openGzip(r *bytes.Reader) (io.Reader, error) {
	z, err := gzip.NewReader(r)
	if err != nil {
		return nil, err
	}
	z.Multistream(false)
	return z, nil
}

func openZstd(r *bytes.Reader) (io.Reader, error) {
	n, err := zstdFrameLen(r)
	if err != nil {
		return nil, err
	}
	return zstd.NewReader(io.LimitReader(r, n), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(bounded.UnpackWindow))
}

// zstdFrameLen is the length of the frame at r: what follows it (the image's
// size, in a kernel) would be taken for another frame (RFC 8878, "Frames").
func zstdFrameLen(r *bytes.Reader) (int64, error) {
	b := make([]byte, min(r.Len(), zstd.HeaderMaxSize))
	if _, err := r.ReadAt(b, 0); err != nil && err != io.EOF {
		return 0, err
	}
	var h zstd.Header
	if err := h.Decode(b); err != nil {
		return 0, err
	}
	at, total := int64(h.HeaderSize), r.Size()
	for last := false; !last; {
		var head [3]byte
		if _, err := r.ReadAt(head[:], at); err != nil {
			return 0, io.ErrUnexpectedEOF
		}
		word := uint32(head[0]) | uint32(head[1])<<8 | uint32(head[2])<<16
		size := int64(word >> 3)
		if word>>1&3 == 1 {
			size = 1 // one byte, repeated
		}
		at += 3 + size
		last = word&1 != 0
	}
	if h.HasCheckSum {
		at += 4
	}
	if at > total {
		return 0, io.ErrUnexpectedEOF
	}
	return at, nil
}

func openXz(r *bytes.Reader) (io.Reader, error) { return xz.NewReader(r) }

func openLzma(r *bytes.Reader) (io.Reader, error) {
	return lzma.ReaderConfig{DictCap: bounded.UnpackWindow}.NewReader(r)
}

func openBzip2(r *bytes.Reader) (io.Reader, error) { return bzip2.NewReader(r), nil }

func openLz4(r *bytes.Reader) (io.Reader, error) { return lz4.NewReader(r), nil }

// blocks reads a stream of blocks: next returns the next one unpacked, which
// it may overwrite with the one after it; io.EOF after the last.
type blocks struct {
	next func() ([]byte, error)
	left []byte
}

func (r *blocks) Read(p []byte) (n int, err error) {
	for len(r.left) == 0 {
		if r.left, err = r.next(); err != nil {
			r.left = nil
			return 0, err
		}
	}
	n = copy(p, r.left)
	r.left = r.left[n:]
	return n, nil
}

// lz4LegacyBlock is the unpacked size of a block of the legacy frame; only the last one
// is shorter (LZ4 Frame Format, "Legacy frame").
const lz4LegacyBlock = 8 << 20

// openLz4Legacy unpacks the frame that the kernel's build makes, with no end
// mark: blocks follow each other until the data ends, or until something that
// cannot be a block's length, such as the image's size that the build appends.
func openLz4Legacy(r *bytes.Reader) (io.Reader, error) {
	if _, err := r.Seek(4, io.SeekCurrent); err != nil {
		return nil, err
	}
	out := make([]byte, lz4LegacyBlock)
	total := 0
	return &blocks{next: func() ([]byte, error) {
		var head [4]byte
		if _, err := io.ReadFull(r, head[:]); err != nil {
			if total == 0 {
				return nil, io.ErrUnexpectedEOF
			}
			return nil, io.EOF
		}
		n := int(le.Uint32(head[:]))
		if r.Len() == 0 && n == total {
			return nil, io.EOF
		}
		if n <= 0 || n > r.Len() {
			return nil, io.ErrUnexpectedEOF
		}
		block := make([]byte, n)
		if _, err := io.ReadFull(r, block); err != nil {
			return nil, err
		}
		n, err := lz4.UncompressBlock(block, out)
		total += n
		return out[:max(n, 0)], err
	}}, nil
}
