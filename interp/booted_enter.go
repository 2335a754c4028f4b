package interp

import (
	"encoding/binary"

	"kprobelab/internal/fromdump"
	"kprobelab/machine"
	"kprobelab/x86"
)

// The ways into a booted kernel, and out of it: exceptions, interrupts, system calls, iret, as the processor
// does them (SDM Vol. 3A, 6.14 "Exception and Interrupt Handling in 64-bit Mode"; Vol. 2B, "SYSCALL").

const vectorNMI = 2

// kernelPlace is the place of a word of the kernel's, for its own access by the processor.
func (c *cpu) kernelPlace(va uint64, need byte) (place, bool) {
	e := c.e
	if r := e.region(x86.Addr(va)); r != nil {
		i := (va - uint64(r.Start)) / pageSize
		return place{r: r, i: i}, r.attr[i]&need == need
	}
	p, what := e.b.walk(c.sys.cr[3], va, need, 0, true)
	return p, what == foundPage
}

func (c *cpu) kernelWord(va uint64) (uint64, bool) {
	p, ok := c.kernelPlace(va, attrR)
	if !ok || va%pageSize > pageSize-8 {
		return 0, false
	}
	if c.e.watch.data {
		c.e.access(va, 8, machine.WatchRead)
	}
	return binary.LittleEndian.Uint64(p.page()[va%pageSize:]), true
}

func (c *cpu) pushKernel(va, v uint64) bool {
	p, ok := c.kernelPlace(va, attrW)
	if !ok || va%pageSize > pageSize-8 {
		return false
	}
	if c.e.watch.data {
		c.e.access(va, 8, machine.WatchWrite)
	}
	c.e.b.dropPage(p.page(), va%pageSize, va%pageSize+8)
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], v)
	c.store(&p, va, b[:])
	return true
}

// gate is a gate of the interrupt descriptor table.
type gate struct {
	selector uint16
	ist      uint8 // the number of its stack, from 1; 0 for none
	trap     bool  // interrupts stay on
	dpl      uint8
	ip       uint64
}

func (c *cpu) gate(vector int) (g gate, ok bool) {
	t := c.sys.tables[1]
	if uint32(vector)*16+15 > uint32(t.limit) {
		return g, false
	}
	low, ok1 := c.kernelWord(t.base + uint64(vector)*16)
	high, ok2 := c.kernelWord(t.base + uint64(vector)*16 + 8)
	typ := low >> 40
	g = gate{
		selector: uint16(low >> 16), ist: uint8(low >> 32 & 7), trap: typ&0xf != 0xe, dpl: uint8(typ >> 5 & 3),
		ip: low&0xffff | low>>32&0xffff0000 | high<<32,
	}
	return g, ok1 && ok2 && typ&0x80 != 0
}

// Where a 64-bit TSS has its stacks.
const (
	tssRSP0 = 4
	tssIST  = 36
)

// isFault: the instruction is executed again after the exception, so RF is set for it. (Debug exceptions, which may be
// either, are not.)
func isFault(vector int, code int64) bool {
	const faults = 1<<0 | 1<<5 | 1<<6 | 1<<7 | 0x1f<<10 | 3<<16 | 1<<19 | 1<<21
	return code != fromdump.Software && vector < 32 && faults>>vector&1 != 0
}

// deliver enters the handler of a vector. ip is its return address. It returns false if there is no handler or no
// stack: the processor would shut down.
func (c *cpu) deliver(vector int, code int64, ip uint64) bool {
	g, ok := c.gate(vector)
	if !ok {
		return false
	}
	if c.user && vector >= 32 && code == fromdump.Software && g.dpl != 3 {
		code = int64(vector*8 + 2) // int n of what user mode may not call
		vector, ip = machine.VectorGP, ip-2
		if g, ok = c.gate(vector); !ok {
			return false
		}
	}
	top, ok := c.handlerStack(g)
	if !ok {
		return false
	}
	flags := c.eflags() &^ flagRF
	saved := flags | c.resumeFlag(ip)
	if isFault(vector, code) {
		saved |= flagRF
	}
	frame := []uint64{uint64(c.sys.sel[segSS]), c.r[rsp], saved, uint64(c.sys.sel[segCS]), ip}
	if code >= 0 {
		frame = append(frame, uint64(code))
	}
	for _, w := range frame {
		top -= 8
		if !c.pushKernel(top, w) {
			return false
		}
	}
	flags &^= x86.FlagTF | flagNT
	if !g.trap {
		flags &^= x86.FlagIF
	}
	ss := c.sys.sel[segSS]
	if c.user {
		ss = 0
	}
	c.r[rsp], c.ip = top, g.ip
	c.setEflags(flags)
	c.setPrivilege(g.selector, ss)
	return true
}

// handlerStack is the end of the stack of a gate's handler.
func (c *cpu) handlerStack(g gate) (top uint64, ok bool) {
	top, ok = c.r[rsp], true
	switch {
	case g.ist != 0:
		top, ok = c.kernelWord(c.sys.tr.Base + tssIST + 8*uint64(g.ist-1))
	case c.user:
		top, ok = c.kernelWord(c.sys.tr.Base + tssRSP0)
	}
	return top &^ 15, ok
}

// setPrivilege is in 64-bit mode at the privilege of cs. The descriptors are those that every Linux has: flat.
func (c *cpu) setPrivilege(cs, ss uint16) {
	c.sys.sel[segCS], c.sys.sel[segSS] = cs, ss
	c.user = cs&3 == 3
	c.changeMode()
}

// opSyscall is syscall.
func opSyscall(c *cpu, o *op) bool {
	if c.reason >= reasonExit {
		return true
	}
	if c.hostCall(o) {
		return true
	}
	s := &c.sys
	c.r[rcx], c.r[11] = o.next, c.eflags()&^flagRF
	c.setEflags(c.r[11] &^ s.msr[msrFMask])
	cs := uint16(s.msr[msrSTAR]>>32) & 0xfffc
	c.ip = s.msr[msrLSTAR]
	c.setPrivilege(cs, cs+8)
	return true
}

// sysretMaker: only to 64-bit mode.
func sysretMaker(d *dec) func(c *cpu, o *op) bool {
	d.last = true
	if d.c.e.b == nil || d.op.size != 8 {
		return nil
	}
	return opSysret
}

func opSysret(c *cpu, o *op) bool {
	cs := uint16(c.sys.msr[msrSTAR]>>48) + 16 | 3
	if !c.e.canonical(c.r[rcx]) {
		return c.fault(machine.VectorGP)
	}
	const kept = arithmetic | x86.FlagTF | x86.FlagIF | 1<<10 | flagIOPL | flagNT | flagAC | flagID
	c.setEflags(c.r[11]&kept | x86.FlagFixed)
	c.ip = c.r[rcx]
	c.setPrivilege(cs, cs-8)
	return true
}

// opIretq returns from a handler: all five words, whatever the privilege.
func (c *cpu) iret(o *op) bool {
	var w [5]uint64
	for n := range w {
		v, ok := c.read(c.r[rsp]+uint64(n)*uint64(o.size), o.size)
		if !ok {
			return false
		}
		w[n] = v
	}
	cs, ss := uint16(w[1]), uint16(w[4])
	switch {
	case cs&^3 == 0, !c.e.canonical(w[0]), c.user && cs&3 != 3, cs&3 == 3 && ss&^3 == 0:
		return c.fault(machine.VectorGP)
	case !c.descriptor(cs), ss&^3 != 0 && !c.descriptor(ss):
		return false
	case !c.wide(cs):
		c.e.b.fail(c.lacks("32-bit code"))
		c.event = event{kind: eventEnd}
		return false
	}
	mask := uint64(popfMask)
	if c.user {
		mask &^= x86.FlagIF | flagIOPL
	}
	c.setEflags(c.eflags()&^mask | w[2]&mask)
	if c.e.watch.on() {
		c.flags |= w[2] & flagRF
	}
	c.ip, c.r[rsp] = w[0], w[3]
	c.setPrivilege(cs, ss)
	return true
}

// farTransfer is retf, or a far jump or call, to the kernel's own code segment.
func (c *cpu) farTransfer(cs uint16, ip uint64) bool {
	if cs&^3 == 0 || cs&3 != c.sys.sel[segCS]&3 {
		return c.fault(machine.VectorGP)
	}
	if !c.descriptor(cs) {
		return false
	}
	c.sys.sel[segCS], c.ip = cs, ip
	return true
}
