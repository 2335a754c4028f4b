package optimizer

import (
	"errors"

	"kprobelab/decoder"
	"kprobelab/kimage"
	"kprobelab/profile"
	"kprobelab/x86"
)

const opInt3 = 0xCC

// errStuck: a decoder without errors (to 5.11) found nothing to consume, on
// which the kernel would walk for ever.
var errStuck = errors.New("an instruction of no length")

// walker goes through a function one instruction at a time, reading the code
// in chunks so that a long function costs few reads.
type walker struct {
	view   kimage.View
	c      *profile.Config
	thunks x86.Range

	// at is the instruction, k its decoding.
	at x86.Addr
	k  decoder.Kernel

	// buf holds n bytes of code from start on.
	buf   [256]byte
	start x86.Addr
	n     int
}

// code returns the code from addr on: a decoder's window, or less where mapped
// memory ends.
func (w *walker) code(addr x86.Addr) []byte {
	off := addr.Sub(w.start)
	if off < 0 || off+decoder.MaxInsnSize > int64(w.n) {
		w.start, off = addr, 0
		w.n = w.view.CodeAt(addr, w.buf[:])
	}
	return w.buf[off:min(off+decoder.MaxInsnSize, int64(w.n))]
}

// visit decodes the instruction at an address and returns the rules by which
// it forbids optimizing any address of its function (docs/spec 4.3, steps 4.1 to
// 4.4). The walk cannot go on behind one that could not be decoded; k.Length
// is 0 then.
func (w *walker) visit(at x86.Addr) (s reasonSet) {
	w.at = at
	if _, ok := w.view.ExceptionEntry(at); ok {
		s.add(ExceptionEntry)
	}
	b := w.code(at)
	if len(b) == 0 {
		w.k.Length = 0
		s.add(Unreadable)
		return s
	}
	var err error
	if w.k, err = decodeAt(b, w.c); err != nil {
		w.k.Length = 0
		s.add(Undecodable)
		return s
	}
	if w.k.Opcode[0] == opInt3 && w.c.Optimize.Int3Blocks {
		s.add(Int3InFunction)
	}
	s |= w.indirect()
	return s
}

// decodeAt is DecodeKernel with a length of 0 as an error.
func decodeAt(b []byte, c *profile.Config) (decoder.Kernel, error) {
	k, err := decoder.DecodeKernel(b, &c.Decoder)
	if err == nil && k.Length == 0 {
		err = errStuck
	}
	return k, err
}

// insn is the instruction for a Verdict. One that could not be decoded gets
// the bytes that were read, for the eye.
func (w *walker) insn() Insn {
	i := Insn{Addr: w.at, Len: w.k.Length}
	n := copy(i.Code[:], w.code(w.at))
	if i.Len == 0 {
		i.Len = min(n, 1)
	}
	clear(i.Code[i.Len:])
	return i
}
