package optimizer

import (
	"slices"

	"kprobelab/decoder"
	"kprobelab/errno"
	"kprobelab/kimage"
	"kprobelab/profile"
	"kprobelab/x86"
)

// Verdict is the decision about the optimization of a probe at an address, with its reasons.
type Verdict struct {
	Addr x86.Addr
	// Symbol is the function around Addr, and Offset is Addr's offset in it; both are zero if no
	// symbol covers Addr.
	Symbol kimage.Symbol
	Offset uint64
	// OK: no rule refuses.
	OK bool
	// Reasons are all that refuse, in the order in which the kernel would meet
	// them. It knows only the first.
	Reasons []Reason
	// DCR is the detoured code region: whole instructions from Addr on that
	// cover the 5 bytes of the jump, as far as they can be decoded.
	DCR x86.Range
	// JTPR is the jump target prohibition region.
	JTPR x86.Range
	// Copied are the instructions of the DCR.
	Copied []Insn
	// Overruled are the instructions of the function that the kernel's decoder
	// reads differently from Reader, the name of the View's. The verdict
	// follows the kernel's.
	Overruled []Overruled
	Reader    string
}

// Overruled is an instruction that the kernel's decoder reads differently from
// the processor.
type Overruled struct {
	Insn Insn
	// Read is the result of the Reader, Kernel the result of the kernel's decoder.
	Read, Kernel decoder.Reading
	// Matters: the verdict might be different without the difference.
	Matters bool
}

// overrule records the instructions that the kernel's decoder reads differently.
func (q *question) overrule() {
	q.v.Reader = q.view.Reader().String()
	for _, o := range q.fn.overruled {
		o.Insn = q.insnAt(o.Insn.Addr, max(o.Read.Length, o.Kernel.Length), 1)
		o.Matters = q.matters(&o)
		q.v.Overruled = append(q.v.Overruled, o)
	}
}

// matters is false if both readings have the same length and are plain instructions or jumps that
// do not lead into the JTPR, if the instruction is outside the DCR, and if no reason names it.
func (q *question) matters(o *Overruled) bool {
	plain := func(r decoder.Reading) bool {
		return r.Kind == decoder.KindPlain || r.Kind == decoder.KindJump && !q.v.JTPR.Contains(r.Target)
	}
	cited := func(r Reason) bool { return r.Addr == o.Insn.Addr }
	return o.Read.Length != o.Kernel.Length || !plain(o.Read) || !plain(o.Kernel) ||
		q.v.DCR.Contains(o.Insn.Addr) || slices.ContainsFunc(q.v.Reasons, cited)
}

// Stops returns the reason at which the kernel stops, nil if there is none.
func (v *Verdict) Stops() *Reason {
	if len(v.Reasons) == 0 {
		return nil
	}
	return &v.Reasons[0]
}

// Errno returns the error number of preparing the buffer in the kernel, which ignores it and leaves
// the probe with its int3 (docs/spec 4.2); 0 if preparing would succeed or is not tried.
func (v *Verdict) Errno() errno.Errno {
	if s := v.Stops(); s != nil {
		return s.ID.Errno()
	}
	return 0
}

// Check applies every rule to a probe at that address. See NewScanner for the assumed address of
// its detour buffer.
func Check(v kimage.View, at x86.Addr, c *profile.Config) Verdict { return NewScanner(v, c).Check(at) }
