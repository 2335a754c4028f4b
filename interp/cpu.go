package interp

import (
	"kprobelab/internal/contract"
	"kprobelab/internal/cpumodel"
	"kprobelab/machine"
	"kprobelab/x86"
)

// noReg is the number of a register that is always 0: the base or index of an
// operand that has none.
const noReg = 16

// Numbers of general registers (SDM Vol. 2, "Register Operand Encoding").
const (
	rax = iota
	rcx
	rdx
	rbx
	rsp
	rbp
	rsi
	rdi
)

// state is the part of a CPU that a task switch exchanges.
type state struct {
	r  [17]uint64 // the general registers by number, and noReg
	ip uint64
	// flags are the flags that are not arithmetic, cc the six arithmetic flags.
	flags uint64
	cc    lazy
	x     [16]xmm
	mxcsr uint32
	fpu   fpu
	// resumed is the address of an instruction that continues: no WatchExec is reported for it.
	resumed uint64
	// user: it is in user mode; of a machine that has one.
	user bool
}

// cpu is one processor over the machine's memory.
type cpu struct {
	state
	e *engine
	n int
	// reads and writes find the memory of pages that were used last, in the mode that it is in.
	reads, writes *tlb
	// fs and gs are the segment bases, kernelGS the base that swapgs loads.
	fs, gs, kernelGS uint64
	sys              system
	has              *cpumodel.Model

	blocks cache
	// running is the block that runs, restart that its rest has to be read
	// anew, because it was overwritten.
	running *block
	// single makes the next block have one instruction: after an interrupt window closes, and after
	// text overwrote itself.
	single bool
	// alone: the block that runs is such a one.
	alone bool

	// event is the reason why an instruction did not complete.
	event event
	// reason is the reason why the run ends before the next block.
	reason reason
	arg    uint64 // of reasonSleep
	depth  int    // the number of runs that have begun and not ended
	// missing names the instruction that the last #UD was about, where the
	// engine lacks it.
	missing string

	// of a booted kernel: the mode that it is in, its view of memory in it, and where a write goes.
	mode    uint8
	view    uint64
	targets [2]place
	// unfetched is the address of an instruction that faulted as it was fetched.
	unfetched uint64
	// halted: it waits in hlt.
	halted bool

	// frames is room for the registers of traps.
	frames []*x86.PtRegs
	// answer is the continuation of its int3 at an address.
	answer contract.Answer
	// frame is for Regs.
	frame x86.PtRegs
}

// reason is the reason why a run ended.
type reason uint8

const (
	reasonNone reason = iota
	reasonReturn
	reasonHalt
	reasonTime // the block at ip has not run
	reasonYield
	reasonSleep
	reasonExit
	reasonFault
	reasonError  // the machine has the error
	reasonEngine // what only a booted kernel's run ends with: booted.why says it
)

// eventKind is the reason why an instruction did not complete.
type eventKind uint8

const (
	eventNone eventKind = iota
	eventFault
	eventTrap    // int3, and #DB of int1: ip is past it
	eventHalt    // hlt: ip is past it
	eventRestart // the block was overwritten: the instruction runs alone
	eventLeave   // the instruction is complete, and its block is left: ip is set
	eventEnd     // the run ends before the instruction: the reason is set
)

type event struct {
	kind   eventKind
	vector int
	access machine.Access
	addr   uint64
	// present: the page is there, but not for this access.
	present bool
}

// fault is an exception with nothing to tell but its vector.
func (c *cpu) fault(vector int) bool {
	c.event = event{kind: eventFault, vector: vector}
	return false
}

// miss is an access to memory that is not mapped so.
func (c *cpu) miss(addr uint64, access machine.Access) bool {
	v := machine.VectorPage
	if !c.e.canonical(addr) {
		v = machine.VectorGP
	}
	c.event = event{kind: eventFault, vector: v, access: access, addr: addr}
	return false
}

func canonical(a uint64) bool { return uint64(int64(a)<<16>>16) == a }

// fixedFlags of EFLAGS cannot be changed; the others that popf may change.
const (
	flagIOPL = 3 << 12
	flagNT   = 1 << 14
	flagRF   = 1 << 16
	flagAC   = x86.FlagAC
	flagID   = 1 << 21
)

// eflags is the whole register.
func (c *cpu) eflags() uint64 { return c.flags&^arithmetic | c.cc.all() | x86.FlagFixed }

func (c *cpu) setEflags(f uint64) {
	c.cc.setAll(f)
	c.flags = f &^ arithmetic
}

// regs copies the registers into the frame that probes get.
func (c *cpu) regs(r *x86.PtRegs) {
	g := &c.r
	*r = x86.PtRegs{
		R15: g[15], R14: g[14], R13: g[13], R12: g[12], BP: g[rbp], BX: g[rbx],
		R11: g[11], R10: g[10], R9: g[9], R8: g[8],
		AX: g[rax], CX: g[rcx], DX: g[rdx], SI: g[rsi], DI: g[rdi],
		OrigAX: ^uint64(0), IP: c.ip, CS: x86.KernelCS, Flags: c.eflags(), SP: g[rsp], SS: x86.KernelDS,
	}
	if c.user {
		r.CS, r.SS = x86.UserCS, x86.UserDS
	}
	if c.e.b != nil {
		r.CS, r.SS = uint64(c.sys.sel[segCS]), uint64(c.sys.sel[segSS])
		r.Flags &^= flagRF
	}
}

// Regs is regs, in place.
func (c *cpu) Regs() *x86.PtRegs {
	c.regs(&c.frame)
	return &c.frame
}

func (c *cpu) Flags() uint64            { return c.eflags() }
func (c *cpu) IP() x86.Addr             { return x86.Addr(c.ip) }
func (c *cpu) SetIP(ip x86.Addr)        { c.ip = uint64(ip) }
func (c *cpu) Depth() int               { return c.depth }
func (c *cpu) Answer() *contract.Answer { return &c.answer }

func (c *cpu) Save(s contract.State) { *s.(*state) = c.state }
func (c *cpu) Load(s contract.State) { c.state = *s.(*state) }

func (c *cpu) Boot(gs x86.Addr) error {
	c.gs = uint64(gs)
	return nil
}

func (c *cpu) Drop(addr x86.Addr, n int) {
	if b := c.e.b; b != nil {
		b.drop(uint64(addr), n)
		return
	}
	c.blocks.drop(uint64(addr), uint64(addr)+uint64(n))
}

// Enter sets the registers at a function's first instruction.
func (c *cpu) Enter(sp x86.Addr, args [6]uint64, flags uint64) {
	c.r = [17]uint64{rdi: args[0], rsi: args[1], rdx: args[2], rcx: args[3], 8: args[4], 9: args[5], rsp: uint64(sp)}
	c.setEflags(flags)
	c.resumed = none
	if c.e.b == nil {
		c.user = false
	}
}

// setRegs takes all but IP from a frame.
func (c *cpu) setRegs(r *x86.PtRegs) {
	c.r = [17]uint64{r.AX, r.CX, r.DX, r.BX, r.SP, r.BP, r.SI, r.DI, r.R8, r.R9, r.R10, r.R11, r.R12, r.R13, r.R14, r.R15}
	c.setEflags(r.Flags)
	if c.e.b == nil {
		c.user = c.e.opt.UserMode && r.CS&3 == 3
	}
}

// reg reads a register operand. A number from highByte on is ah, ch, dh, bh.
func (c *cpu) reg(n, size uint8) uint64 {
	switch size {
	case 8:
		return c.r[n&31]
	case 4:
		return uint64(uint32(c.r[n]))
	case 2:
		return uint64(uint16(c.r[n]))
	}
	if n >= highByte {
		return c.r[n-highByte] >> 8 & 0xff
	}
	return c.r[n] & 0xff
}

const highByte = 24

// setReg writes one; 32 bits clear the rest, fewer leave it.
func (c *cpu) setReg(n, size uint8, v uint64) {
	switch size {
	case 8:
		c.r[n] = v
	case 4:
		c.r[n] = uint64(uint32(v))
	case 2:
		c.r[n] = c.r[n]&^0xffff | v&0xffff
	default:
		if n >= highByte {
			p := &c.r[n-highByte]
			*p = *p&^0xff00 | v&0xff<<8
			return
		}
		c.r[n] = c.r[n]&^0xff | v&0xff
	}
}

// ea is the address of a memory operand.
func (c *cpu) ea(o *op) uint64 {
	a := c.r[o.base] + c.r[o.index]<<(o.scale&3) + o.disp
	if o.odd != 0 {
		return c.oddEA(o, a)
	}
	return a
}

// What is unusual about an address.
const (
	oddA32 = 1 << iota
	oddFS
	oddGS
)

func (c *cpu) oddEA(o *op, a uint64) uint64 {
	if o.odd&oddA32 != 0 {
		a = uint64(uint32(a))
	}
	return a + c.segment(o)
}

func (c *cpu) segment(o *op) uint64 {
	switch {
	case o.odd&oddFS != 0:
		return c.fs
	case o.odd&oddGS != 0:
		return c.gs
	}
	return 0
}

// get reads the ModRM operand.
func (c *cpu) get(o *op) (uint64, bool) {
	if o.mem {
		return c.read(c.ea(o), o.size)
	}
	return c.reg(o.rm, o.size), true
}

// put writes it.
func (c *cpu) put(o *op, v uint64) bool {
	if o.mem {
		return c.write(c.ea(o), o.size, v)
	}
	c.setReg(o.rm, o.size, v)
	return true
}

func (c *cpu) push(v uint64, size uint8) bool {
	sp := c.r[rsp] - uint64(size)
	if !c.write(sp, size, v) {
		return false
	}
	c.r[rsp] = sp
	return true
}
