package hazard

import (
	"encoding/hex"
	"errors"
	"fmt"

	"kprobelab/decoder"
	"kprobelab/internal/cpumodel"
	"kprobelab/x86"
)

// lock is the prefix.
const lock = 0xF0

// reach is the number of bytes that are decoded after a wrong address.
const reach = 64

// landing returns the effect of executing at an address that is not the next boundary, and the
// first instruction there in words. If the instructions touch registers only, until they reach the
// function's own instructions, the function continues, with a wrong register or without an
// instruction that was not run. Otherwise the effect is an oops.
func (p *point) landing(at x86.Addr) (Effect, string) {
	var buf [reach]byte
	b := buf[:p.view.CodeAt(at, buf[:])]
	bounds := p.boundaries()
	if bounds[at] {
		return WrongResult, "so that what lies between is not run"
	}
	i, err := p.decode(b)
	var lacks *cpumodel.LacksError
	switch {
	case errors.As(err, &lacks):
		return Oops, "where " + lacks.Error()
	case err != nil:
		return Oops, "where no instruction is"
	}
	runs := fmt.Sprintf("where the processor runs %s: %s", hex.EncodeToString(i.Bytes()), i.Text(at))
	back, ok := p.back(at, b, bounds)
	next := p.at.Add(int64(p.place.Slot.InsnLen))
	switch {
	case !ok:
		return Oops, runs
	case back <= next.Add(1): // the first instruction of the function, without its lock prefix at most
		return WrongRegister, runs
	}
	return WrongResult, runs
}

// decode reads the instruction that the processor executes at the start of b.
func (p *point) decode(b []byte) (decoder.Inst, error) { return p.view.Processor().Decode(b) }

// back follows the wrong instructions to the next own boundary of the function; false if any of
// them touches memory or branches before.
func (p *point) back(at x86.Addr, b []byte, bounds map[x86.Addr]bool) (x86.Addr, bool) {
	for off := 0; off < len(b); {
		if a := at.Add(int64(off)); bounds[a] {
			return a, true
		}
		i, err := p.decode(b[off:])
		if err != nil || i.HasTarget || i.Class != decoder.ClassNone || touchesMemory(&i) {
			return 0, false
		}
		off += i.Length
	}
	return 0, false
}

// boundaries returns the addresses of the function's own instructions from the probe on. The int3
// that pad the text after a return or a jump are left out. The address after a lock prefix counts
// too: without its prefix an instruction does the same.
func (p *point) boundaries() map[x86.Addr]bool {
	var buf [reach]byte
	b := buf[:p.view.CodeAt(p.at, buf[:])]
	list := map[x86.Addr]bool{}
	for off := 0; off < len(b); {
		i, err := decoder.Decode(b[off:]) // of all extensions: the function is not run past what the processor lacks
		if err != nil {
			break
		}
		if b[off] == lock {
			list[p.at.Add(int64(off)+1)] = true
		}
		if off += i.Length; off < len(b) && b[off] != x86.Int3 {
			list[p.at.Add(int64(off))] = true
		}
	}
	return list
}

// touchesMemory: it has a memory operand, or uses the stack.
func touchesMemory(i *decoder.Inst) bool {
	if i.HasModRM && i.ModRM>>6 != 3 {
		return true
	}
	if i.HasModRM {
		return false
	}
	op := i.Opcode
	return op >= 0x50 && op <= 0x5F || op == 0x68 || op == 0x6A || op >= 0xA0 && op <= 0xA7 || op >= 0xAA && op <= 0xAF || op == 0xC9
}
