//go:build unicorn && cgo && linux && amd64

package emu

import (
	"github.com/unicorn-engine/unicorn/bindings/go/unicorn"
	"golang.org/x/arch/x86/x86asm"

	"kprobelab/machine"
	"kprobelab/x86"
)

// faultAddr finds the address that caused a fault. The engine reports the page. The instruction and
// its registers give the byte: the first byte in the page that an operand touches. If the decoder
// does not know the instruction, it is the page's first byte.
func (c *cpu) faultAddr(regs *x86.PtRegs, page x86.Addr, access machine.Access) x86.Addr {
	ip := x86.Addr(regs.IP)
	if access == machine.AccessFetch {
		return max(page, ip)
	}
	var code [15]byte
	n := len(code)
	for ; n > 0 && c.e.host.Machine().ReadMem(ip, code[:n]) != nil; n-- {
	}
	inst, err := x86asm.Decode(code[:n], 64)
	if err != nil || inst.Op == 0 {
		return page
	}
	for _, a := range c.operands(regs, &inst) {
		if pageDown(a.Start) == page {
			return a.Start
		}
		if a.Start < page && page < a.End {
			return page
		}
	}
	return page
}

// operands returns the memory that an instruction may touch, explicit operands first.
func (c *cpu) operands(regs *x86.PtRegs, inst *x86asm.Inst) []x86.Range {
	var list []x86.Range
	add := func(a uint64, n int) {
		list = append(list, x86.Range{Start: x86.Addr(a), End: x86.Addr(a).Add(int64(max(n, 1)))})
	}
	for _, arg := range inst.Args {
		if mem, ok := arg.(x86asm.Mem); ok {
			add(c.effective(regs, mem, inst), max(inst.MemBytes, 8))
		}
	}
	switch inst.Op {
	case x86asm.PUSH, x86asm.CALL, x86asm.PUSHFQ, x86asm.PUSHF, x86asm.LCALL, x86asm.ENTER:
		add(regs.SP-8, 8)
	case x86asm.POP, x86asm.RET, x86asm.POPFQ, x86asm.POPF, x86asm.LRET, x86asm.IRETQ, x86asm.IRET:
		add(regs.SP, 40)
	case x86asm.LEAVE:
		add(regs.BP, 8)
	case x86asm.XLATB:
		add(regs.BX+regs.AX&0xff, 1)
	case x86asm.BT, x86asm.BTS, x86asm.BTR, x86asm.BTC:
		c.bitOperand(regs, inst, add)
	}
	return list
}

// bitOperand adds the word that a bit number in a register selects. It may be far
// from the operand (SDM Vol. 2, "BT").
func (c *cpu) bitOperand(regs *x86.PtRegs, inst *x86asm.Inst, add func(uint64, int)) {
	mem, ok := inst.Args[0].(x86asm.Mem)
	reg, isReg := inst.Args[1].(x86asm.Reg)
	if !ok || !isReg {
		return
	}
	bits := int64(inst.DataSize)
	v, _ := register64(regs, reg)
	off := int64(v)
	switch bits {
	case 16:
		off = int64(int16(v))
	case 32:
		off = int64(int32(v))
	}
	add(c.effective(regs, mem, inst)+uint64(off>>3&^(bits/8-1)), int(bits/8))
}

func (c *cpu) effective(regs *x86.PtRegs, mem x86asm.Mem, inst *x86asm.Inst) uint64 {
	a := uint64(mem.Disp)
	if mem.Base == x86asm.RIP {
		a = regs.IP + uint64(inst.Len) + uint64(int64(int32(mem.Disp)))
	} else if v, ok := register64(regs, mem.Base); ok {
		a += v
	}
	if v, ok := register64(regs, mem.Index); ok {
		a += v * uint64(mem.Scale)
	}
	if inst.AddrSize == 32 {
		a = uint64(uint32(a))
	}
	switch mem.Segment {
	case x86asm.GS:
		a += c.base(unicorn.X86_REG_GS_BASE)
	case x86asm.FS:
		a += c.base(unicorn.X86_REG_FS_BASE)
	}
	return a
}

// base is a segment's base, 0 where the engine does not say.
func (c *cpu) base(reg int) uint64 {
	v, _ := c.uc.RegRead(reg)
	return v
}

// register64 is the value of a general register of 16, 32 or 64 bits.
func register64(regs *x86.PtRegs, r x86asm.Reg) (uint64, bool) {
	switch {
	case r >= x86asm.RAX && r <= x86asm.R15:
		return *regs.Reg(int(r - x86asm.RAX)), true
	case r >= x86asm.EAX && r <= x86asm.R15L:
		return uint64(uint32(*regs.Reg(int(r - x86asm.EAX)))), true
	case r >= x86asm.AX && r <= x86asm.R15W:
		return uint64(uint16(*regs.Reg(int(r - x86asm.AX)))), true
	}
	return 0, false
}
