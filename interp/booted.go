package interp

import (
	"fmt"

	"kprobelab/internal/board"
	"kprobelab/internal/fromdump"
	"kprobelab/kimage/vmcore"
	"kprobelab/machine"
	"kprobelab/x86"
)

// A booted machine continues from a dump of a kernel's memory. The differences from a kernel that
// has not booted:
//
//   - addresses go through the guest's own page tables, but for the regions that the machine adds in module
//     space, for its stubs, for slots and for its heap;
//   - exceptions that are not kprobes' own, interrupts and system calls enter the guest's kernel as the
//     processor does it;
//   - a local APIC and its timer live in virtual time (package board), and where the guest waits in hlt, the
//     clock moves on to the timer's next interrupt;
//   - tasks are the guest's, switched by its own scheduler: the machine's one task stands for all that the CPU
//     executes.

// booted is the engine's state for a kernel that has booted.
type booted struct {
	translated
	e     *engine
	core  *vmcore.Core
	src   machine.BootedSource
	guest fromdump.Guest
	// at are the registers of the dump's processors, gs their kernel's GS bases.
	at []vmcore.CPU
	gs []x86.Addr

	ram    []*region
	levels int // of the page tables: 4 or 5
	spaces [modes]space
	// epoch changes whenever memory may be seen differently; large has the large pages that are in spaces.
	epoch uint64
	large x86.Range
	views map[*page]*view
	held  map[x86.Addr]bool
	taken []x86.Addr

	cur   *cpu // the CPU that runs, or ran last
	board *board.Board
	// limit is the argument of the last Aim, turnEnd the instruction count at which another CPU has its turn.
	limit, turnEnd uint64
	chance         fromdump.Chance
	alone          bool // no other CPU has a turn while one does not wait

	current, direct x86.Addr
	tasks           fromdump.Tasks
	hooks           map[x86.Addr][]hook
	shown           map[x86.Addr]bool
	stops           map[x86.Addr]bool // the addresses that have a hook for Resume
	stopAt          x86.Addr
	executed        func(*x86.PtRegs)
	// ownSyscall is the syscall instruction that ends a system call of the host's, caller the task that makes it.
	ownSyscall uint64
	caller     x86.Addr
	hostGroup  uint64
	onHost     func(*x86.PtRegs) bool
	seen512    [8]uint64 // a bit for each system call that the host wants to see
	onSeen     func(*x86.PtRegs)

	graceAt            uint64
	interrupts, digest uint64
	err, lost          error // of the run; for which the machine cannot continue
}

// bootedEngine is an engine with a kernel that has booted.
type bootedEngine struct{ *engine }

var _ machine.Booted = bootedEngine{}

func newBooted(e *engine, src machine.BootedSource) *booted {
	b := &booted{
		e: e, src: src, core: src.Core(), guest: fromdump.Guest{Host: e.host},
		hooks: map[x86.Addr][]hook{}, shown: map[x86.Addr]bool{}, stops: map[x86.Addr]bool{},
		views: map[*page]*view{}, held: map[x86.Addr]bool{},
	}
	b.translated.reset()
	for i := range b.spaces {
		b.spaces[i].used = true
	}
	return b
}

// Lay maps the dump's memory, and finds room for the machine's own.
func (e bootedEngine) Lay(size x86.Addr) (cpus int, free x86.Addr, err error) {
	b := e.b
	if b.at, err = b.src.Processors(); err != nil {
		return 0, 0, err
	}
	b.layMemory()
	control := b.at[0].Control
	b.levels = control.Levels()
	free, err = fromdump.Hole(b.core.Space(control.CR3, b.levels), size)
	return len(b.at), free, err
}

// GoOn brings the CPUs to where the dump has them.
func (e bootedEngine) GoOn() error {
	b := e.b
	at, err := e.host.UserCode(fromdump.SystemCall)
	if err != nil {
		return err
	}
	b.ownSyscall = uint64(at + fromdump.OwnSyscall)
	entry, err := b.guest.Entry()
	if err != nil {
		return err
	}
	for _, c := range e.cpus {
		b.resume(c, entry)
	}
	e.watchAgain()
	b.current, b.direct = b.guest.CurrentTask(), b.guest.DirectMap()
	b.watchExits()
	b.startClock()
	b.takeTurn(b.inSystemCall())
	return nil
}

const (
	eferLinux = 0xd01 // SCE, LME, LMA, NXE
	// What Linux sets them to (arch/x86/kernel/cpu/common.c, syscall_init).
	starLinux  = 0x0023001000000000
	fmaskLinux = 0x257fd5
)

// resume sets the CPU to its state in the dump.
func (b *booted) resume(c *cpu, entry x86.Addr) {
	s := &b.at[c.n]
	k := s.Control
	b.cur = c
	y := &c.sys
	y.cr[0], y.cr[2], y.cr[3], y.cr[4] = k.CR0, k.CR2, k.CR3, k.CR4
	y.tables = [2]table{{uint16(k.GDT.Limit), k.GDT.Base}, {uint16(k.IDT.Limit), k.IDT.Base}}
	y.tr, y.ldt = k.TR, uint16(k.LDT.Selector)
	y.sel = [6]uint16{s.ES, uint16(s.Regs.CS), uint16(s.Regs.SS), s.DS, s.FS, s.GS}
	for msr, v := range map[uint32]uint64{
		msrEFER: eferLinux, msrSTAR: starLinux, msrLSTAR: uint64(entry), msrFMask: fmaskLinux, msrTSCAux: uint64(c.n),
	} {
		y.msr[msr] = v
	}
	c.fs, c.gs, c.kernelGS = s.FSBase, s.GSBase, k.KernelGSBase
	gs := s.GSBase
	if s.User() {
		gs = k.KernelGSBase
	}
	b.gs = append(b.gs, x86.Addr(gs))
	c.setRegs(&s.Regs)
	c.ip = s.Regs.IP
	c.setPrivilege(uint16(s.Regs.CS), uint16(s.Regs.SS))
	b.debugRegisters(c, x86.Addr(gs))
}

// debugRegisters gives the CPU the values that the kernel says it has set: no dump has the
// registers (arch/x86/kernel/hw_breakpoint.c, cpu_dr7 and cpu_debugreg).
func (b *booted) debugRegisters(c *cpu, gs x86.Addr) {
	dr7, addrs := b.guest.Variable("cpu_dr7"), b.guest.Variable("cpu_debugreg")
	if dr7 == 0 || addrs == 0 {
		return
	}
	c.sys.dr[7] |= b.guest.Word(gs+dr7) & 0xffffffff
	for n := range 4 {
		c.sys.dr[n] = b.guest.Word(gs + addrs + x86.Addr(8*n))
	}
}

// startClock starts the counters and each CPU's local APIC.
func (b *booted) startClock() {
	var timers []int
	for i := range b.e.cpus {
		timers = append(timers, b.guest.TimerVector(b.at[i].Control.IDT))
	}
	b.board = board.New(&b.e.shared, b.guest.Counters(), timers)
	b.chance = fromdump.Seeded(b.e.opt.Seed)
	b.e.Extra += b.chance.UpTo(fromdump.TickPhase)
}

// inSystemCall is the CPU whose task is in a system call: calls are made there.
// Without one, it is the first.
func (b *booted) inSystemCall() *cpu {
	for _, c := range b.e.cpus {
		if r := &b.at[c.n].Regs; r.CS&3 == 0 {
			b.takeTurn(c)
			if _, err := b.guest.UserRegs(x86.Addr(r.SP)); err == nil {
				return c
			}
		}
	}
	return b.e.cpus[0]
}

// takeTurn makes c the CPU that runs.
func (b *booted) takeTurn(c *cpu) {
	if c == b.cur && b.board == nil {
		return
	}
	b.cur = c
	b.e.host.SetCPU(c.n)
	if b.board != nil {
		b.board.SetCPU(c.n)
	}
	b.flush()
}

// Aim sets the instruction count before which the run stops. Timers stop it before that.
func (e bootedEngine) Aim(n uint64) { e.b.aim(n) }

func (b *booted) aim(n uint64) {
	b.limit = n
	end := b.turnEnd
	if len(b.e.cpus) == 1 || b.alone {
		end = n
	}
	b.board.Limit = min(n, end)
	b.board.Aim()
}

func errNoMemoryAt(phys uint64) error {
	return fmt.Errorf("no memory and no device is at physical address %#x", phys)
}
