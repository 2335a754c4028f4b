package report

import (
	"fmt"

	"kprobelab/optimizer"
)

// Overruled is an instruction of the function that the kernel's decoder reads
// differently from the decoder that was asked. The answer follows the kernel's.
type Overruled struct {
	Instruction
	// Read is the instruction by the decoder that was asked, Kernel by the kernel's
	// decoder, such as "3 bytes, no branch".
	Read   string `json:"read"`
	Kernel string `json:"kernel"`
	// Matters: the answer might be another one without the difference.
	Matters bool `json:"matters"`
}

// overruled are the differences, and a note for each that matters.
func (x *explainer) overruled() {
	x.e.Decoder = x.View.Reader().String()
	rest := 0
	for i := range x.v.Overruled {
		o := &x.v.Overruled[i]
		e := x.newOverruled(o)
		x.e.Overruled = append(x.e.Overruled, e)
		if !o.Matters {
			rest++
			continue
		}
		x.note("%s: to %s, %s is %s; the kernel's decoder reads %s, and it decides",
			x.named(o.Insn.Addr.String()), x.v.Reader, e.Text, e.Read, e.Kernel)
	}
	if rest > 0 {
		x.note("the kernel's decoder reads %s of the function differently from %s, which does not matter here", Counted(rest, "instruction"), x.v.Reader)
	}
}

func (x *explainer) newOverruled(o *optimizer.Overruled) Overruled {
	return Overruled{
		Instruction: *x.newInstruction(o.Insn.Addr, o.Insn.Bytes()),
		Read:        x.named(o.Read.String()), Kernel: x.named(o.Kernel.String()), Matters: o.Matters,
	}
}

func (x *explainer) note(format string, args ...any) {
	x.e.Notes = append(x.e.Notes, fmt.Sprintf(format, args...))
}

// Counted is such as "one place" or "3 places".
func Counted(n int, what string) string {
	if n == 1 {
		return "one " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
