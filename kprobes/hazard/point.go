package hazard

import (
	"fmt"

	"kprobelab/decoder"
	"kprobelab/kimage"
	"kprobelab/kprobes/probepoint"
	"kprobelab/kprobes/slot"
	"kprobelab/profile"
	"kprobelab/x86"
)

// Finding is a hazard at a point.
type Finding struct {
	ID     ID     `json:"id"`
	Effect Effect `json:"effect"`
	// Says is the consequence at this point, in words.
	Says string `json:"says"`
	// Lands is the wrong address that control reaches, 0 if the hazard is another.
	Lands x86.Addr `json:"-"`
}

// At lists the hazards of a probe at an address that would run as place describes, in the table's
// order. If a jump replaces the int3, the copy runs in the detour buffer; until the optimizer has
// made the jump, the list holds.
func At(v kimage.View, at x86.Addr, place *probepoint.Placement, c *profile.Config) (list []Finding) {
	if place.How == probepoint.Ftrace {
		return nil
	}
	p := point{view: v, at: at, place: place, c: c}
	for i := range table {
		h := &table[i]
		if h.at == nil || !h.in(c) {
			continue
		}
		p.lands = 0
		if effect, says := h.at(&p); effect != "" {
			list = append(list, Finding{h.ID, effect, says, p.lands})
		}
	}
	return list
}

// point is a probe's place and the kernel's configuration, for which hazards are looked up.
type point struct {
	view  kimage.View
	at    x86.Addr
	place *probepoint.Placement
	c     *profile.Config
	// lands becomes Finding.Lands; the hazard's function sets it.
	lands x86.Addr
}

// insn is the copied instruction.
func (p *point) insn() []byte { return p.place.Slot.Bytes[:p.place.Slot.InsnLen] }

// emulated returns the emulation if it is of one of these kinds, nil if the copy is stepped.
func (p *point) emulated(kinds ...slot.Kind) *slot.Emulation {
	e := &p.place.Slot.Emulation
	if p.place.How != probepoint.Emulated {
		return nil
	}
	for _, k := range kinds {
		if e.Kind == k {
			return e
		}
	}
	return nil
}

func (p *point) stepped() bool { return p.place.How == probepoint.Stepped }

// name is SYM+OFF, or the address.
func (p *point) name(a x86.Addr) string {
	if s, ok := p.view.SymbolAt(a); ok {
		return fmt.Sprintf("%s+%#x", s.Name, uint64(a.Sub(s.Addr)))
	}
	return a.String()
}

// isVEX reports whether the opcode follows a VEX, EVEX or XOP prefix.
func (p *point) isVEX() bool {
	b := p.insn()
	for len(b) > 1 && decoder.IsLegacyPrefix(b[0]) {
		b = b[1:]
	}
	switch b[0] {
	case 0xC4, 0xC5, 0x62, 0x8F: // what pops (8F /0) is not emulated
		return true
	}
	return false
}

func callPrefix(p *point) (Effect, string) {
	e := p.emulated(slot.EmulateCall)
	if e == nil || e.Len == x86.Rel32Size || p.isVEX() {
		return "", ""
	}
	effect, runs := p.landing(p.at.Add(x86.Rel32Size))
	p.lands = p.at.Add(x86.Rel32Size)
	return effect, fmt.Sprintf("the call has %d bytes and returns to %s, %s", e.Len, p.name(p.at.Add(x86.Rel32Size)), runs)
}

func callRegister(p *point) (Effect, string) {
	e := p.emulated(slot.EmulateCallIndirect)
	if e == nil || e.Len == x86.Rel32Size || p.isVEX() {
		return "", ""
	}
	effect, runs := p.landing(p.at.Add(x86.Rel32Size))
	p.lands = p.at.Add(x86.Rel32Size)
	return effect, fmt.Sprintf("the call has %d bytes and returns to %s in place of %s, %s",
		e.Len, p.name(p.at.Add(x86.Rel32Size)), p.name(p.at.Add(int64(e.Len))), runs)
}

// rsp is the number of the stack pointer among the registers.
const rsp = 4

func callRSP(p *point) (Effect, string) {
	if e := p.emulated(slot.EmulateCallIndirect); e == nil || e.Type != rsp {
		return "", ""
	}
	return Oops, "it goes to the stack pointer after the push, 8 bytes lower, where the return address is run as code"
}

func jle(p *point) (Effect, string) {
	e := p.emulated(slot.EmulateJcc)
	if e == nil || e.Type < 14 || p.isVEX() {
		return "", ""
	}
	to, next := p.at.Add(int64(e.Len)+int64(e.Rel32)), p.at.Add(int64(e.Len))
	if e.Type == 14 {
		return WrongResult, fmt.Sprintf("jle %s is never taken: %s follows always", p.name(to), p.name(next))
	}
	return WrongResult, fmt.Sprintf("jg %s is always taken, where the operands are less or equal too", p.name(to))
}

// jcxz is the kind of loop that tests and does not count.
const jcxz = 3

func loopCount(p *point) (Effect, string) {
	e := p.emulated(slot.EmulateLoop)
	if e == nil || e.Type == jcxz || p.isVEX() {
		return "", ""
	}
	return WrongResult, fmt.Sprintf("with rcx = 1 it goes to %s once too often, and counts on below zero", p.name(p.at.Add(int64(e.Len)+int64(e.Rel32))))
}

func loopECX(p *point) (Effect, string) {
	e := p.emulated(slot.EmulateLoop)
	if e == nil || e.Type == jcxz || e.AddrSize != 32 || p.isVEX() {
		return "", ""
	}
	return WrongRegister, "the upper half of rcx stays as it was"
}

func retImm(p *point) (Effect, string) {
	e := p.emulated(slot.EmulateRet)
	if e == nil || e.Far || e.RetImm == 0 || p.isVEX() {
		return "", ""
	}
	return Oops, fmt.Sprintf("the caller goes on with a stack pointer that is %d bytes too low", e.RetImm)
}

func farRet(p *point) (Effect, string) {
	e := p.emulated(slot.EmulateRet)
	if e == nil || !e.Far || p.isVEX() {
		return "", ""
	}
	return Oops, "it goes on in the segment that it is in, with the code segment's word still on the stack"
}

// vex describes the kernel's routine that runs in place of the instruction.
func vex(p *point) (Effect, string) {
	e := &p.place.Slot.Emulation
	if p.place.How != probepoint.Emulated || !p.isVEX() {
		return "", ""
	}
	b := p.insn()
	insn := decoder.Text(b, p.at)
	next := p.at.Add(int64(e.Len))
	switch e.Kind {
	case slot.EmulateIfModifiers:
		switch e.Type {
		case 0xFA:
			return Hang, insn + " is taken for cli: it is not run, and interrupts are off from there on"
		case 0xFB:
			return WrongResult, insn + " is taken for sti: it is not run, and interrupts are on from there on"
		}
		return Oops, insn + " is taken for pushf or popf: the stack pointer is 8 bytes off"
	case slot.EmulateRet:
		return Oops, insn + " is taken for ret: what is on top of the stack is gone to"
	case slot.EmulateCall, slot.EmulateCallIndirect, slot.EmulateJmpIndirect:
		return Oops, insn + " is taken for a call or a jump through a register"
	case slot.EmulateLoop:
		if e.Type != jcxz {
			return WrongRegister, insn + " is taken for loop: it is not run, and rcx is one less"
		}
	}
	if e.Rel32 == 0 {
		return WrongResult, fmt.Sprintf("%s is taken for a jump to %s: it is not run", insn, p.name(next))
	}
	return WrongResult, fmt.Sprintf("%s is taken for a jump to %s: it is not run", insn, p.name(next.Add(int64(e.Rel32))))
}

func flags16(p *point) (Effect, string) {
	e := p.emulated(slot.EmulateIfModifiers)
	if e == nil || e.OpSize != 2 || p.isVEX() {
		return "", ""
	}
	return Oops, "8 bytes are moved in place of 2: the stack pointer ends 6 bytes off"
}

func popf(p *point) (Effect, string) {
	e := p.emulated(slot.EmulateIfModifiers)
	if e == nil || e.Type != 0x9D || e.OpSize == 2 || p.isVEX() {
		return "", ""
	}
	return Harmless, "VIF, VIP and RF would stay as they are on the stack; the kernel does not put them there"
}

// lastInt3Size is the size of a copy whose int3 is the last byte of the slot.
const lastInt3Size = decoder.MaxInsnSize - 1

func lastInt3(p *point) (Effect, string) {
	if !p.stepped() || p.place.Slot.InsnLen != lastInt3Size {
		return "", ""
	}
	return Oops, "no probe handles the int3 after the copy"
}

func halt(p *point) (Effect, string) {
	if !p.stepped() {
		return "", ""
	}
	b := p.insn()
	for len(b) > 1 && decoder.IsLegacyPrefix(b[0]) {
		b = b[1:]
	}
	switch {
	case b[0] == hlt && p.after(sti):
		return Hang, "hlt runs with interrupts off: the CPU does not wake"
	case b[0] == hlt:
		return WrongResult, "hlt without sti before it is meant to wait with interrupts off: a CPU that is started again has not ended the step, and misses every probe; where interrupts are on, it does not wake"
	case len(b) == 3 && b[0] == 0x0F && b[1] == 0x01 && b[2] == 0xC9:
		return Hang, "mwait runs with interrupts off: an interrupt wakes the CPU only where bit 0 of ecx is set"
	}
	return "", ""
}

const (
	sti = 0xFB
	hlt = 0xF4
)

// after reports whether that byte stands before the probe.
func (p *point) after(b byte) bool {
	var code [1]byte
	return p.view.CodeAt(p.at.Add(-1), code[:]) == 1 && code[0] == b
}

// otherFault is about instructions with an entry in the exception table, or in the bug table, whose
// fault is neither a page fault nor a general protection fault.
func otherFault(p *point) (Effect, string) {
	if !p.stepped() {
		return "", ""
	}
	b := p.insn()
	for len(b) > 1 && (decoder.IsLegacyPrefix(b[0]) || b[0]&0xF0 == 0x40) {
		b = b[1:]
	}
	reg := byte(0)
	if len(b) > 1 {
		reg = b[1] >> 3 & 7
	}
	switch {
	case b[0] == 0x0F && len(b) > 1 && (b[1] == 0x0B || b[1] == 0xB9 || b[1] == 0xFF):
		if p.view.BugEntry(p.at) {
			return Oops, "the invalid opcode is found in the slot, where there is no entry of a WARN or BUG"
		}
		return "", ""
	case (b[0] == 0xF6 || b[0] == 0xF7) && reg >= 6, // division: #DE
		b[0] >= 0xD8 && b[0] <= 0xDF, b[0] == 0x9B, // x87: #MF
		b[0] == 0x0F && len(b) > 1 && (b[1] == 0x78 || b[1] == 0x79): // vmread, vmwrite: #UD
	default:
		return "", ""
	}
	fixup, ok := p.view.ExceptionEntry(p.at)
	if !ok {
		return "", ""
	}
	return Oops, fmt.Sprintf("a fault that is to go on at %s is not caught", p.name(fixup))
}

func masking(p *point) (Effect, string) {
	if !p.stepped() {
		return "", ""
	}
	k, err := decoder.DecodeKernel(p.insn(), &p.c.Decoder)
	if err != nil || !k.MasksExceptions() {
		return "", ""
	}
	return Oops, "the trap comes one instruction late, past the copy"
}

// prefixFixup is about opcodes whose step has to be put right, after prefixes that
// are not a single REX.
func prefixFixup(p *point) (Effect, string) {
	b := p.insn()
	if !p.stepped() || len(b) < 2 || !decoder.IsLegacyPrefix(b[0]) {
		return "", ""
	}
	for len(b) > 1 && (decoder.IsLegacyPrefix(b[0]) || b[0]&0xF0 == 0x40) {
		b = b[1:]
	}
	switch b[0] {
	case 0xC2, 0xC3, 0xCA, 0xCB, 0xCF:
		return Oops, "the address that it returns to is moved by the distance of the slot"
	case 0xE8:
		return Oops, "it returns into the slot"
	case 0x9C:
		return WrongResult, "the flags on the stack are those of the step, with the trap flag"
	}
	return "", ""
}
