package own

import (
	"encoding/binary"
	"fmt"

	"kprobelab/x86"
)

const (
	// maxInsn is MAX_INSN_SIZE.
	maxInsn = 15
	// insnSize is more than struct insn has had in any release (112 bytes).
	insnSize = 256
	// modeKernel is INSN_MODE_KERN (asm/insn.h).
	modeKernel = 2
)

// Insn is the reading of some bytes by the image's decoder.
type Insn struct {
	Length int
	// Attr are the opcode's attributes (asm/inat.h).
	Attr uint32
	// Bad is true if the decoder reports an error (5.13 and later).
	Bad bool
}

// insnLayout has the offsets of fields in the image's struct insn. Since 4.x the
// structure has grown by one field in its middle (emulate_prefix_size).
type insnLayout struct{ attr, length int }

// Decode runs the decoder on code, of which it uses at most 15 bytes: insn_decode, or
// before 5.13 insn_init and insn_get_length.
func (k *Kernel) Decode(code []byte) (Insn, error) {
	bad, err := k.decode(code)
	if err != nil {
		return Insn{}, err
	}
	b := k.insn.Bytes()
	if k.layout == nil {
		if k.layout, err = k.findLayout(b); err != nil {
			return Insn{}, err
		}
	}
	i := Insn{Length: int(b[k.layout.length]), Attr: binary.LittleEndian.Uint32(b[k.layout.attr:]), Bad: bad}
	if i.Length > maxInsn {
		return Insn{}, fmt.Errorf("the decoder found an instruction of %d bytes: %w", i.Length, ErrNonsense)
	}
	return i, nil
}

// decode leaves the struct insn of code in k.insn.
func (k *Kernel) decode(code []byte) (bad bool, err error) {
	buf := make([]byte, maxInsn)
	n := uint64(copy(buf, code))
	if _, err := k.code.Write(buf); err != nil {
		return false, err
	}
	if _, err := k.insn.Write(make([]byte, insnSize)); err != nil {
		return false, err
	}
	insn, at := uint64(k.insn.Addr), uint64(k.code.Addr)
	if k.Has("insn_decode") {
		v, err := k.Call("insn_decode", insn, at, n, modeKernel)
		if r := int32(v); err == nil && (r > 0 || r < -4095) {
			err = fmt.Errorf("insn_decode returned %d, neither 0 nor an error: %w", r, ErrNonsense)
		}
		return int32(v) != 0, err
	}
	if _, err := k.Call("insn_init", insn, at, n, 1); err != nil {
		return false, err
	}
	_, err = k.Call("insn_get_length", insn)
	return false, err
}

// findLayout finds the field kaddr, which points to the code. Those that are
// wanted stand before it: attr, opnd_bytes, addr_bytes, length, x86_64.
func (k *Kernel) findLayout(b []byte) (*insnLayout, error) {
	for at := 72; at+8 <= len(b); at += 8 {
		if x86.Addr(binary.LittleEndian.Uint64(b[at:])) != k.code.Addr {
			continue
		}
		switch {
		case b[at-1] == 1: // to 5.4 nothing is between
			return &insnLayout{attr: at - 8, length: at - 2}, nil
		case b[at-5] == 1: // later the fields begin 4 bytes further on, and 4 are left free
			return &insnLayout{attr: at - 12, length: at - 6}, nil
		}
	}
	return nil, fmt.Errorf("the decoder left no struct insn that is known here: %w", ErrNonsense)
}

// boostForm is the type of can_boost's first argument.
type boostForm int

const (
	boostUnknown boostForm = iota
	// boostInsn: a struct insn (4.12 and later, and vendors' kernels).
	boostInsn
	// boostBytes: a pointer to the instruction.
	boostBytes
)

// CanBoost calls can_boost: may the instruction, if it stood at an address, run out of
// line without a trap? The address matters only if the exception table has it.
func (k *Kernel) CanBoost(code []byte, addr x86.Addr) (bool, error) {
	if k.form == boostUnknown {
		if err := k.findForm(); err != nil {
			return false, err
		}
	}
	if _, err := k.decode(code); err != nil {
		return false, err
	}
	return k.canBoost(addr)
}

func (k *Kernel) canBoost(addr x86.Addr) (bool, error) {
	arg := k.insn.Addr
	if k.form == boostBytes {
		arg = k.code.Addr
	}
	return k.truth("can_boost", uint64(arg), uint64(addr))
}

// findForm tries loopne, which no kernel boosts. If can_boost takes an instruction's
// bytes, it reads the struct insn as bytes: it begins with zeros (there are no
// prefixes), and 0 is an add, which was always boosted.
func (k *Kernel) findForm() error {
	if _, err := k.decode([]byte{0xe0, 0xfe}); err != nil {
		return err
	}
	k.form = boostInsn
	misread, err := k.canBoost(0)
	if err == nil && misread {
		k.form = boostBytes
		misread, err = k.canBoost(0)
	}
	if err == nil && misread {
		err = fmt.Errorf("can_boost boosts loopne, which jumps: %w", ErrNonsense)
	}
	if err != nil {
		k.form = boostUnknown
	}
	return err
}
