package archive

import "kprobelab/x86"

// A symbol's mark: how its code begins, as far as resolving a probe asks, whether its
// function has an ftrace site, and whether errors may be injected into it.
const (
	markHead       = 7
	markTraceable  = 8
	markInjectable = 16
)

// heads are the beginnings of functions by their numbers. The last is any other
// code; the first is none that can be read.
var heads = [8]string{
	0: "",
	1: "\xf3\x0f\x1e\xfa", // endbr64
	2: "\xf3\x0f\x1e\xfb", // endbr32
	3: "\x66\x0f\x1f\x00", // what the kernel writes over an ENDBR
	4: "\x0f\x1f\x40\xd6", // the same from 6.18 on
	5: "\x00\x00\x00\x00",
	6: "\x00\x00\x00\x00",
	7: "\x00\x00\x00\x00",
}

const headOther = 5

type code interface {
	CodeAt(a x86.Addr, b []byte) int
}

func headOf(v code, a x86.Addr) byte {
	var b [4]byte
	if v.CodeAt(a, b[:]) < len(b) {
		return 0
	}
	for i, h := range heads[1:headOther] {
		if h == string(b[:]) {
			return byte(i + 1)
		}
	}
	return headOther
}
