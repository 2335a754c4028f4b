package interp

import (
	"kprobelab/internal/board"
	"kprobelab/machine"
)

// Model specific registers of the processor itself (SDM Vol. 4).
const (
	msrEFER  = 0xc0000080
	msrSTAR  = 0xc0000081
	msrLSTAR = 0xc0000082
	msrFMask = 0xc0000084
)

// Bits of a descriptor.
const (
	descPresent      = 1 << 47
	descLong         = 1 << 53
	vectorNotPresent = 11
)

// usable reports whether the descriptor at an address may be loaded.
func (c *cpu) usable(at uint64) bool {
	d, ok := c.kernelWord(at)
	switch {
	case !ok:
		return c.fault(machine.VectorGP)
	case d&descPresent == 0:
		return c.fault(vectorNotPresent)
	}
	return true
}

// wide reports whether a segment has 64-bit code.
func (c *cpu) wide(selector uint16) bool {
	d, _ := c.kernelWord(c.sys.tables[0].base + uint64(selector&^7))
	return d&descLong != 0
}

// base is the base of a segment in the global table.
func (c *cpu) base(selector uint16) uint64 {
	d, _ := c.kernelWord(c.sys.tables[0].base + uint64(selector&^7))
	return d>>16&0xffffff | d>>32&0xff000000
}

// limit is its limit, of which the descriptor counts bytes or pages.
func (c *cpu) limit(selector uint16) uint64 {
	d, _ := c.kernelWord(c.sys.tables[0].base + uint64(selector&^7))
	n := d&0xffff | d>>32&0xf0000
	if d>>55&1 != 0 {
		n = n<<12 | 0xfff
	}
	return n
}

// group00Booted: sldt, str, lldt, ltr.
func group00Booted(d *dec) func(c *cpu, o *op) bool {
	switch d.i.ModRM >> 3 & 7 {
	case 0:
		return opSldt
	case 1:
		return opStr
	case 2:
		return opLldt
	case 3:
		return opLtr
	}
	return opVerify
}

func opSldt(c *cpu, o *op) bool { return c.putSelector(o, c.sys.ldt) }
func opStr(c *cpu, o *op) bool  { return c.putSelector(o, uint16(c.sys.tr.Selector)) }

func (c *cpu) putSelector(o *op, v uint16) bool {
	if o.mem {
		return c.write(c.ea(o), 2, uint64(v))
	}
	c.setReg(o.rm, o.size, uint64(v))
	return true
}

// opLldt: the local table's segments are for 16-bit and 32-bit programs alone, which are not run.
func opLldt(c *cpu, o *op) bool {
	v, ok := c.getSized(o, 2)
	if ok {
		c.sys.ldt = uint16(v)
	}
	return ok
}

func opLtr(c *cpu, o *op) bool {
	v, ok := c.getSized(o, 2)
	if !ok || !c.descriptor(uint16(v)) {
		return false
	}
	high, _ := c.kernelWord(c.sys.tables[0].base + v&^7 + 8)
	c.sys.tr.Selector, c.sys.tr.Base = uint32(v), c.base(uint16(v))|high<<32
	c.sys.tr.Limit = uint32(c.limit(uint16(v)))
	return true
}

// opLsl is lsl and lar on a booted kernel.
func opLsl(c *cpu, o *op) bool {
	v, ok := c.getSized(o, 2)
	if !ok {
		return false
	}
	sel := uint16(v)
	if sel&^3 == 0 || !c.described(sel) {
		c.setZF(false)
		return true
	}
	n := c.limit(sel)
	if o.sub == 2 {
		d, _ := c.kernelWord(c.sys.tables[0].base + uint64(sel&^7))
		n = d >> 32 & 0xffff00
	}
	c.setReg(o.reg, o.size, n)
	c.setZF(true)
	return true
}

// leave makes a complete instruction the last of its block that is executed, as in the engine in C, which executes
// some instructions by itself: what follows is another block.
func (c *cpu) leave(o *op) bool {
	c.ip = o.next
	c.event = event{kind: eventLeave}
	return false
}

func (c *cpu) bootedMSR(n uint32) uint64 {
	if v, ok := c.e.b.board.MSR(c.n, n); ok {
		return v
	}
	switch n {
	case msrFSBase:
		return c.fs
	case msrGSBase:
		return c.gs
	case msrKernelGS:
		return c.kernelGS
	}
	return c.sys.msr[n]
}

func (c *cpu) setBootedMSR(n uint32, v uint64) {
	if c.e.b.board.SetMSR(c.n, n, v) {
		return
	}
	switch n {
	case msrFSBase:
		c.fs = v
	case msrGSBase:
		c.gs = v
	case msrKernelGS:
		c.kernelGS = v
	default:
		if _, kept := c.sys.msr[n]; kept {
			c.sys.msr[n] = v
		}
	}
}

// setControl is a move to a control register, of which paging depends on three.
func (c *cpu) setControl(n uint8, v uint64) {
	was := c.sys.cr[n]
	const noFlush = 1 << 63 // with PCID; forgetting more is right
	if n == 3 {
		v &^= noFlush
	}
	c.sys.cr[n] = v
	if n == 3 || n < 8 && was != v {
		c.e.b.flush()
	}
}

func invpcidMaker(d *dec) func(c *cpu, o *op) bool {
	if d.c.e.b == nil {
		return nil
	}
	return opInvpcid
}

// opInvpcid forgets all: more than it has to.
func opInvpcid(c *cpu, o *op) bool {
	c.e.b.flush()
	return c.leave(o)
}

func opVmcall(c *cpu, o *op) bool {
	c.r[rax] = ^uint64(999) // KVM_ENOSYS: -1000
	return c.leave(o)
}

// portIn and portOut are the board's ports.
func (c *cpu) portIn(port uint16, size uint8) uint64 {
	return uint64(c.e.b.board.In(uint32(port), int(size)))
}

func (c *cpu) portOut(port uint16, size uint8, v uint64) {
	if port == board.PortSerial && size == 1 {
		c.e.console.put(int(c.e.Task), byte(v))
	}
	if board.Resets(uint32(port), int(size), uint32(v)) {
		c.e.b.fail(machine.ErrReset)
	}
}

// bootedGroup01: vmcall, monitor, mwait.
func bootedGroup01(d *dec) func(c *cpu, o *op) bool {
	switch d.i.ModRM {
	case 0xc8:
		return opNop
	case 0xc9: // as hlt: an interrupt ends it
		d.last = true
		return opHlt
	}
	return opVmcall
}

// followAC follows a change of the flag AC.
func (c *cpu) followAC() {
	if c.e.b != nil {
		c.changeMode()
	}
}

// farOp is a far jump, or a far call, which pushes its return address.
func (c *cpu) farOp(o *op, sel uint16) bool {
	ip, ok := c.read(c.ea(o), o.size)
	if !ok {
		return false
	}
	if o.reg&7 == 3 {
		cs := uint64(c.sys.sel[segCS])
		if !c.push(cs, o.size) || !c.push(o.next, o.size) {
			return false
		}
	}
	return c.farTransfer(sel, ip)
}

// farReturnBooted is retf and iret.
func (c *cpu) farReturnBooted(o *op) bool {
	if o.sub == 3 {
		return c.iret(o)
	}
	ip, ok1 := c.read(c.r[rsp], o.size)
	sel, ok2 := c.read(c.r[rsp]+uint64(o.size), o.size)
	if !ok1 || !ok2 || !c.farTransfer(uint16(sel), ip) {
		return false
	}
	c.r[rsp] += 2*uint64(o.size) + o.imm&0xffff
	return true
}
