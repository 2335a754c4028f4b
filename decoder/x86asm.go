package decoder

import (
	"golang.org/x/arch/x86/x86asm"
)

// Fault classifies the error in x86asm's answer for a row of opcodes/.
type Fault uint8

// The faults. The file writes them as these names, none as "-".
const (
	// FaultNone: x86asm gives every instruction of the row its length.
	FaultNone Fault = iota
	// FaultSome: it gives some instructions of the row another length, or
	// refuses them.
	FaultSome
	// FaultLength: it accepts the row with wrong lengths.
	FaultLength
	// FaultName: it takes some or all of the row for another instruction.
	FaultName
	// FaultSilent: it refuses the whole row.
	FaultSilent
)

var faultNames = [...]string{"-", "some", "length", "name", "silent"}

// String is the fault's name in opcodes/.
func (f Fault) String() string { return faultNames[f] }

func faultOf(name string) (Fault, bool) {
	for f, s := range faultNames {
		if s == name {
			return Fault(f), true
		}
	}
	return 0, false
}

// Override is a row of opcodes/ that x86asm gets wrong or does not know.
type Override struct {
	Encoding Encoding
	Opcode   byte
	Mnemonic string
	Fault    Fault
	// Extension is the instruction set extension, by its name in a manual's index.
	Extension string
	// Reference is the manual and the table or page that describe the row.
	Reference string
	// Line of opcodes/ENCODING.txt.
	Line int
}

// Overrides lists the rows by which the tables correct the x86asm of go.mod, in
// the order of the files.
func Overrides() []Override {
	var list []Override
	for e := EncPrimary; e < numEncodings; e++ {
		for _, r := range opcodesOf(e).rows {
			if r.x86asm == FaultNone {
				continue
			}
			list = append(list, overrideOf(e, &r))
		}
	}
	return list
}

func overrideOf(e Encoding, r *row) Override {
	return Override{
		Encoding: e, Opcode: r.opcode, Mnemonic: r.mnemonic, Fault: r.x86asm,
		Extension: r.ext, Reference: reference(r), Line: r.line,
	}
}

// Override is the instruction's row, where it corrects x86asm; false where
// x86asm is right about all of the row.
func (i *Inst) Override() (Override, bool) {
	r := i.opcodeRow()
	if r.x86asm == FaultNone {
		return Override{}, false
	}
	return overrideOf(i.Encoding, r), true
}

// X86asm is x86asm's Inst of the same bytes; false where x86asm refuses them,
// finds another length, or names another instruction.
func (i *Inst) X86asm() (x86asm.Inst, bool) {
	switch i.opcodeRow().x86asm {
	case FaultSilent, FaultLength, FaultName:
		return x86asm.Inst{}, false
	}
	asm, err := x86asm.Decode(i.code[:i.Length], 64)
	return asm, err == nil && asm.Op != 0 && asm.Len == i.Length
}
