package vmcore

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/anchore/go-lzo"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

// unpackPage unpacks a page into to, and returns how many bytes it had.
func unpackPage(packed, to []byte, flags uint32) (int, error) {
	switch flags & (pageZlib | pageLZO | pageSnappy | pageZstd) {
	case 0:
		return copy(to, packed), nil
	case pageZlib:
		return inflate(packed, to)
	case pageLZO:
		return lzo.Decompress(packed, to)
	case pageSnappy:
		if n, err := snappy.DecodedLen(packed); err != nil || n != len(to) {
			return n, err
		}
		out, err := snappy.Decode(to, packed)
		return len(out), err
	case pageZstd:
		z, err := pageDecoder()
		if err != nil {
			return 0, err
		}
		out, err := z.DecodeAll(packed, to[:0])
		return copy(to, out), err
	}
	return 0, fmt.Errorf("packed in an unknown way (flags %#x)", flags)
}

// inflaters are kept: one has much more memory than a page.
var inflaters sync.Pool

func inflate(packed, to []byte) (n int, err error) {
	r, kept := inflaters.Get().(io.ReadCloser)
	if kept {
		err = r.(zlib.Resetter).Reset(bytes.NewReader(packed), nil)
	} else {
		r, err = zlib.NewReader(bytes.NewReader(packed))
	}
	if err != nil {
		return 0, err
	}
	defer inflaters.Put(r)
	return io.ReadFull(r, to)
}

// pageDecoder decodes frames of one page.
var pageDecoder = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(PageSize), zstd.WithDecoderLowmem(true))
})

// plain is an error without the file that it is about, of one line.
func plain(err error) error {
	var e *FormatError
	if errors.As(err, &e) {
		return errors.New(e.Want)
	}
	line, _, _ := bytes.Cut([]byte(err.Error()), []byte("\n"))
	return errors.New(string(line))
}
