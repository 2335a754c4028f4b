package cpumodel

import (
	"fmt"

	"kprobelab/decoder"
)

// Processor executes some of the instructions that the decoder knows.
type Processor struct {
	// Reads says by which maker's rules it reads bytes in which processors differ.
	Reads decoder.Processor
	// executes has the keys of the extensions that it has.
	executes map[string]bool
}

// WithFlags is the processor of a vendor, as CPUID names it, of which a kernel has these
// flags (those of /proc/cpuinfo, and some that it does not show). What no kernel has a flag
// of, it does not execute.
func WithFlags(vendor string, has func(flag string) bool) Processor {
	return newProcessor(readsAsAMD(vendor), func(e *extension) bool { return e.byFlags(has) })
}

// newProcessor asks each extension whether it is there.
func newProcessor(amd bool, has func(*extension) bool) Processor {
	p := Processor{executes: map[string]bool{}}
	for name, e := range extensions() {
		p.executes[name] = has(e)
	}
	p.Reads = decoder.Processor{AMD: amd, NoMPX: !p.Executes("MPX")}
	return p
}

// readsAsAMD: Hygon's processors are AMD's design.
func readsAsAMD(vendor string) bool { return vendor == "AuthenticAMD" || vendor == "HygonGenuine" }

// Executes reports whether the processor has an extension of the decoder's rows.
func (p *Processor) Executes(extension string) bool { return p.executes[extension] }

// Lacks names the extension for want of which the processor does not execute an
// instruction, "" where it executes it. An instruction that is another one, or a nop,
// without its extension is executed everywhere.
func (p *Processor) Lacks(i *decoder.Inst) string {
	own := "=" + i.Mnemonic()
	e := extensions()[own]
	for n, name := range i.Extensions() {
		switch {
		case e == nil, name == "APX_F", name == "AVX512VL":
		case n == 0 || !e.always(): // EVEX has no nops, and no other instruction
			if !p.executes[own] {
				return name
			}
			continue
		}
		if !p.executes[name] {
			return name
		}
	}
	return ""
}

// Knows reports whether the processor executes an instruction.
func (p *Processor) Knows(i *decoder.Inst) bool { return p.Lacks(i) == "" }

// LacksError: the bytes are an instruction of an extension that the processor does not
// have (#UD). It is a decoder.ErrUnknown.
type LacksError struct {
	// Insn is the mnemonic.
	Insn, Extension string
}

func (e *LacksError) Error() string {
	return fmt.Sprintf("%s needs %s, which the processor does not have", e.Insn, e.Extension)
}

func (e *LacksError) Unwrap() error { return decoder.ErrUnknown }

// Decode finds the instruction that the processor executes at the start of b. The error is
// the decoder's, or a LacksError.
func (p *Processor) Decode(b []byte) (decoder.Inst, error) {
	i, err := p.Reads.Decode(b)
	if err == nil {
		if name := p.Lacks(&i); name != "" {
			return decoder.Inst{}, &LacksError{i.Mnemonic(), name}
		}
	}
	return i, err
}
