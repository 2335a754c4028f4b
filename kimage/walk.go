package kimage

import (
	"errors"
	"iter"

	"kprobelab/decoder"
	"kprobelab/profile"
	"kprobelab/x86"
)

// Step is one instruction on a walk through a function. No other code decides which
// instruction is at an address.
type Step struct {
	Addr x86.Addr
	// Reading holds the properties of the instruction that count: its length, the
	// kind of branch and its target. It is as the View's Reader and the kernel's
	// decoder read it. If the two differ, it is the kernel's decoder's, which a
	// kernel follows; but a decoder.Alone is always followed.
	Reading decoder.Reading
	// Read is the instruction as the View's Reader reads it.
	Read decoder.Reading
	// Insn is the instruction as the kernel's decoder sees it, for facts that no Reader
	// gives. It is not valid if Err is set.
	Insn decoder.Kernel
	// Err says why there is no instruction: ErrUnreadable, ErrNoLength or the
	// decoder's error. A walk ends with such a step.
	Err error
	// AfterInt3: the walk has passed an int3.
	AfterInt3 bool
}

// Why a walk ends before its function does.
var (
	// ErrUnreadable: no memory is mapped there.
	ErrUnreadable = errors.New("the code cannot be read")
	// ErrNoLength: a decoder that reports no errors (to 5.11) consumed
	// nothing, on which the kernel would walk for ever; or a decoder.Alone
	// finds no instruction.
	ErrNoLength = errors.New("an instruction of no length")
)

// Overruled reports whether the kernel's decoder reads the instruction
// differently from the View's Reader, and so decides against it.
func (s *Step) Overruled() bool { return s.Read != s.Reading }

// IsInt3 reports whether the instruction is an int3, which it may be with
// prefixes too.
func (s *Step) IsInt3() bool { return s.Reading.Kind == decoder.KindInt3 }

// IsPadding reports whether it is the single byte of int3 with which the
// compiler and the kernel fill what is never executed.
func (s *Step) IsPadding() bool { return s.IsInt3() && s.Reading.Length == 1 }

// Jump returns the target of a relative jump; false if the step is none.
func (s *Step) Jump() (to x86.Addr, ok bool) {
	return s.Reading.Target, s.Reading.Kind == decoder.KindJump
}

// Next is the address after the instruction.
func (s *Step) Next() x86.Addr { return s.Addr.Add(int64(s.Reading.Length)) }

// Walker reads one instruction after the other. It fetches code in chunks, so
// that a long function costs few reads of its View. It is for one goroutine.
type Walker struct {
	view   View
	d      *profile.Decoder
	reader decoder.Reader
	// alone: the reader is followed against the kernel's decoder.
	alone bool
	step  Step

	// buf holds n bytes of code from start on.
	buf   [256]byte
	start x86.Addr
	n     int
}

// NewWalker makes a Walker for a release of the kernel's decoder.
func NewWalker(v View, d *profile.Decoder) *Walker {
	w := &Walker{view: v, d: d, reader: v.Reader()}
	_, w.alone = w.reader.(decoder.Alone)
	return w
}

// At reads the instruction at an address. The Step is overwritten by the next
// call.
func (w *Walker) At(at x86.Addr) *Step {
	w.step.Addr, w.step.AfterInt3 = at, false
	w.read()
	return &w.step
}

// Function goes through a function from its start, as can_probe and
// can_optimize do. It ends with the function, or with a step whose Err is set.
// Each Step is overwritten by the next one.
func (w *Walker) Function(sym Symbol) iter.Seq[*Step] {
	return func(yield func(*Step) bool) {
		int3 := false
		for at := sym.Addr; uint64(at.Sub(sym.Addr)) < sym.Size; at = w.step.Next() {
			w.step.Addr, w.step.AfterInt3 = at, int3
			w.read()
			int3 = int3 || w.step.IsInt3()
			if !yield(&w.step) || w.step.Err != nil {
				return
			}
		}
	}
}

// Steps goes through a walk that was kept.
func Steps(kept []Step) iter.Seq[*Step] {
	return func(yield func(*Step) bool) {
		for i := range kept {
			if !yield(&kept[i]) {
				return
			}
		}
	}
}

// read decodes the instruction at step.Addr.
func (w *Walker) read() {
	s := &w.step
	b := w.code(s.Addr)
	if len(b) > 0 && b[0] == x86.Int3 && s.IsPadding() {
		return // the step before was an int3, too: most of a kernel's text is padding
	}
	s.Reading, s.Read = decoder.Reading{}, decoder.Reading{}
	if len(b) == 0 {
		s.Err = ErrUnreadable
		return
	}
	s.Read = w.reader.Read(b, s.Addr)
	s.Insn, s.Err = decoder.DecodeKernel(b, w.d)
	switch {
	case s.Err != nil:
	case w.alone:
		s.Reading = s.Read
	default:
		s.Reading = s.Insn.Reading(s.Addr)
	}
	if s.Err == nil && s.Reading.Length == 0 {
		s.Err, s.Reading = ErrNoLength, decoder.Reading{}
	}
}

// code is the code from an address on: as much as an instruction can have, or
// less where mapped memory ends.
func (w *Walker) code(at x86.Addr) []byte {
	off := at.Sub(w.start)
	if off < 0 || off+decoder.MaxInsnSize > int64(w.n) {
		w.start, off = at, 0
		w.n = w.view.CodeAt(at, w.buf[:])
	}
	return w.buf[off:min(off+decoder.MaxInsnSize, int64(w.n))]
}
