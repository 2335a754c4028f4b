package process

import (
	"cmp"
	"encoding/binary"
	"errors"
	"slices"

	"kprobelab/errno"
	"kprobelab/x86"
)

// thread is a thread of the program (a task). One runs at a time; they take turns at traps and
// system calls, in an order that depends on the seed.
type thread struct {
	group *group
	tid   int
	// regs and floats are its registers while another thread runs.
	regs   x86.PtRegs
	floats []byte
	fsBase uint64
	// atEnd is the address to which 0 is written when the thread ends; threads that wait there are
	// woken (clear_child_tid).
	atEnd x86.Addr
	// asleep describes its sleep; nil if it can run.
	asleep *sleep
	ended  bool

	threadSignals
}

// sleep describes the end that a sleeping thread waits for: a futex, a time, a signal, a child.
type sleep struct {
	at   x86.Addr // of the futex, 0 for none
	of   any      // and whose memory that is in
	bits uint32
	// child is the wait4 that waits, vfork the process that a vfork's parent waits for; nil for
	// none.
	child *waitFor
	vfork *group
	// until is the time at which the sleep ends by itself with result, 0 for never.
	until  uint64
	result errno.Errno
	// ready reports that the waiting call can continue, and retry makes it again. ready is nil if
	// only something else ends the sleep.
	ready func() bool
	retry func() (uint64, error)
	// tried is the value of changes when the call was last made and had to wait. An object may be
	// ready but not for this call (an eventfd that the number does not fit into), so the call is
	// not made again before the next change.
	tried uint64
	// again is the system call that restarts after a handler with SA_RESTART; nil if none does.
	again *uint64
	order uint64
}

var errWaits = errors.New("the program waits, and nobody could wake it")

// TID is the running thread; the first has the process's number.
func (p *Process) TID() int { return p.tid }

// Now returns the virtual clock: the machine's clock plus the time slept.
func (p *Process) Now() uint64 { return p.m.Now() + p.skipped }

// back returns to the program: another thread may run first, and signals are delivered.
func (p *Process) back(regs *x86.PtRegs) {
	for p.then == nil && p.exit == nil {
		switch next := p.choose(); {
		case next == nil && p.first != nil:
			p.finish(p.first, regs)
		case next == nil:
			p.giveUp(errWaits, regs)
		case next != p.thread:
			p.switchTo(next, regs)
		default:
			p.wake(p.thread, regs)
			if p.asleep != nil {
				continue
			}
			if p.deliver(regs) {
				return
			}
		}
	}
}

// canGoOn reports whether the call that waits can be made again.
func (p *Process) canGoOn(s *sleep) bool { return s.ready != nil && s.tried != p.changes && s.ready() }

// runnable reports whether a thread can go on now.
func (p *Process) runnable(t *thread) bool {
	s := t.asleep
	switch {
	case t.ended || t.group.stopped:
		return false
	case s == nil:
		return true
	case s.vfork != nil:
		return !s.vfork.usesVM
	}
	return s.until != 0 && s.until <= p.Now() || p.canGoOn(s) || s.child != nil && t.group.waitEnds(s.child) || t.next() != 0
}

// runnables are the threads of a process that can go on.
func (p *Process) runnables(g *group) (list []*thread) {
	for _, t := range g.threads {
		if p.runnable(t) {
			list = append(list, t)
		}
	}
	return list
}

// switches is the chance of a change of process while this one could run: 1 in switches.
const switches = 64

// choose returns the thread that runs next, nil if none can. If all sleep, it lets time pass until
// one does not.
func (p *Process) choose() *thread {
	fresh, yields := p.fresh, p.yields
	p.fresh, p.yields = false, false
	can := p.runnable(p.thread)
	if can && len(p.groups) == 1 && len(p.threads) == 1 {
		return p.thread // most often, and nothing is allocated
	}
	list := p.runnables(p.group)
	if len(p.groups) > 1 || p.group.ended {
		if t := p.another(len(list) == 0 || !fresh && (yields && len(list) == 1 || p.random.Uint32()%switches == 0)); t != nil {
			return t
		}
	}
	switch {
	case len(list) == 0:
		return p.sleepOn()
	case can && (fresh || len(list) == 1 || !yields && p.random.Uint32()%4 != 0):
		return p.thread
	}
	t := list[p.random.IntN(len(list))]
	if yields && t == p.thread { // anyone but itself
		t = list[(slices.Index(list, t)+1)%len(list)]
	}
	return t
}

// another chooses a thread of another process, nil if there is none.
func (p *Process) another(wanted bool) *thread {
	if !wanted {
		return nil
	}
	var list []*thread
	for _, g := range p.groups {
		if g != p.group {
			list = append(list, p.runnables(g)...)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return list[p.random.IntN(len(list))]
}

// sleepOn lets the time pass until the first thread wakes of itself.
func (p *Process) sleepOn() *thread {
	var first *thread
	for _, g := range p.groups {
		for _, t := range g.threads {
			if !t.ended && !g.stopped && t.asleep.until != 0 && (first == nil || t.asleep.until < first.asleep.until) {
				first = t
			}
		}
	}
	if first != nil {
		p.skipped += first.asleep.until - p.Now()
		p.changes++
	}
	return first
}

// wake ends a sleep whose end has come, or that a signal ends.
func (p *Process) wake(t *thread, regs *x86.PtRegs) {
	s := t.asleep
	if s == nil {
		return
	}
	t.asleep = nil
	switch {
	case s.vfork != nil:
		regs.AX = uint64(s.vfork.pid)
	case s.child != nil && t.group.waitEnds(s.child):
		regs.AX = p.waited(s.child)
	case p.canGoOn(s):
		p.goOn(s, regs)
	case s.until != 0 && s.until <= p.Now():
		regs.AX = failed(s.result)
		if s.result == 0 {
			regs.AX = 0
		}
	default:
		regs.AX = failed(errno.EINTR)
		t.interrupted = s.again
	}
}

// goOn makes a call that has waited once more; it may have to wait again.
func (p *Process) goOn(s *sleep, regs *x86.PtRegs) {
	switch n, err := s.retry(); {
	case errors.Is(err, errWait):
		s.tried, p.asleep = p.changes, s
	case err != nil:
		regs.AX = failed(errno.Of(err))
	default:
		regs.AX = n
	}
}

// switchTo lets another thread go on.
func (p *Process) switchTo(next *thread, regs *x86.PtRegs) {
	load := func(regs *x86.PtRegs) {
		const msrFSBase = 0xc0000100
		p.group, p.thread, p.fresh = next.group, next, true
		_ = p.m.WriteMem(p.float, next.floats) // it is the machine's own
		*regs = next.regs
		p.outside(p.own+switchCode, regs, func(*x86.PtRegs) {})
		regs.CX, regs.AX, regs.DX = msrFSBase, next.fsBase&0xffffffff, next.fsBase>>32
	}
	enter := func(regs *x86.PtRegs) {
		if p.in == next.group.Space {
			load(regs)
			return
		}
		p.outside(p.own+stopCode, regs, func(regs *x86.PtRegs) {
			if err := next.group.Space.enter(); err != nil {
				p.giveUp(err, regs)
				return
			}
			load(regs)
		})
	}
	last := p.thread
	if last.ended {
		enter(regs)
		return
	}
	p.outside(p.own+floatSave, regs, func(regs *x86.PtRegs) {
		last.regs, last.floats = *regs, p.floats512()
		enter(regs)
	})
}

func (p *Process) floats512() []byte {
	b := make([]byte, floatSize)
	_ = p.m.ReadMem(p.float, b) // it is the machine's own
	return b
}

func (p *Process) alive() (n int) {
	for _, t := range p.threads {
		if !t.ended {
			n++
		}
	}
	return n
}

func (p *Process) setTIDAddress(r *x86.PtRegs) (uint64, error) {
	p.atEnd = x86.Addr(r.DI)
	return uint64(p.tid), nil
}

func (p *Process) yield(*x86.PtRegs) (uint64, error) {
	p.Yield()
	return 0, nil
}

// Yield lets another thread run first, if there is one.
func (p *Process) Yield() { p.yields = true }

// exitThread is exit: the last thread's ends the program, with the first's code.
func (p *Process) exitThread(r *x86.PtRegs) (uint64, error) {
	if p.tid == p.PID() {
		p.exitCode = int(r.DI & 0xff)
	}
	if p.alive() == 1 {
		p.end(Exit{Code: p.exitCode}, r)
		return 0, nil
	}
	p.endThread(p.thread)
	if p.tid != p.PID() {
		p.threads = slices.DeleteFunc(p.threads, func(t *thread) bool { return t == p.thread })
	}
	return 0, nil
}

// sleepFor makes the running thread wait; its call returns by wake.
func (p *Process) sleepFor(s sleep, r *x86.PtRegs) (uint64, error) {
	if p.sleeps++; s.at != 0 && s.until == 0 {
		nr := r.AX
		s.again = &nr
	}
	s.order = p.sleeps
	p.asleep = &s
	return 0, nil
}

// forever is the last time of the clock, in nanoseconds (KTIME_MAX): it does not come.
const forever = 1<<63 - 1

// timeAt reads a struct timespec.
func (p *Process) timeAt(at uint64) (uint64, error) {
	var b [16]byte
	if err := p.Read(x86.Addr(at), b[:]); err != nil {
		return 0, err
	}
	sec, ns := binary.LittleEndian.Uint64(b[:]), binary.LittleEndian.Uint64(b[8:])
	if int64(sec) < 0 || ns >= 1e9 {
		return 0, errno.EINVAL
	}
	if sec >= forever/1_000_000_000 {
		return forever, nil
	}
	return sec*1e9 + ns, nil
}

// nanosleep waits for a time that is in memory, from now or from an epoch on.
func (p *Process) nanosleep(r *x86.PtRegs, at uint64, absolute bool, clock uint64) (uint64, error) {
	n, err := p.timeAt(at)
	if err != nil {
		return 0, err
	}
	return p.sleepFor(sleep{until: p.until(n, absolute, clock == 0)}, r)
}

// until converts a time to the machine's clock: at least 1, or 0 for a time that does not come.
func (p *Process) until(n uint64, absolute, realtime bool) uint64 {
	switch {
	case !absolute:
		n = min(n, forever) + p.Now()
	case realtime && n < forever:
		n -= min(n, epoch*1e9)
	}
	if n >= forever {
		return 0
	}
	return max(n, 1)
}

// Operations of futex.
const (
	futexWait = iota
	futexWake
	_
	futexRequeue
	futexCmpRequeue
	futexWaitBits = 9
	futexWakeBits = 10

	futexRealtime = 256
	futexCommand  = 127
)

func (p *Process) futex(r *x86.PtRegs) (uint64, error) {
	at, bits := x86.Addr(r.DI), ^uint32(0)
	if at%4 != 0 {
		return 0, errno.EINVAL
	}
	op := r.SI & futexCommand
	if op == futexWaitBits || op == futexWakeBits {
		if bits = uint32(r.R9); bits == 0 {
			return 0, errno.EINVAL
		}
	}
	switch op {
	case futexWait, futexWaitBits:
		var b [4]byte
		if err := p.Read(at, b[:]); err != nil {
			return 0, err
		}
		s := sleep{at: at, of: p.futexOf(at), bits: bits, result: errno.ETIMEDOUT}
		if r.R10 != 0 {
			n, err := p.timeAt(r.R10)
			if err != nil {
				return 0, err
			}
			s.until = p.until(n, op == futexWaitBits, r.SI&futexRealtime != 0)
		}
		if binary.LittleEndian.Uint32(b[:]) != uint32(r.DX) {
			return 0, errno.EAGAIN
		}
		return p.sleepFor(s, r)
	case futexWake, futexWakeBits:
		return uint64(p.wakeFutex(at, int(int32(r.DX)), bits)), nil
	case futexRequeue, futexCmpRequeue:
		return p.requeue(r, op == futexCmpRequeue)
	}
	return 0, errno.ENOSYS
}

// futexOf returns the memory that a futex is in: the space, or the shared frames of its mapping.
func (p *Process) futexOf(at x86.Addr) any {
	if v := p.At(at); v != nil && v.shared != nil {
		return v.shared
	}
	return p.Space
}

// wakeFutex wakes up to most waiting threads, the longest waiting first.
func (p *Process) wakeFutex(at x86.Addr, most int, bits uint32) (n int) {
	for _, t := range p.waiters(at) {
		if n < max(most, 1) && t.asleep.bits&bits != 0 {
			t.asleep, t.regs.AX = nil, 0
			n++
		}
	}
	return n
}

// waiters are the threads that wait for a futex, the longest first.
func (p *Process) waiters(at x86.Addr) (list []*thread) {
	of := p.futexOf(at)
	for _, g := range p.groups {
		for _, t := range g.threads {
			if t.asleep != nil && t.asleep.at == at && t.asleep.of == of {
				list = append(list, t)
			}
		}
	}
	slices.SortFunc(list, func(a, b *thread) int { return cmp.Compare(a.asleep.order, b.asleep.order) })
	return list
}

func (p *Process) requeue(r *x86.PtRegs, compare bool) (uint64, error) {
	at, to := x86.Addr(r.DI), x86.Addr(r.R8)
	var b [4]byte
	if err := p.Read(at, b[:]); err != nil {
		return 0, err
	}
	if compare && binary.LittleEndian.Uint32(b[:]) != uint32(r.R9) {
		return 0, errno.EAGAIN
	}
	n := 0
	if int32(r.DX) > 0 {
		n = p.wakeFutex(at, int(int32(r.DX)), ^uint32(0))
	}
	moved := 0
	for _, t := range p.waiters(at) {
		if moved < int(int32(r.R10)) {
			t.asleep.at = to
			moved++
		}
	}
	if compare {
		n += moved
	}
	return uint64(n), nil
}
