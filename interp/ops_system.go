package interp

import (
	"kprobelab/kimage/vmcore"
	"kprobelab/machine"
)

// system holds the registers that only a kernel uses.
type system struct {
	cr     [9]uint64
	dr     [8]uint64
	hits   uint8     // the breakpoints that were hit and not told, as in dr6
	sel    [6]uint16 // es cs ss ds fs gs
	tables [2]table  // gdt, idt
	msr    map[uint32]uint64
	xcr0   uint64
	// of a booted kernel: the task's segment, and the selector of its local table.
	tr  vmcore.Segment
	ldt uint16
}

type table struct {
	limit uint16
	base  uint64
}

const (
	segCS = 1
	segSS = 2
	segFS = 4
	segGS = 5
)

func opMovFromSeg(c *cpu, o *op) bool {
	v := uint64(c.sys.sel[o.reg&7])
	if o.mem {
		return c.write(c.ea(o), 2, v)
	}
	c.setReg(o.rm, o.size, v)
	return true
}

func movToSegMaker(d *dec) func(c *cpu, o *op) bool {
	d.last = d.op.reg&7 == segSS
	return opMovToSeg
}

func opMovToSeg(c *cpu, o *op) bool {
	v, ok := c.getSized(o, 2)
	if !ok || !c.loadSegment(o.reg&7, uint16(v)) {
		return false
	}
	if o.reg&7 == segSS {
		c.ip, c.single = o.next, true
	}
	return true
}

// descriptor reads a selector's descriptor, which may fault. It always fails without a booted kernel, which has
// descriptors.
func (c *cpu) descriptor(sel uint16) bool {
	if !c.described(sel) {
		return c.fault(machine.VectorGP)
	}
	at := c.sys.tables[0].base + uint64(sel&^7)
	if c.e.b != nil {
		return c.usable(at)
	}
	if _, ok := c.read(at, 8); !ok {
		return false
	}
	c.missing = "segment descriptors"
	return c.fault(machine.VectorInvalid)
}

// described reports whether a selector is in the global table, and within its limit.
func (c *cpu) described(sel uint16) bool { return sel&4 == 0 && sel|7 <= c.sys.tables[0].limit }

// loadSegment: a null selector needs no descriptor.
func (c *cpu) loadSegment(seg uint8, selector uint16) bool {
	if selector&^3 != 0 && c.e.b == nil {
		return c.descriptor(selector)
	}
	if selector&^3 != 0 && !c.descriptor(selector) {
		return false
	}
	c.sys.sel[seg] = selector
	if selector&^3 != 0 {
		switch seg {
		case segFS:
			c.fs = c.base(selector)
		case segGS:
			c.gs = c.base(selector)
		}
		return true
	}
	switch seg {
	case segFS:
		c.fs = 0
	case segGS:
		c.gs = 0
	}
	return true
}

// farPointerMaker: lss, lfs, lgs.
func farPointerMaker(d *dec) func(c *cpu, o *op) bool {
	d.op.sub = d.i.Opcode & 7
	return opFarPointer
}

func opFarPointer(c *cpu, o *op) bool {
	a := c.ea(o)
	v, ok := c.read(a, o.size)
	if !ok {
		return false
	}
	sel, ok := c.read(a+uint64(o.size), 2)
	if !ok || !c.loadSegment(o.sub, uint16(sel)) {
		return false
	}
	c.setReg(o.reg, o.size, v)
	return true
}

// fsOrGS: opcodes a0 and a1 are for fs, a8 and a9 for gs.
func fsOrGS(d *dec) {
	d.size64()
	d.op.sub = segFS
	if d.i.Opcode >= 0xa8 {
		d.op.sub = segGS
	}
}

func pushSegMaker(d *dec) func(c *cpu, o *op) bool {
	fsOrGS(d)
	return opPushSeg
}

func opPushSeg(c *cpu, o *op) bool { return c.push(uint64(c.sys.sel[o.sub]), o.size) }

func popSegMaker(d *dec) func(c *cpu, o *op) bool {
	fsOrGS(d)
	return opPopSeg
}

func opPopSeg(c *cpu, o *op) bool {
	v, ok := c.read(c.r[rsp], o.size)
	if !ok || !c.loadSegment(o.sub, uint16(v)) {
		return false
	}
	c.r[rsp] += uint64(o.size)
	return true
}

// group00Maker: sldt, str, lldt, ltr, verr, verw.
func group00Maker(d *dec) func(c *cpu, o *op) bool {
	if d.c.e.b != nil {
		return group00Booted(d)
	}
	switch d.i.ModRM >> 3 & 7 {
	case 0, 1:
		return opNoSelector
	case 4, 5:
		return opVerify
	}
	return nil
}

// opNoSelector stores the selector of a local descriptor table or a task: 0.
func opNoSelector(c *cpu, o *op) bool {
	if o.mem {
		return c.write(c.ea(o), 2, 0)
	}
	c.setReg(o.rm, o.size, 0)
	return true
}

// opVerify is verr and verw.
func opVerify(c *cpu, o *op) bool {
	sel, ok := c.getSized(o, 2)
	switch {
	case !ok:
		return false
	case sel&^3 == 0, !c.described(uint16(sel)):
		c.setZF(false)
		return true
	}
	if c.e.b != nil {
		c.setZF(true)
		return true
	}
	return c.descriptor(uint16(sel))
}

func larMaker(d *dec) func(c *cpu, o *op) bool {
	d.op.sub = d.i.Opcode
	if d.c.e.b != nil {
		return opLsl
	}
	return opVerify
}

// group01Maker: descriptor tables, and instructions without operands.
func group01Maker(d *dec) func(c *cpu, o *op) bool {
	reg := d.i.ModRM >> 3 & 7
	if !d.op.mem {
		if d.i.Extension() == "FRED" { // F3 and F2 before clac's ModRM
			return nil
		}
		switch d.i.ModRM {
		case 0xca, 0xcb:
			d.last = true
			if d.i.ModRM == 0xca {
				return opClac
			}
			return opStac
		case 0xd0:
			return opXgetbv
		case 0xf8:
			return opSwapgs
		case 0xf9:
			return opRdtscp
		case 0xc1, 0xc8, 0xc9:
			if d.c.e.b != nil {
				return bootedGroup01(d)
			}
			if d.i.ModRM != 0xc1 {
				return nil
			}
			return opInvalid
		case 0xc2, 0xc3, 0xc4, 0xd9:
			return opInvalid // virtual machines are not emulated
		}
	}
	d.op.sub = reg
	switch {
	case d.op.mem && reg < 2:
		return opStoreTable
	case d.op.mem && reg < 4:
		return opLoadTable
	case reg == 4:
		return opSmsw
	case reg == 6:
		d.last = true
		return opLmsw
	case d.op.mem && reg == 7:
		d.last = true
		return opFlushPage
	}
	return nil
}

func opStoreTable(c *cpu, o *op) bool {
	t := c.sys.tables[o.sub]
	a := c.ea(o)
	return c.write(a, 2, uint64(t.limit)) && c.write(a+2, 8, t.base)
}

func opLoadTable(c *cpu, o *op) bool {
	a := c.ea(o)
	limit, ok := c.read(a, 2)
	if !ok {
		return false
	}
	base, ok := c.read(a+2, 8)
	if ok {
		c.sys.tables[o.sub-2] = table{uint16(limit), base}
	}
	return ok
}

func opSmsw(c *cpu, o *op) bool {
	if o.mem {
		return c.write(c.ea(o), 2, c.sys.cr[0])
	}
	c.setReg(o.rm, o.size, c.sys.cr[0])
	return true
}

func opLmsw(c *cpu, o *op) bool {
	v, ok := c.getSized(o, 2)
	if !ok {
		return false
	}
	c.sys.cr[0] = c.sys.cr[0]&^0xe | v&0xf
	c.ip = o.next
	return true
}

func opFlushPage(c *cpu, o *op) bool {
	c.ip = o.next
	if b := c.e.b; b != nil {
		b.flushPage(c.ea(o))
	}
	return true
}

func opClac(c *cpu, o *op) bool {
	c.flags &^= flagAC
	c.ip = o.next
	c.followAC()
	return true
}

func opStac(c *cpu, o *op) bool {
	c.flags |= flagAC
	c.ip = o.next
	c.followAC()
	return true
}

func opXgetbv(c *cpu, o *op) bool {
	if c.sys.cr[4]&(1<<18) == 0 {
		return c.fault(machine.VectorInvalid)
	}
	if c.reg(rcx, 4) != 0 {
		return c.fault(machine.VectorGP)
	}
	c.setReg(rax, 4, c.sys.xcr0)
	c.setReg(rdx, 4, c.sys.xcr0>>32)
	return true
}

func opSwapgs(c *cpu, o *op) bool {
	c.gs, c.kernelGS = c.kernelGS, c.gs
	return true
}

func (c *cpu) putPair(v uint64) {
	c.setReg(rax, 4, v)
	c.setReg(rdx, 4, v>>32)
}

// opRdtsc reads the virtual clock.
func opRdtsc(c *cpu, o *op) bool {
	if b := c.e.b; b != nil {
		c.putPair(b.board.TSC())
		return c.leave(o)
	}
	c.putPair(c.e.Now())
	return true
}

func opRdtscp(c *cpu, o *op) bool {
	if b := c.e.b; b != nil {
		c.putPair(b.board.TSC())
		c.setReg(rcx, 4, c.sys.msr[msrTSCAux])
		return c.leave(o)
	}
	c.putPair(c.e.Now())
	c.setReg(rcx, 4, c.sys.msr[msrTSCAux])
	return true
}

// opRdpmc: there are no performance counters.
func opRdpmc(c *cpu, o *op) bool { return c.fault(machine.VectorInvalid) }

func opCpuid(c *cpu, o *op) bool {
	r := c.has.CPUID(uint32(c.r[rax]), uint32(c.r[rcx]))
	for i, n := range [...]uint8{rax, rbx, rcx, rdx} {
		c.setReg(n, 4, uint64(r[i]))
	}
	return true
}

// Model-specific registers that are kept. Others read as zero.
const (
	msrTSC      = 0x10
	msrFSBase   = 0xc0000100
	msrGSBase   = 0xc0000101
	msrKernelGS = 0xc0000102
	msrTSCAux   = 0xc0000103
)

var bootMSRs = map[uint32]uint64{
	0x1b:  0xfee00900,            // APIC base
	0x174: 0, 0x175: 0, 0x176: 0, // sysenter
	0x1a0:      1,                                              // misc enable
	0x277:      0x0007040600070406,                             // PAT
	0xc0000080: 0x500,                                          // EFER: LME, LMA
	0xc0000081: 0, 0xc0000082: 0, 0xc0000083: 0, 0xc0000084: 0, // syscall
	msrTSCAux: 0,
}

func opRdmsr(c *cpu, o *op) bool {
	n := uint32(c.r[rcx])
	if c.e.b != nil {
		c.putPair(c.bootedMSR(n))
		return c.leave(o)
	}
	switch n {
	case msrTSC:
		c.putPair(c.e.Now())
	case msrFSBase:
		c.putPair(c.fs)
	case msrGSBase:
		c.putPair(c.gs)
	case msrKernelGS:
		c.putPair(c.kernelGS)
	default:
		c.putPair(c.sys.msr[n])
	}
	return true
}

func opWrmsr(c *cpu, o *op) bool {
	n, v := uint32(c.r[rcx]), c.reg(rdx, 4)<<32|c.reg(rax, 4)
	if c.e.b != nil {
		c.setBootedMSR(n, v)
		return c.leave(o)
	}
	base := map[uint32]*uint64{msrFSBase: &c.fs, msrGSBase: &c.gs, msrKernelGS: &c.kernelGS}[n]
	switch {
	case base != nil && !canonical(v):
		return c.fault(machine.VectorGP)
	case base != nil:
		*base = v
	default:
		if _, kept := c.sys.msr[n]; kept {
			c.sys.msr[n] = v
		}
	}
	return true
}

// opInvalidLater is syscall and sysenter, which lead nowhere in this machine.
func opInvalidLater(c *cpu, o *op) bool { return c.fault(machine.VectorInvalid) }

func syscallMaker(d *dec) func(c *cpu, o *op) bool {
	d.last = true
	if d.c.e.b != nil {
		return opSyscall
	}
	return opInvalidLater
}

func opClts(c *cpu, o *op) bool {
	c.sys.cr[0] &^= 8
	c.ip = o.next
	return true
}

func movControlMaker(d *dec) func(c *cpu, o *op) bool {
	d.op.mem = false
	d.op.rm = d.i.ModRM&7 | d.i.REX&1<<3
	if d.op.reg > 8 {
		return opInvalid
	}
	if d.i.Opcode == 0x22 {
		d.last = true
		return opMovToControl
	}
	return opMovFromControl
}

func opMovFromControl(c *cpu, o *op) bool {
	c.r[o.rm] = c.sys.cr[o.reg]
	return true
}

// opMovToControl: paging and modes stay as they are, whatever is written.
func opMovToControl(c *cpu, o *op) bool {
	if c.e.b != nil {
		c.setControl(o.reg, c.r[o.rm])
		c.ip = o.next
		return true
	}
	c.sys.cr[o.reg] = c.r[o.rm]
	c.ip = o.next
	return true
}

func opMovFromDebug(c *cpu, o *op) bool {
	c.r[o.rm] = c.sys.dr[debugRegister(o.reg)]
	return true
}

// debugRegister: 4 and 5 are 6 and 7 by another name.
func debugRegister(n uint8) uint8 {
	if n == 4 || n == 5 {
		return n + 2
	}
	return n & 7
}

// opMovToDebug: hardware breakpoints are for booted kernels, so a write of dr7 is #UD.
func opMovToDebug(c *cpu, o *op) bool {
	n := debugRegister(o.reg)
	if n == 7 {
		return c.fault(machine.VectorInvalid)
	}
	c.sys.dr[n] = c.r[o.rm]
	c.ip = o.next
	return true
}

func opCli(c *cpu, o *op) bool {
	c.flags &^= 1 << 9
	return true
}

// opSti: the instruction that follows runs before an interrupt could come.
func opSti(c *cpu, o *op) bool {
	c.flags |= 1 << 9
	c.ip, c.single = o.next, true
	return true
}

// groupAEMaker: fxsave and its like, fences, segment bases.
func groupAEMaker(d *dec) func(c *cpu, o *op) bool {
	reg := d.i.ModRM >> 3 & 7
	if d.op.mem {
		switch {
		case d.i.Mnemonic() == "ldmxcsr":
			return opLdmxcsr
		case d.i.Mnemonic() == "stmxcsr":
			return opStmxcsr
		case reg == 0 && !d.size16 && !d.f2 && !d.f3:
			return opFxsave
		case reg == 1 && !d.size16 && !d.f2 && !d.f3:
			return opFxrstor
		case reg == 7, d.i.Mnemonic() == "clwb":
			return opNop // a cache line
		}
		return nil
	}
	if d.f3 && reg < 4 {
		d.op.sub = reg
		return opSegmentBase
	}
	if reg >= 5 && !d.f2 && !d.f3 && !d.size16 {
		return opNop // a fence
	}
	return nil
}

// opSegmentBase: rdfsbase, rdgsbase, wrfsbase, wrgsbase.
func opSegmentBase(c *cpu, o *op) bool {
	if c.sys.cr[4]&(1<<16) == 0 {
		return c.fault(machine.VectorInvalid)
	}
	base := &c.fs
	if o.sub&1 != 0 {
		base = &c.gs
	}
	if o.sub < 2 {
		c.setReg(o.rm, o.size, *base)
		return true
	}
	v := c.reg(o.rm, o.size)
	if !canonical(v) {
		return c.fault(machine.VectorGP)
	}
	*base = v
	return true
}

func opLdmxcsr(c *cpu, o *op) bool {
	v, ok := c.read(c.ea(o), 4)
	if !ok {
		return false
	}
	if v&^0xffff != 0 {
		return c.fault(machine.VectorGP)
	}
	c.mxcsr = uint32(v)
	return true
}

func opStmxcsr(c *cpu, o *op) bool { return c.write(c.ea(o), 4, uint64(c.mxcsr)) }
