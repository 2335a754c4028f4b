package container

import (
	"bytes"
	"strings"
)

// A unified kernel image is a PE program of systemd's that brings its kernel
// along, a bzImage in the section .linux (UAPI Group, "Unified Kernel Image").

// Offsets in a PE file (Microsoft, "PE Format").
const (
	peAt = 0x3c // in the MZ header: where the PE header is

	peMachine  = 4
	peSections = 6
	peOptional = 20 // the optional header's size
	peHeader   = 24

	peSection     = 40
	peVirtualSize = 8
	peRawSize     = 16
	peRawAt       = 20

	peAMD64 = 0x8664
)

func isPE(b []byte) bool { return bytes.HasPrefix(b, []byte("MZ")) }

// peKernel returns the kernel in a unified image, and its offset in the file.
func peKernel(b []byte) (kernel []byte, off int64, err error) {
	if len(b) < peAt+4 {
		return nil, 0, bad(int64(len(b)), "the PE file is cut off")
	}
	at := int64(le.Uint32(b[peAt:]))
	if at > int64(len(b))-peHeader || !bytes.HasPrefix(b[at:], []byte("PE\x00\x00")) {
		return nil, 0, bad(at, "a Linux kernel is wanted, this is a program for MS-DOS")
	}
	h := b[at:]
	if m := le.Uint16(h[peMachine:]); m != peAMD64 {
		return nil, 0, bad(at+peMachine, "an x86-64 kernel is wanted, this PE file is for machine %#x", m)
	}
	table := peHeader + int64(le.Uint16(h[peOptional:]))
	for i := range int64(le.Uint16(h[peSections:])) {
		from := table + i*peSection
		if from > int64(len(h))-peSection {
			return nil, 0, bad(at+from, "the PE file's section table is cut off")
		}
		s := h[from:]
		if strings.TrimRight(string(s[:8]), "\x00") != ".linux" {
			continue
		}
		off = int64(le.Uint32(s[peRawAt:]))
		n := int64(le.Uint32(s[peRawSize:])) // aligned: the size in memory is the kernel's
		if v := int64(le.Uint32(s[peVirtualSize:])); v != 0 {
			n = min(n, v)
		}
		if off > int64(len(b)) || n > int64(len(b))-off {
			return nil, 0, bad(off, "the section .linux of %d bytes at %#x is cut off", n, off)
		}
		return b[off : off+n], off, nil
	}
	return nil, 0, bad(at, "this is a PE file without the Linux boot header, and without a section .linux")
}
