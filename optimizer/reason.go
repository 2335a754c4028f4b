package optimizer

import (
	"fmt"

	"kprobelab/decoder"
	"kprobelab/kimage"
	"kprobelab/kprobes/rule"
	"kprobelab/x86"
)

// Insn is one instruction of the code under test.
type Insn struct {
	Addr x86.Addr
	// Code[:Len] are its bytes, the original ones.
	Code [decoder.MaxInsnSize]byte
	Len  int
}

// Bytes are the instruction's bytes.
func (i *Insn) Bytes() []byte { return i.Code[:i.Len] }

// Text is the instruction disassembled. It is made anew at each call.
func (i *Insn) Text() string { return decoder.Text(i.Bytes(), i.Addr) }

// Reason is one rule that refuses, and where.
type Reason struct {
	ID rule.ID
	// Addr is the address of the instruction or patch site that the rule concerns.
	Addr x86.Addr
	// Insn is the instruction at Addr if the rule concerns one; its Len is 0 otherwise.
	Insn Insn
	// Target is the destination of a jump, or the buffer that is too far; else 0.
	Target x86.Addr
	// BeyondDoc: by the documentation this would be no reason (a jump to A+5).
	BeyondDoc bool

	in kimage.Symbol
}

// Sentence says the reason in one sentence for people.
func (r *Reason) Sentence() string {
	insn := "the instruction"
	if r.Insn.Len > 0 {
		insn = r.Insn.Text()
	}
	s := r.ID.Here(r.place(r.Addr), insn, r.place(r.Target))
	if r.BeyondDoc {
		s += " (this is the byte after the 5: harmless, and allowed by the documentation, but the code refuses it)"
	}
	return s
}

// place is an address as symbol+0xoff within the probed function.
func (r *Reason) place(a x86.Addr) string {
	off := uint64(a.Sub(r.in.Addr))
	if r.in.Name == "" || off > r.in.Size {
		return a.String()
	}
	return fmt.Sprintf("%s+%#x", r.in.Name, off)
}

// Refusal is the error of BuildDetour: no buffer can be made. errors.Is finds
// the kernel's error number: ERANGE, EINVAL or EBUSY.
type Refusal struct{ Reason Reason }

// Error says why.
func (e *Refusal) Error() string {
	return "no detour buffer: " + e.Reason.Sentence()
}

// Unwrap gives the error number.
func (e *Refusal) Unwrap() error { return e.Reason.ID.Errno() }
