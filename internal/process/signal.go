package process

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"

	"kprobelab/errno"
	"kprobelab/internal/bounded"
	"kprobelab/machine"
	"kprobelab/x86"
)

// Signal is a signal's number.
type Signal int

// Signals.
const (
	SIGILL    Signal = 4
	SIGTRAP   Signal = 5
	SIGABRT   Signal = 6
	SIGBUS    Signal = 7
	SIGFPE    Signal = 8
	SIGKILL   Signal = 9
	SIGSEGV   Signal = 11
	SIGPIPE   Signal = 13
	sigCHLD   Signal = 17
	sigCONT   Signal = 18
	sigSTOP   Signal = 19
	sigURG    Signal = 23
	sigWINCH  Signal = 28
	sigSYS    Signal = 31
	firstReal Signal = 32 // each of these is queued, others are pending once
	lastSig   Signal = 64
)

// sigset has bit n-1 for signal n.
type sigset uint64

// valid reports whether a number is a signal's (valid_signal, and not 0).
func (s Signal) valid() bool { return 0 < s && s <= lastSig }

func setOf(list ...Signal) (s sigset) {
	for _, n := range list {
		s |= 1 << (n - 1)
	}
	return s
}

func (s sigset) has(n Signal) bool { return s&setOf(n) != 0 }

var (
	// ignored by default (sig_kernel_ignore); the others kill or stop.
	ignored = setOf(sigCHLD, sigCONT, sigURG, sigWINCH)
	// stops by default (sig_kernel_stop).
	stops = setOf(sigSTOP, 20, 21, 22)
	// synchronous come from the program's own instruction, and go first.
	synchronous = setOf(SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV, sigSYS)
	// unblockable cannot be blocked nor handled.
	unblockable = setOf(SIGKILL, sigSTOP)
)

// handlers that are none.
const (
	handlerDefault = 0
	handlerIgnore  = 1
)

// Flags of an action (SA_SIGINFO, …).
const (
	actionNoChildStop = 1
	actionNoChildWait = 2
	actionInfo        = 4
	actionRestorer    = 0x04000000
	actionOnStack     = 0x08000000
	actionRestart     = 0x10000000
	actionNoDefer     = 0x40000000
	actionResetHand   = 0x80000000
	actionFlags       = 7 | 0x800 | actionRestorer | actionOnStack | actionRestart | actionNoDefer | actionResetHand
)

// action is the action of a signal (struct k_sigaction).
type action struct {
	handler, flags, restorer uint64
	mask                     sigset
}

// Codes of a siginfo: who sent it.
const (
	codeUser   = 0
	codeKernel = 0x80
	codeThread = -6
)

// siginfo is a signal with the kernel's information about it, as a handler gets it.
type siginfo struct {
	signal Signal
	code   int32
	// body are the bytes after the code and its padding, of 16 to 47.
	body [32]byte
}

func infoAt(s Signal, code int32, at x86.Addr) siginfo {
	i := siginfo{signal: s, code: code}
	binary.LittleEndian.PutUint64(i.body[:], uint64(at))
	return i
}

func infoFrom(s Signal, code int32, sender uint32) siginfo {
	i := siginfo{signal: s, code: code}
	binary.LittleEndian.PutUint32(i.body[:], sender)
	return i
}

// queue are pending signals, in the order in which they were sent.
type queue struct{ list []siginfo }

func (q *queue) set() (s sigset) {
	for _, i := range q.list {
		s |= setOf(i.signal)
	}
	return s
}

func (q *queue) add(i siginfo) error {
	if i.signal < firstReal && q.set().has(i.signal) {
		return nil
	}
	if len(q.list) >= bounded.Signals {
		return errno.EAGAIN
	}
	q.list = append(q.list, i)
	return nil
}

// take removes the first of a signal.
func (q *queue) take(s Signal) (siginfo, bool) {
	for n, i := range q.list {
		if i.signal == s {
			q.list = append(q.list[:n:n], q.list[n+1:]...)
			return i, true
		}
	}
	return siginfo{}, false
}

func (q *queue) drop(s Signal) {
	for {
		if _, ok := q.take(s); !ok {
			return
		}
	}
}

// next returns the signal that is taken first (next_signal).
func (q *queue) next(blocked sigset) Signal {
	s := q.set() &^ blocked
	if s&synchronous != 0 {
		s &= synchronous
	}
	if s == 0 {
		return 0
	}
	return Signal(bits.TrailingZeros64(uint64(s)) + 1)
}

// signals holds the signal actions and pending signals of a process.
type signals struct {
	actions *actions
	// pending are the signals that any thread may take.
	pending queue
}

// threadSignals holds the signal mask, pending signals and alternate stack of a thread.
type threadSignals struct {
	sent queue // the signals sent to this thread alone
	mask sigset
	// waiting is the mask to restore after sigsuspend, nil outside it.
	waiting *sigset
	stack   altStack
	// The last exception, as a handler finds it: number, error code, address.
	trap, code, address uint64
	// interrupted is the number of the system call that a signal has ended and that may begin anew;
	// nil if there is none.
	interrupted *uint64
}

// send makes a signal pending (send_signal): of a thread, or of all for nil. One that is ignored is
// dropped.
func (g *group) send(i siginfo, to *thread) error {
	switch {
	case i.signal == sigCONT, i.signal == SIGKILL:
		g.stopped = false
		g.drop(stops)
	case stops.has(i.signal):
		g.drop(setOf(sigCONT))
	}
	a, q := &g.actions[i.signal], &g.pending
	if to != nil {
		q = &to.sent
	} else {
		to = g.threads[0]
	}
	if !to.mask.has(i.signal) && (a.handler == handlerIgnore || a.handler == handlerDefault && ignored.has(i.signal)) {
		return nil
	}
	return q.add(i)
}

// drop takes pending signals away.
func (g *group) drop(set sigset) {
	for s := Signal(1); s <= lastSig; s++ {
		if set.has(s) {
			g.pending.drop(s)
			for _, t := range g.threads {
				t.sent.drop(s)
			}
		}
	}
}

// next returns the signal that a thread takes first, 0 for none. A signal for the whole process
// counts only if no thread before this one takes it.
func (t *thread) next() Signal {
	if s := t.sent.next(t.mask); s != 0 {
		return s
	}
	others := t.mask
	for _, o := range t.group.threads {
		if o == t {
			break
		}
		if !o.ended {
			others |= ^o.mask
		}
	}
	return t.group.pending.next(others)
}

// take removes the signal of next from its queue, and returns it.
func (p *Process) take(t *thread) (i siginfo, ok bool) {
	s := t.next()
	if i, ok = t.sent.take(s); !ok {
		i, ok = p.pending.take(s)
	}
	return i, ok
}

// Send makes a signal pending for the running thread, as its own kill does. It is delivered before
// the program goes on.
func (p *Process) Send(s Signal) { _ = p.send(infoFrom(s, codeUser, uint32(p.PID())), p.thread) } // the queue has room for those

// Force makes a signal pending that the program itself has caused: if it is blocked or ignored, it
// kills (force_sig).
func (p *Process) Force(s Signal) { p.force(infoAt(s, codeKernel, 0)) }

func (p *Process) force(i siginfo) {
	a := &p.actions[i.signal]
	if p.mask.has(i.signal) || a.handler == handlerIgnore {
		a.handler = handlerDefault
		p.mask &^= setOf(i.signal)
	}
	_ = p.sent.add(i) // an equal pending signal has the same effect
}

// fatal reports whether a pending signal will kill the process.
func (p *Process) fatal() bool {
	for _, i := range append(p.sent.list[:len(p.sent.list):len(p.sent.list)], p.pending.list...) {
		if i.signal == SIGKILL || !p.mask.has(i.signal) && p.actions[i.signal].handler == handlerDefault && !ignored.has(i.signal) && !stops.has(i.signal) {
			return true
		}
	}
	return false
}

// deliver runs before the program continues, as in the kernel: a pending signal kills the process,
// or its handler is entered. Signals wait while an instruction is stepped out of line
// (uprobe_deny_signal). It returns true if nothing is left to do.
func (p *Process) deliver(regs *x86.PtRegs) bool {
	if p.c.Tracer != nil && p.c.Tracer.Stepping() {
		if !p.fatal() {
			p.interrupted = nil
			return true
		}
		p.c.Tracer.Abort(regs)
	}
	info, ok := p.take(p.thread)
	s := info.signal
	a := p.actions[s]
	switch {
	case !ok && p.waiting != nil:
		p.asleep = &sleep{}
		return false
	case !ok:
		p.restart(regs)
		return true
	case a.handler > handlerIgnore:
		if a.flags&actionResetHand != 0 {
			p.actions[s].handler = handlerDefault
		}
		if a.flags&actionRestart != 0 {
			p.restart(regs)
		}
		p.interrupted = nil
		entered := a // which is kept; a would be allocated whenever nothing is to be delivered
		p.enter(&info, &entered, regs)
	case a.handler == handlerIgnore || ignored.has(s):
	case stops.has(s) && len(p.groups) > 1:
		p.stopped, p.told = true, false
		p.status = uint32(s)<<8 | stopStatus
		p.tellParent(p.group)
	case stops.has(s):
		p.giveUp(fmt.Errorf("the program stopped itself with signal %d, and nobody could continue it", s), regs)
	default:
		p.end(Exit{Signal: s}, regs)
	}
	return false
}

// restart makes an interrupted system call begin anew.
func (p *Process) restart(regs *x86.PtRegs) {
	if p.interrupted != nil {
		regs.AX, p.interrupted = *p.interrupted, nil
		regs.IP -= 2
	}
}

// exception makes a signal of a fault at regs.IP (do_trap, bad_area, force_sig_fault).
func (p *Process) exception(vector int, regs *x86.PtRegs) {
	fault, access := p.m.Accessed()
	if vector == machine.VectorPage && p.touched(fault, access, regs) {
		return
	}
	before := p.trap
	regs.Flags |= x86.FlagRF
	p.trap, p.code = uint64(vector), 0
	if vector == machine.VectorPage {
		p.address, p.code = uint64(fault), p.pageError(fault, access)
	}
	if p.c.Tracer != nil && p.c.Tracer.Stepping() {
		p.c.Tracer.Abort(regs)
		p.trap = before
	}
	// The codes are ILL_ILLOPN, FPE_INTDIV, BUS_ADRALN, SEGV_MAPERR and SEGV_ACCERR.
	ip := x86.Addr(regs.IP)
	switch vector {
	case machine.VectorDivide:
		p.force(infoAt(SIGFPE, 1, ip))
	case machine.VectorInvalid:
		p.force(infoAt(SIGILL, 2, ip))
	case machine.VectorPage:
		code := int32(1)
		if p.At(fault) != nil {
			code = 2
		}
		p.force(infoAt(SIGSEGV, code, fault))
	case vectorMath, vectorSIMD:
		p.force(infoAt(SIGFPE, 0, ip))
	case vectorAlign:
		p.force(infoAt(SIGBUS, 1, 0))
	default:
		p.Force(SIGSEGV)
	}
}

// Vectors of exceptions that only programs meet.
const (
	vectorMath  = 16
	vectorAlign = 17
	vectorSIMD  = 19
)

// pageError is a page fault's error code; of the kernel's half it says that there is a page.
func (p *Process) pageError(at x86.Addr, access machine.Access) uint64 {
	const present, write, user, fetch = 1, 2, 4, 16
	code := uint64(user)
	if v := p.At(at); at >= userTop || v != nil && v.Prot != 0 {
		code |= present
	}
	switch access {
	case machine.AccessWrite:
		code |= write
	case machine.AccessFetch:
		code |= fetch
	}
	return code
}

const sigsetSize = 8

func (p *Process) sigAction(r *x86.PtRegs) (uint64, error) {
	s := Signal(r.DI)
	if r.R10 != sigsetSize || r.DI < 1 || r.DI > uint64(lastSig) || r.SI != 0 && unblockable.has(s) {
		return 0, errno.EINVAL
	}
	old := p.actions[s]
	if r.SI != 0 {
		var b [32]byte
		if err := p.Read(x86.Addr(r.SI), b[:]); err != nil {
			return 0, err
		}
		word := func(n int) uint64 { return binary.LittleEndian.Uint64(b[8*n:]) }
		p.actions[s] = action{word(0), word(1) & actionFlags, word(2), sigset(word(3)) &^ unblockable}
		if h := word(0); h == handlerIgnore || h == handlerDefault && ignored.has(s) {
			p.drop(setOf(s))
		}
	}
	if r.DX == 0 {
		return 0, nil
	}
	return 0, p.words(x86.Addr(r.DX), old.handler, old.flags, old.restorer, uint64(old.mask))
}

// words writes numbers of eight bytes.
func (p *Process) words(at x86.Addr, list ...uint64) error {
	b := make([]byte, 0, 8*len(list))
	for _, w := range list {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return p.Write(at, b)
}

func (p *Process) readSet(at uint64) (sigset, error) {
	var b [sigsetSize]byte
	err := p.Read(x86.Addr(at), b[:])
	return sigset(binary.LittleEndian.Uint64(b[:])) &^ unblockable, err
}

func (p *Process) sigMask(r *x86.PtRegs) (uint64, error) {
	old := p.mask
	if r.R10 != sigsetSize {
		return 0, errno.EINVAL
	}
	if r.SI != 0 {
		set, err := p.readSet(r.SI)
		if err != nil {
			return 0, err
		}
		switch r.DI {
		case 0: // SIG_BLOCK
			p.mask |= set
		case 1:
			p.mask &^= set
		case 2:
			p.mask = set
		default:
			return 0, errno.EINVAL
		}
	}
	if r.DX == 0 {
		return 0, nil
	}
	return 0, p.words(x86.Addr(r.DX), uint64(old))
}

func (p *Process) sigPending(r *x86.PtRegs) (uint64, error) {
	if r.SI > sigsetSize {
		return 0, errno.EINVAL
	}
	b := binary.LittleEndian.AppendUint64(nil, uint64((p.pending.set()|p.sent.set())&p.mask))
	return 0, p.Write(x86.Addr(r.DI), b[:r.SI])
}

// sigSuspend is rt_sigsuspend; pause is it with the mask as it is.
func (p *Process) sigSuspend(r *x86.PtRegs) (uint64, error) {
	if r.SI != sigsetSize {
		return 0, errno.EINVAL
	}
	set, err := p.readSet(r.DI)
	if err != nil {
		return 0, err
	}
	return p.suspend(set, r)
}

func (p *Process) suspend(set sigset, r *x86.PtRegs) (uint64, error) {
	old := p.mask
	p.waiting, p.mask = &old, set
	return p.sleepFor(sleep{}, r)
}

// kill signals one process, all in the group (0 and below), or all but the caller (-1).
func (p *Process) kill(to, signal uint64) (uint64, error) {
	n := int(int32(to))
	var list []*group
	switch {
	case signal > uint64(lastSig):
		return 0, errno.EINVAL
	case n == 0, n == -FirstPID:
		list = slices.Clone(p.groups)
	case n == -1:
		list = slices.DeleteFunc(slices.Clone(p.groups), func(g *group) bool { return g == p.group })
	default:
		if p.zombie(n) {
			return 0, nil
		}
		if g := p.byPID(n); g != nil {
			list = []*group{g}
		}
	}
	if len(list) == 0 {
		return 0, errno.ESRCH
	}
	var err error
	for _, g := range list {
		if signal != 0 {
			err = g.send(infoFrom(Signal(signal), codeUser, uint32(p.PID())), nil)
		}
	}
	return 0, err
}

// zombie reports whether a process has ended and its parent has not waited for it.
func (p *Process) zombie(pid int) bool {
	return slices.ContainsFunc(p.groups, func(g *group) bool {
		return slices.ContainsFunc(g.children, func(c *group) bool { return c.pid == pid && c.ended })
	})
}

// killThread is tkill, and tgkill with the process's number.
func (p *Process) killThread(to, signal uint64) (uint64, error) {
	t := p.byTID(to)
	switch {
	case t == nil:
		return 0, errno.ESRCH
	case signal > uint64(lastSig):
		return 0, errno.EINVAL
	case signal == 0:
		return 0, nil
	}
	return 0, t.group.send(infoFrom(Signal(signal), codeThread, uint32(p.PID())), t)
}

func (p *Process) killThreadOf(group, to, signal uint64) (uint64, error) {
	if t := p.byTID(to); t == nil || t.group.pid != int(int32(group)) {
		return 0, errno.ESRCH
	}
	return p.killThread(to, signal)
}

func (p *Process) byTID(tid uint64) *thread {
	for _, g := range p.groups {
		for _, t := range g.threads {
			if t.tid == int(int32(tid)) && !t.ended {
				return t
			}
		}
	}
	return nil
}

// queueInfo is rt_sigqueueinfo, and rt_tgsigqueueinfo of a thread.
func (p *Process) queueInfo(g *group, to *thread, signal, at uint64) (uint64, error) {
	var b [48]byte
	if err := p.Read(x86.Addr(at), b[:]); err != nil {
		return 0, err
	}
	code := int32(binary.LittleEndian.Uint32(b[8:]))
	switch {
	case (code >= 0 || code == codeThread) && g != p.group:
		return 0, errno.EPERM // it would pretend to be the kernel
	case g == nil:
		return 0, errno.ESRCH
	case signal > uint64(lastSig):
		return 0, errno.EINVAL
	case signal == 0:
		return 0, nil
	}
	return 0, g.send(siginfo{signal: Signal(signal), code: code, body: [32]byte(b[16:])}, to)
}

func (p *Process) queueThreadInfo(r *x86.PtRegs) (uint64, error) {
	t := p.byTID(r.SI)
	if t == nil || t.group.pid != int(int32(r.DI)) {
		return p.queueInfo(nil, nil, r.DX, r.R10)
	}
	return p.queueInfo(t.group, t, r.DX, r.R10)
}
