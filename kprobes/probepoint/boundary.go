package probepoint

import (
	"kprobelab/decoder"
	"kprobelab/kimage"
	"kprobelab/profile"
	"kprobelab/x86"
)

// maxInsn is the longest instruction, and the decoder's window, in bytes.
const maxInsn = 15

// checkBoundary proves that decoding from the symbol's start reaches the
// address exactly (can_probe, docs/spec 1.5), and where the release asks for it,
// that the instruction there is not one that only raises an exception.
func checkBoundary(v kimage.View, p *Point, c *profile.Config) error {
	if !c.Check.Boundary {
		return nil
	}
	w := walker{view: v, c: c}
	s := Step{Reached: p.Symbol.Name != "" && w.reaches(p.Symbol.Addr, p.Addr)}
	if s.Reached && c.Check.ExceptionInsn {
		s.decode(&w, p.Addr)
	}
	return s.check(p, c)
}

// raisesException is is_exception_insn of 6.12, without the traps of Clang's
// CFI, which no modelled kernel is built with.
func raisesException(k *decoder.Kernel) bool {
	switch k.Opcode[0] {
	case 0xcc, 0xcd, 0xce, 0xf1: // int3, int n, into, int1
		return true
	case 0x0f:
		op := k.Opcode[1]
		return op == 0xff || op == 0xb9 || op == 0x0b // ud0, ud1, ud2
	}
	return false
}

// walker decodes instruction after instruction, reading the code in chunks so
// that a long function costs few reads.
type walker struct {
	view kimage.View
	c    *profile.Config
	// buf holds n bytes of code from start on.
	buf   [256]byte
	start x86.Addr
	n     int
}

// reaches reports whether decoding from cur on arrives at addr exactly.
func (w *walker) reaches(cur, addr x86.Addr) bool {
	for cur < addr {
		k, err := decoder.DecodeKernel(w.at(cur), &w.c.Decoder)
		// Decoders before 5.12 report no errors, and a length of 0 would
		// never end.
		if err != nil || k.Length == 0 {
			return false
		}
		if k.Opcode[0] == 0xcc && !w.c.Check.PaddingInt3 {
			return false
		}
		cur = cur.Add(int64(k.Length))
	}
	return cur == addr
}

// at returns the code from addr on: a decoder's window, or less where mapped
// memory ends.
func (w *walker) at(addr x86.Addr) []byte {
	off := addr.Sub(w.start)
	if off < 0 || off+maxInsn > int64(w.n) {
		w.start, off = addr, 0
		w.n = w.view.CodeAt(addr, w.buf[:])
	}
	return w.buf[off:min(off+maxInsn, int64(w.n))]
}
