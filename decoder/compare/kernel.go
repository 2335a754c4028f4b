package compare

import (
	"fmt"
	"strings"

	"kprobelab/decoder"
	"kprobelab/profile"
)

// Kernel is the kernel's own decoder of a release as a Decoder. It classifies instructions as
// kprobes does, by the opcode bytes.
type Kernel struct {
	release string
	d       profile.Decoder
}

// NewKernel makes the decoder of a release, such as 6.12, with the rules of profile.Named.
func NewKernel(release string) (*Kernel, error) {
	c, ok := profile.Named(release)
	if !ok {
		return nil, fmt.Errorf("there is no kernel %q: there are %s", release, strings.Join(profile.All(), ", "))
	}
	return &Kernel{release, c.Decoder}, nil
}

// Name is such as "kernel:6.12".
func (k *Kernel) Name() string { return "kernel:" + k.release }

// Close does nothing.
func (k *Kernel) Close() error { return nil }

// Ask decodes.
func (k *Kernel) Ask(questions [][]byte, answers []Answer) error {
	for n, q := range questions {
		answers[n] = Answer{}
		if i, err := decoder.DecodeKernel(q, &k.d); err == nil && i.Length > 0 {
			answers[n] = KernelAnswer(&i)
		}
	}
	return nil
}

// KernelAnswer is the kernel's view as an answer.
func KernelAnswer(k *decoder.Kernel) Answer {
	a := Answer{Length: k.Length, Class: &classes[k.Class()]}
	if k.HasTarget() {
		a.HasTarget, a.Target = true, int64(k.Length)+k.Imm
	}
	return a
}
