package interp

import (
	"maps"

	"kprobelab/internal/board"
	"kprobelab/internal/fromdump"
	"kprobelab/machine"
	"kprobelab/x86"
)

// processor is a CPU between two runs.
type processor struct {
	state
	fs, gs, kernelGS uint64
	sys              system
	halted, single   bool
	board            board.CPU
}

func (c *cpu) processor() processor {
	p := processor{c.state, c.fs, c.gs, c.kernelGS, c.sys, c.halted, c.single, *c.e.b.board.CPU(c.n)}
	p.sys.msr = maps.Clone(c.sys.msr)
	return p
}

func (c *cpu) setProcessor(p *processor) {
	c.state, c.fs, c.gs, c.kernelGS, c.halted, c.single = p.state, p.fs, p.gs, p.kernelGS, p.halted, p.single
	c.sys = p.sys
	c.sys.msr = maps.Clone(p.sys.msr)
	*c.e.b.board.CPU(c.n) = p.board
}

// stopped is a booted machine between two runs, but for its memory.
type stopped struct {
	cpus          []processor
	cur           int
	instrs, extra uint64
	chance        fromdump.Chance
	tasks         fromdump.Tasks
	task          int
	lost          error
	seen          map[*page]page // the guest's bytes of text that the host had changed
	held          map[x86.Addr]bool
}

// Keep keeps all but memory for GoBack.
func (e bootedEngine) Keep() (any, error) {
	b := e.b
	s := &stopped{
		cur: b.cur.n, instrs: e.Instrs, extra: e.Extra, chance: b.chance.Clone(), tasks: b.tasks.Clone(),
		task: e.host.Task(), lost: b.lost, seen: map[*page]page{}, held: maps.Clone(b.held),
	}
	for p, v := range b.views {
		s.seen[p] = *v.seen
	}
	for _, c := range e.cpus {
		s.cpus = append(s.cpus, c.processor())
	}
	return s, nil
}

// GoBack restores the kept state.
func (e bootedEngine) GoBack(kept any) error {
	b, s := e.b, kept.(*stopped)
	e.Instrs, e.Extra, b.board.Turn = s.instrs, s.extra, false
	b.interrupts, b.digest = 0, 0
	b.chance, b.tasks, b.lost, b.graceAt = s.chance.Clone(), s.tasks.Clone(), s.lost, 0
	e.host.SetTask(s.task)
	for i, c := range e.cpus {
		c.setProcessor(&s.cpus[i])
	}
	e.watchAgain()
	b.takeTurn(e.cpus[s.cur])
	for p, v := range b.views {
		seen, was := s.seen[p]
		if !was {
			seen = *p
		}
		*v.seen, v.was = seen, seen
	}
	b.taken, b.held = nil, maps.Clone(s.held)
	return nil
}

// interrupted holds the registers of the task that a call of the host interrupts.
type interrupted struct {
	state    state
	cs, ss   uint16
	fs, user uint64 // of user mode
	tables   bool   // CR3 holds the page tables of user mode
}

// userTables are the bits of CR3 that select the page tables of user mode (page table isolation,
// arch/x86/entry/calling.h).
const userTables = 1<<12 | 1<<11

func (b *booted) interrupted() interrupted {
	c := b.cur
	return interrupted{c.state, c.sys.sel[segCS], c.sys.sel[segSS], c.fs, c.kernelGS, c.sys.cr[3]&userTables != 0}
}

// putBack restores the task's registers, on the CPU that now runs it.
func (b *booted) putBack(s interrupted) {
	c := b.cur
	c.state = s.state
	c.fs, c.gs, c.kernelGS = s.fs, uint64(b.gs[c.n]), s.user
	if cr3 := c.sys.cr[3]; !s.tables && cr3&userTables != 0 {
		c.setControl(3, cr3&^userTables)
	}
	c.setPrivilege(s.cs, s.ss)
}

// Current is the address of the task that runs.
func (e bootedEngine) Current() x86.Addr { return e.b.running() }

// TaskStruct and TaskNumber are the address of a task by its number, and the number by the address.
func (e bootedEngine) TaskStruct(task int) x86.Addr { return e.b.tasks.Struct(task) }
func (e bootedEngine) TaskNumber(task x86.Addr) int { return e.b.tasks.Number(task) }

// watchExits reports the end of a task of the guest to the receiver of traps, ends a call of
// the host whose task ends, which never returns, and ends the run of a kernel that panics: after its message it only
// waits.
func (b *booted) watchExits() {
	h := b.e.host
	ends := map[string]hook{fromdump.TaskDead: b.taskDead}
	for _, name := range fromdump.FlushTask {
		ends[name] = func(c *cpu, o *op) bool {
			c.show(o, func(regs *x86.PtRegs) {
				if n, known := b.tasks.Forget(x86.Addr(regs.DI)); known {
					h.TaskExit(n)
				}
			})
			return true
		}
	}
	for _, name := range fromdump.Panics {
		ends[name] = func(c *cpu, o *op) bool {
			if uint32(c.r[rdi]) != fromdump.DumpPanic {
				return true
			}
			b.fail(fromdump.Panicked(string(b.e.Console())))
			return false
		}
	}
	for name, fn := range ends {
		if at := b.guest.Variable(name); at != 0 {
			b.addHook(at, fn)
		}
	}
}

// taskDead is the function in which a task gives up its CPU for ever.
func (b *booted) taskDead(*cpu, *op) bool {
	if b.running() != b.caller {
		return true
	}
	b.fail(machine.ErrTaskExited)
	return false
}

// Grace waits until every task of the guest has given up its CPU by itself or was in user mode: the
// guest's own grace period. Kernels without such a grace period do not preempt kernel code.
func (e bootedEngine) Grace() bool {
	m := e.host.Machine()
	b := e.b
	if e.host.Outside() != nil || b.lost != nil {
		return false
	}
	if b.graceAt == m.Now() && b.graceAt != 0 || b.guest.Variable("synchronize_rcu_tasks") == 0 {
		return true
	}
	_, err := m.Call("synchronize_rcu_tasks")
	b.graceAt = m.Now()
	return err == nil
}
