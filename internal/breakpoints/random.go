package breakpoints

import (
	"math/rand/v2"

	"kprobelab/errno"
	"kprobelab/watch/registers"
	"kprobelab/x86"
)

// Choice holds the CPUs and addresses that random questions choose from.
type Choice struct {
	CPUs int
	// Hotplug switches CPUs, except the first, off and on; a dump cannot do that.
	Hotplug bool
	// Kernel lists addresses of the kernel; some of them should be refused.
	Kernel []x86.Addr
}

// asker makes questions, and knows by the rules which tasks and events there are.
type asker struct {
	*rand.Rand
	c      Choice
	list   []Ask
	rules  *rules
	alive  [Tasks]bool
	nobody bool
	off    []bool
	// full is set if the previous question was refused because no register was free.
	full bool
}

// Random makes n questions, and then the questions that close and end what these opened.
func Random(r *rand.Rand, c Choice, k registers.Kernel, n int) []Ask {
	a := &asker{Rand: r, c: c, rules: newRules(k), off: make([]bool, c.CPUs)}
	a.alive[0] = true
	a.ask(Ask{What: Paranoid, N: uint64(r.IntN(4))})
	for t := range 2 {
		a.fork(t + 1)
	}
	for range n {
		a.one()
	}
	a.user(false)
	for cpu, off := range a.off {
		if off {
			a.turn(cpu)
		}
	}
	for t := range Tasks {
		a.kill(t)
	}
	return a.list
}

func (a *asker) ask(q Ask) {
	a.list = append(a.list, q)
	a.full = a.rules.answer(q) == -int64(errno.ENOSPC)
}

func (a *asker) one() {
	if a.full && a.IntN(2) == 0 {
		a.close(a.IntN(Events))
	}
	switch n := a.IntN(100); {
	case n < 52:
		a.open()
	case n < 72:
		a.close(a.IntN(Events))
	case n < 86 && !a.nobody:
		a.poke()
	case n < 89 && !a.nobody:
		a.ask(Ask{What: Peek, Task: a.child(), Addr: a.offset()})
	case n < 91 && !a.nobody:
		a.fork(1 + a.IntN(Tasks-1))
	case n < 93 && !a.nobody:
		a.kill(1 + a.IntN(Tasks-1))
	case n < 96:
		a.user(!a.nobody)
	case n < 97 && !a.nobody:
		a.ask(Ask{What: Paranoid, N: uint64(a.IntN(4))})
	case n < 99 && !a.nobody && a.c.Hotplug && a.c.CPUs > 1:
		a.turn(1 + a.IntN(a.c.CPUs-1))
	}
}

// turn turns a CPU off, or on.
func (a *asker) turn(cpu int) {
	on := uint64(0)
	if a.off[cpu] {
		on = 1
	}
	a.off[cpu] = !a.off[cpu]
	a.ask(Ask{What: Online, CPU: int64(cpu), N: on})
}

func (a *asker) user(nobody bool) {
	if a.nobody != nobody {
		a.nobody = nobody
		n := uint64(0)
		if nobody {
			n = 1
		}
		a.ask(Ask{What: User, N: n})
	}
}

func (a *asker) fork(t int) {
	if !a.alive[t] {
		a.alive[t] = true
		a.ask(Ask{What: Fork, Task: int64(t)})
	}
}

// kill ends a task. Its debugger turns the registers off first.
func (a *asker) kill(t int) {
	if t == 0 || !a.alive[t] {
		return
	}
	a.alive[t] = false
	a.ask(Ask{What: Poke, Task: int64(t), Addr: registers.DebugRegs + 7*8})
	a.ask(Ask{What: Kill, Task: int64(t)})
}

func (a *asker) child() int64 {
	for t := 1 + a.IntN(Tasks-1); ; t = 1 + t%(Tasks-1) {
		if a.alive[t] {
			return int64(t)
		}
		a.fork(1)
	}
}

// close closes the first event from n on that is open.
func (a *asker) close(n int) {
	for i := range Events {
		if m := (n + i) % Events; a.rules.events[m] != nil {
			a.ask(Ask{What: Close, N: uint64(m)})
			return
		}
	}
}

func pick[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

// open mostly draws attributes that the kernel does not refuse.
func (a *asker) open() {
	n := a.IntN(Events)
	if a.rules.events[n] != nil {
		return
	}
	q := Ask{What: Open, N: uint64(n), Task: -1, CPU: -1, Type: pick(a.Rand, uint64(2), 3, 4), Len: 1 << a.IntN(4), Addr: 0x10000 + 8*uint64(a.IntN(64))}
	if q.Type == 4 {
		q.Len = 8
	}
	if a.IntN(3) > 0 {
		q.Task = 0
		if a.IntN(2) == 0 {
			q.Task = a.task()
		}
	}
	if q.Task < 0 || a.IntN(3) == 0 {
		q.CPU = int64(a.IntN(a.c.CPUs))
	}
	if a.IntN(2) == 0 {
		q.Flags = ExcludeKernel
	}
	a.odd(&q)
	a.ask(q)
}

// task draws a task that lives, or the asking task.
func (a *asker) task() int64 {
	for t := a.IntN(Tasks); ; t = (t + 1) % Tasks {
		if a.alive[t] {
			return int64(t)
		}
	}
}

// odd makes a question one that may be refused.
func (a *asker) odd(q *Ask) {
	for a.IntN(4) == 0 {
		switch a.IntN(7) {
		case 0:
			q.Type = pick(a.Rand, uint64(a.IntN(9)), 1<<a.IntN(31))
		case 1:
			q.Len = pick(a.Rand, uint64(a.IntN(20)), 1<<a.IntN(40), a.Uint64())
		case 2:
			q.Addr += uint64(a.IntN(9))
		case 3, 4:
			q.Addr = uint64(pick(a.Rand, a.c.Kernel...).Add(int64(a.IntN(20) - 4)))
		case 5:
			q.Addr = pick(a.Rand, 0, uint64(x86.UserEnd)-uint64(a.IntN(12)), uint64(x86.UserEnd), -uint64(1+a.IntN(12)), a.Uint64(), 0x800000000000, 0xfffffe0000000000)
		case 6:
			q.CPU = pick(a.Rand, int64(-1), -2, int64(a.c.CPUs), 1<<20, int64(a.IntN(a.c.CPUs)))
		}
	}
}

func (a *asker) offset() uint64 {
	if a.IntN(8) == 0 {
		return pick(a.Rand, uint64(registers.DebugRegs-8), registers.UserSize, registers.DebugRegs+uint64(a.IntN(64)), 1<<40, ^uint64(7))
	}
	return registers.DebugRegs + 8*uint64(a.IntN(8))
}

func (a *asker) poke() {
	q := Ask{What: Poke, Task: a.child(), Addr: a.offset(), Len: 0x10000 + 8*uint64(a.IntN(64))}
	switch {
	case q.Addr == registers.DebugRegs+7*8 || a.IntN(3) == 0:
		q.Addr, q.Len = registers.DebugRegs+7*8, a.control()
	case a.IntN(3) == 0:
		o := Ask{Addr: q.Len}
		a.odd(&o)
		q.Len = o.Addr
	}
	a.ask(q)
}

// control is a word for DR7, mostly with possible lengths and accesses.
func (a *asker) control() (dr7 uint64) {
	if a.IntN(10) == 0 {
		return a.Uint64()
	}
	for n := range registers.Count {
		rw := pick(a.Rand, uint64(0), 1, 3, 1, 3)
		length := uint64(a.IntN(4))
		if rw == 0 && a.IntN(8) > 0 {
			length = 0
		}
		if a.IntN(12) == 0 {
			rw = 2
		}
		dr7 |= (rw | length<<2) << (16 + 4*n)
		if a.IntN(3) == 0 {
			dr7 |= 1 << (2*n + a.IntN(2))
		}
	}
	return dr7
}
