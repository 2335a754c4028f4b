// Package compare compares instruction decoders: ours in its two views,
// x86asm, and others that run as child processes, over real code and over
// generated encodings.
//
// It must not know how any of them decodes, nor files' formats: it gets bytes,
// and asks each decoder the same questions.
package compare

import (
	"fmt"

	"golang.org/x/arch/x86/x86asm"

	"kprobelab/decoder"
)

// Answer is what a decoder says of some bytes.
type Answer struct {
	// Length is 0 for what is no instruction.
	Length int
	// Class is nil where the decoder does not say.
	Class *decoder.Class
	// Target is counted from the first byte; valid with HasTarget.
	HasTarget bool
	Target    int64
}

// String is the answer as the line protocol has it.
func (a Answer) String() string {
	switch {
	case a.Length == 0:
		return "0 -"
	case a.Class == nil:
		return fmt.Sprintf("%d ?", a.Length)
	case a.HasTarget:
		return fmt.Sprintf("%d %v %d", a.Length, *a.Class, a.Target)
	}
	return fmt.Sprintf("%d %v", a.Length, *a.Class)
}

// Decoder is one that can be asked.
type Decoder interface {
	Name() string
	// Ask fills in answers, one for each of the questions, up to 15 bytes each.
	Ask(questions [][]byte, answers []Answer) error
	// Close ends a child process.
	Close() error
}

// classes lets answers point at a class without allocating.
var classes = func() (t [256]decoder.Class) {
	for i := range t {
		t[i] = decoder.Class(i)
	}
	return t
}()

// Ours asks the decoder package for the processor's view.
func Ours(questions [][]byte, answers []Answer) {
	for n, q := range questions {
		answers[n] = Answer{}
		i, err := decoder.Decode(q)
		if err != nil {
			continue
		}
		answers[n] = Answer{Length: i.Length, Class: &classes[i.Class], HasTarget: i.HasTarget, Target: int64(i.Length) + i.Rel}
	}
}

// X86asm is golang.org/x/arch/x86/x86asm. It says no class.
type X86asm struct{}

// Name is "x86asm".
func (X86asm) Name() string { return "x86asm" }

// Close does nothing.
func (X86asm) Close() error { return nil }

// Ask decodes. An Op of 0 without an error is a refusal, and so is a panic, of
// which releases are known.
func (X86asm) Ask(questions [][]byte, answers []Answer) error {
	for n, q := range questions {
		answers[n] = askX86asm(q)
	}
	return nil
}

func askX86asm(q []byte) (a Answer) {
	defer func() {
		if recover() != nil {
			a = Answer{}
		}
	}()
	i, err := x86asm.Decode(q, 64)
	if err != nil || i.Op == 0 || i.Len > len(q) {
		return a
	}
	a.Length = i.Len
	for _, arg := range i.Args {
		if rel, ok := arg.(x86asm.Rel); ok {
			a.HasTarget, a.Target = true, int64(i.Len)+int64(rel)
		}
	}
	return a
}
