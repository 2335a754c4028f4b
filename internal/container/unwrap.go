package container

import (
	"bytes"
	"fmt"

	"kprobelab/internal/bounded"
)

// Unwrap returns the ELF that a file is or contains. The error is an *Error.
func Unwrap(b []byte, report func(string, int64, int64)) ([]byte, error) {
	at := int64(0)
	for depth := range bounded.Wraps {
		var err error
		switch {
		case IsELF(b) && depth == 0:
			return b, nil
		case IsELF(b):
			return bytes.Clone(b), nil // it is a part of the file
		case isBzImage(b):
			b, at, err = bzPayload(b)
		case isZboot(b):
			b, at, err = zbootPayload(b)
		case isPE(b):
			b, at, err = peKernel(b)
		case compressionOf(b) != nil:
			b, err = decompressImage(at, b, report)
			if err == nil && IsELF(b) {
				return b, nil
			}
		default:
			err = noImage(at, b, depth > 0)
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, bad(at, "an ELF is wanted, there are only files in files")
}

// noImage is the error for b, which stands at that offset of the file; inside of
// another format or not.
func noImage(at int64, b []byte, inside bool) error {
	if inside {
		return bad(at, "an ELF, or compressed data (gzip, zstd, xz, lz4, bzip2, lzma or lzo), is wanted here; %s", describe(b))
	}
	return bad(at, "an ELF or a Linux x86-64 bzImage is wanted; %s", describe(b))
}

// imageExtent returns the length of the image that begins with b; 0 if the image
// does not say. It fails if b begins neither an image nor a format that can contain
// one.
func imageExtent(at int64, b []byte) (int64, error) {
	switch {
	case IsELF(b):
		return elfExtent(b), nil
	case isBzImage(b) && len(b) >= bzHeaderEnd:
		off, n := bzPlace(b)
		return off + n, nil
	case isBzImage(b), isZboot(b), isPE(b), compressionOf(b) != nil:
		return 0, nil
	}
	return 0, noImage(at, b, true)
}

// elfExtent returns the length of the ELF that begins with b: the end of its
// headers and of the parts that they describe, as far as b has the headers. It
// returns 0 if b is no header.
func elfExtent(b []byte) int64 {
	if len(b) < ELFHeader {
		return 0
	}
	end := uint64(ELFHeader)
	reach := func(off, n uint64) { // one that overflows is for parseELF
		if off+n >= off {
			end = max(end, off+n)
		}
	}
	each := func(off, n, size uint64, do func(h []byte)) {
		reach(off, n*size)
		for ; n > 0 && off < uint64(len(b)) && size <= uint64(len(b))-off; n-- {
			do(b[off:])
			off += size
		}
	}
	each(le.Uint64(b[32:]), uint64(le.Uint16(b[56:])), ELFProgram, func(h []byte) {
		reach(le.Uint64(h[8:]), le.Uint64(h[32:]))
	})
	each(le.Uint64(b[40:]), uint64(le.Uint16(b[60:])), ELFSection, func(h []byte) {
		if le.Uint32(h[4:]) != elfNobits {
			reach(le.Uint64(h[24:]), le.Uint64(h[32:]))
		}
	})
	return int64(min(end, bounded.Image+1))
}

// describe describes a file that is no image, for the error's text.
func describe(b []byte) string {
	switch {
	case len(b) == 0:
		return "the file is empty"
	case len(b) >= 0x3c && string(b[0x38:0x3c]) == "ARM\x64":
		return "this is an arm64 kernel image"
	case len(b) >= 0x3c && string(b[0x38:0x3c]) == "RSC\x05":
		return "this is a RISC-V kernel image"
	case bytes.HasPrefix(b, []byte("!<arch>\n")):
		return "this is an archive"
	case isText(b):
		return "this is a text file"
	}
	return fmt.Sprintf("it begins with % x", b[:min(len(b), 8)])
}

func isText(b []byte) bool {
	b = b[:min(len(b), 512)]
	for _, c := range b {
		if c >= 0x7f || c < ' ' && c != '\n' && c != '\r' && c != '\t' {
			return false
		}
	}
	return true
}
