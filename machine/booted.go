package machine

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"kprobelab/errno"
	"kprobelab/internal/contract"
	"kprobelab/kimage"
	"kprobelab/kimage/vmcore"
	"kprobelab/x86"
)

// BootedSource is an optional interface of a Source whose kernel has booted.
type BootedSource interface {
	// Core returns the dump, nil if there is none.
	Core() *vmcore.Core
	// Processors returns the dump's CPUs, or an error if their registers are unknown.
	Processors() ([]vmcore.CPU, error)
	// Beside returns segments outside the dump's memory, where its kernel maps nothing.
	Beside() []kimage.Segment
}

// Booted is an Engine that can run a kernel which has booted, from a dump of its
// memory: with the guest's page tables, interrupts, user mode and tasks.
type Booted interface {
	Engine
	// Lay maps the dump's memory. It returns the number of CPUs in the dump, and an address in
	// module space with size free bytes.
	Lay(size x86.Addr) (cpus int, free x86.Addr, err error)
	// GoOn sets the CPUs to their registers in the dump.
	GoOn() error
	// GSBase is the kernel's GS base of a CPU.
	GSBase(cpu int) x86.Addr

	// Call calls a function in the task that runs. The result is the registers at its end.
	Call(addr x86.Addr, args []uint64) (x86.PtRegs, error)
	// SystemCalls, Resume, Alone, Stopped, OnHostCall, OnSystemCalls, OnExecuted and ShowExecuted are the methods of Machine.
	SystemCalls(n, nr uint64, args []uint64) (int64, error)
	Resume(stop x86.Addr) (bool, error)
	Alone(on bool)
	Stopped() x86.PtRegs
	OnHostCall(group uint16, fn func(regs *x86.PtRegs) (done bool))
	OnSystemCalls(numbers []uint64, fn func(regs *x86.PtRegs))
	OnExecuted(fn func(regs *x86.PtRegs))
	ShowExecuted(at x86.Addr) bool
	// Current is the address of the running task's task_struct, TaskStruct the address for a task's
	// number, TaskNumber the number, -1 if it has none.
	Current() x86.Addr
	TaskStruct(task int) x86.Addr
	TaskNumber(task x86.Addr) int
	// Interrupts and DirectMapped are the machine's.
	Interrupts() (n, digest uint64)
	DirectMapped(addr x86.Addr) (x86.Addr, error)
	// HideText precedes a change of text by the host, which the guest's own reads do not see. If
	// the guest changes the same bytes, its change is executed, but for an int3 in the first of them, and
	// Host.Taken is called before the next trap. GuestText replaces the host's changes in b by the bytes that
	// the guest sees. HoldText keeps an int3 of the host's in a byte, whatever the guest writes there.
	HideText(addr x86.Addr, n int) error
	GuestText(addr x86.Addr, b []byte)
	HoldText(at x86.Addr, on bool) error
	// Grace waits for the guest's grace period of tasks-RCU.
	Grace() bool

	// Keep keeps all but memory for GoBack.
	Keep() (any, error)
	GoBack(kept any) error
}

// ErrNeedsUnicorn: a booted kernel, or a program of it, has come to what its engine does not do. The guest is not
// told of it: a processor would go on.
var ErrNeedsUnicorn = errors.New("the engine unicorn is needed")

// ErrLost: an earlier run ended before the task in which it began was scheduled again. A booted
// machine then has to be restored, or made anew.
var ErrLost = errors.New("the guest is in the middle of an earlier run")

// ownUser is the address of the machine's own user memory on a booted kernel. No program uses that
// address.
const ownUser x86.Addr = 0x6b9000000000

// buildBooted is build for a kernel that has booted.
func (m *Machine) buildBooted() error {
	b, ok := m.engine.(Booted)
	if !ok {
		return fmt.Errorf("%w for a dump of a booted kernel; this is %s", ErrNeedsUnicorn, m.engine.Name())
	}
	m.booted = b
	if err := m.layBooted(); err != nil {
		return layoutError(err)
	}
	if err := m.open(); err != nil {
		return err
	}
	if err := m.makeStubs(); err != nil {
		return err
	}
	if err := b.GoOn(); err != nil {
		return err
	}
	for _, c := range m.cpus {
		local, err := m.heapPages(&m.heap, PageSize)
		if err != nil {
			return err
		}
		if err := m.layLocal(c, local); err != nil {
			return err
		}
		c.gs = b.GSBase(c.n)
	}
	m.tasks = append(m.tasks, &Task{Name: "booted", m: m, stack: x86.Addr(b.Stopped().SP) &^ 15, saved: m.engine.NewState()})
	return nil
}

// layBooted reserves the machine's own memory.
func (m *Machine) layBooted() error {
	size := pageUp(x86.Addr(m.opt.HeapSize)) + execSize
	cpus, start, err := m.booted.Lay(size)
	if err != nil {
		return err
	}
	m.opt.CPUs = cpus
	m.execNext = start
	if m.exec, err = m.reserve(start, start+execSize); err != nil {
		return err
	}
	if m.heap.r, err = m.reserve(start+execSize, start+size); err != nil {
		return err
	}
	m.heap.next = start + execSize
	if m.user.r, err = m.reserve(ownUser, ownUser+UserSize); err != nil {
		return err
	}
	m.user.next = ownUser
	return m.laySegments(m.src.(BootedSource).Beside())
}

// claimBooted claims a booted machine for a run.
func (m *Machine) claimBooted() (outermost bool, err error) {
	if err := m.outside(); err != nil {
		return false, err
	}
	if m.booted == nil {
		return false, fmt.Errorf("the kernel has not booted: %w", errno.EINVAL)
	}
	return m.take()
}

// SystemCall makes a system call as the task in which the dump stopped, through the kernel's own
// entry. The result is user mode's rax: a negative errno if the call failed.
func (m *Machine) SystemCall(nr uint64, args ...uint64) (int64, error) {
	return m.SystemCalls(1, nr, args...)
}

// SystemCalls makes a system call n times, at least once, in a loop in user mode. The
// result is the last one's.
func (m *Machine) SystemCalls(n, nr uint64, args ...uint64) (int64, error) {
	outermost, err := m.claimBooted()
	if err != nil {
		return 0, err
	}
	defer m.give(outermost)
	return m.booted.SystemCalls(n, nr, args)
}

// Alone stops the other CPUs of a booted machine from taking turns, unless the running CPU waits.
func (m *Machine) Alone(on bool) {
	if m.booted != nil {
		m.booted.Alone(on)
	}
}

// Resume lets the guest go on from where it stands, until a host call is done
// (OnHostCall) or the CPU arrives at stop, if that is not 0. It reports whether it
// arrived.
func (m *Machine) Resume(stop x86.Addr) (bool, error) {
	outermost, err := m.claimBooted()
	if err != nil {
		return false, err
	}
	defer m.give(outermost)
	return m.booted.Resume(stop)
}

// OnHostCall makes the machine call fn when a program of a booted kernel makes a system call whose
// number has group in its upper half: no kernel has such numbers. fn puts the result into regs.AX.
// If done is true, the run of Resume ends.
func (m *Machine) OnHostCall(group uint16, fn func(regs *x86.PtRegs) (done bool)) {
	if m.booted != nil {
		m.booted.OnHostCall(group, fn)
	}
}

// OnSystemCalls makes the machine call fn when a program of a booted kernel makes a system call of one of the numbers,
// which are below 512: fn sees the registers, and the kernel gets the call unchanged. No numbers end that.
func (m *Machine) OnSystemCalls(numbers []uint64, fn func(regs *x86.PtRegs)) {
	if m.booted != nil {
		m.booted.OnSystemCalls(numbers, fn)
	}
}

// OnExecuted makes the machine call fn before a CPU executes an instruction that ShowExecuted has
// named. fn sees the registers and changes none of them; it may name more instructions. There can be several receivers:
// end takes fn out.
func (m *Machine) OnExecuted(fn func(regs *x86.PtRegs)) (end func()) {
	if m.executed == nil {
		m.executed = map[int]func(*x86.PtRegs){}
	}
	if m.booted != nil && !m.tellsExecuted {
		m.tellsExecuted = true
		m.booted.OnExecuted(func(regs *x86.PtRegs) {
			for _, n := range slices.Sorted(maps.Keys(m.executed)) {
				m.executed[n](regs)
			}
		})
	}
	n := m.receivers
	m.receivers++
	m.executed[n] = fn
	return func() { delete(m.executed, n) }
}

// ShowExecuted names an instruction for OnExecuted. It stays named, also after a Restore. It returns false if there are too
// many, and if the engine cannot tell.
func (m *Machine) ShowExecuted(at x86.Addr) bool {
	if m.booted == nil {
		return m.showExecuted(at)
	}
	return m.booted.ShowExecuted(at)
}

// TextIsShared reports whether the guest may change its text itself: a booted kernel does.
func (m *Machine) TextIsShared() bool { return m.booted != nil }

// OnTaken installs fn. It is called when a booted kernel has changed text at addresses where the
// host had changed it (PokeText): now the text has the guest's bytes, but for an int3 in place of the first byte
// of an int3, a jump or a call of the host's. fn is called outside of guest
// code or at the start of a trap, before its receiver.
func (m *Machine) OnTaken(fn func(at []x86.Addr)) { m.onTaken = fn }

// GuestText reads text as the guest sees it, without the host's changes.
func (m *Machine) GuestText(addr x86.Addr, b []byte) error {
	if err := m.ReadMem(addr, b); err != nil {
		return err
	}
	if m.booted != nil {
		m.booted.GuestText(addr, b)
	}
	return nil
}

// HoldText writes an int3 to text, where the guest has text of its own, and keeps it there whatever the guest
// writes: OnTaken's function gets each such address. Without on, the guest's byte is executed again.
func (m *Machine) HoldText(at x86.Addr, on bool) error {
	if m.booted == nil {
		return fmt.Errorf("hold text: the kernel has not booted: %w", errno.EINVAL)
	}
	b := []byte{x86.Int3}
	if !on {
		if err := m.GuestText(at, b); err != nil {
			return err
		}
	}
	if err := m.PokeText(at, b); err != nil {
		return err
	}
	return m.booted.HoldText(at, on)
}

// Taken reports the addresses at which the guest has overwritten changes of the host.
func (h *Host) Taken(at []x86.Addr) {
	if h.m.onTaken == nil {
		return
	}
	was := h.m.receiving
	h.m.receiving = true
	defer func() { h.m.receiving = was }()
	h.Call(func() contract.HostAnswer {
		h.m.onTaken(at)
		return contract.Resume
	})
}

// Wait is a run of a booted kernel that has nothing to do, or that has failed.
type Wait struct {
	// Task is the task that ran when the run began, Start was the time then.
	Task  x86.Addr
	Start uint64
	// Err is the error that ended the run. nil: the run continues at the next timer interrupt.
	Err error
}

// waitStep is the virtual time between two calls of OnWait's function, in nanoseconds.
const waitStep = 60_000_000_000

// OnWait installs fn. It is called while all CPUs of a booted kernel wait, at most once in a minute
// of virtual time, and when a run has failed. If fn returns an error, the run ends with that error.
func (m *Machine) OnWait(fn func(w Wait) error) { m.onWait = fn }

// Stopped returns the registers of the CPU on which a booted machine has stopped.
func (m *Machine) Stopped() x86.PtRegs {
	if m.gone || m.booted == nil {
		return x86.PtRegs{}
	}
	return m.booted.Stopped()
}

// RunningTask returns the task_struct of the task that runs on the current CPU of a booted kernel,
// 0 if there is none.
func (m *Machine) RunningTask() x86.Addr {
	if m.gone || m.booted == nil {
		return 0
	}
	return m.booted.Current()
}

// Interrupts returns the number of interrupts that a booted kernel has taken since the machine was
// made or restored, and a digest of their times and instructions. After two runs of the same code
// the kernel's later behaviour can differ if these differ.
func (m *Machine) Interrupts() (n, digest uint64) {
	if m.gone || m.booted == nil {
		return 0, 0
	}
	return m.booted.Interrupts()
}

// DirectMapped returns the address in a booted kernel's map of all physical memory of the byte that
// the running task sees at addr.
func (m *Machine) DirectMapped(addr x86.Addr) (x86.Addr, error) {
	if m.gone || m.booted == nil {
		return 0, fmt.Errorf("no physical memory at %s: %w", addr, errno.EFAULT)
	}
	return m.booted.DirectMapped(addr)
}

// TaskStruct is the address of a booted kernel's task by its number (Task), 0 where
// there is none.
func (m *Machine) TaskStruct(task int) x86.Addr {
	if m.booted == nil {
		return 0
	}
	return m.booted.TaskStruct(task)
}

// TaskNumber is the number of a booted kernel's task (Task), -1 where the machine has not
// seen it.
func (m *Machine) TaskNumber(task x86.Addr) int {
	if m.booted == nil {
		return -1
	}
	return m.booted.TaskNumber(task)
}

// ReadUser reads memory of the program whose task runs. The kernel first brings in pages that are
// not in memory.
func (m *Machine) ReadUser(addr x86.Addr, b []byte) error {
	if err := m.ReadMem(addr, b); err == nil || m.booted == nil || m.runs > 0 {
		return err
	}
	buf, err := m.accessUser(addr, b, 0)
	if err == nil {
		err = m.ReadMem(buf, b)
		m.Free(buf)
	}
	return err
}

// WriteUser writes memory of the running task's program: shared pages become its own, as when the
// program writes them.
func (m *Machine) WriteUser(addr x86.Addr, b []byte) error {
	if err := m.WriteMem(addr, b); err == nil || m.booted == nil || m.runs > 0 {
		return err
	}
	buf, err := m.accessUser(addr, b, follWrite)
	if err == nil {
		m.Free(buf)
	}
	return err
}

// follWrite is FOLL_WRITE (include/linux/mm_types.h).
const follWrite = 1

// accessUser lets the kernel copy to or from user memory, by way of a buffer that has
// b's content before and the result after.
func (m *Machine) accessUser(addr x86.Addr, b []byte, flags uint64) (x86.Addr, error) {
	buf, err := m.Alloc(len(b))
	if err != nil {
		return 0, err
	}
	if err = m.WriteMem(buf, b); err == nil {
		var n uint64
		n, err = m.Call("access_process_vm", uint64(m.booted.Current()), uint64(addr), uint64(buf), len(b), flags)
		if err == nil && int(n) != len(b) {
			err = fmt.Errorf("%d bytes of the program at %s: %w", len(b), addr, errno.EFAULT)
		}
	}
	if err != nil {
		m.Free(buf)
		return 0, err
	}
	return buf, nil
}

// Methods that a Booted calls on its machine.

// SetCPU makes the n-th CPU the running one.
func (h *Host) SetCPU(n int) { h.m.cur, h.m.curCPU = h.m.cpus[n], n }

// SetTask makes the n-th task the running one.
func (h *Host) SetTask(n int) { h.m.setTask(n) }

// TaskExit says that a task of the guest has ended.
func (h *Host) TaskExit(n int) {
	if h.m.traps != nil {
		h.m.traps.TaskExit(n)
	}
}

// Begin is the begin of a run in a task of the guest.
func (h *Host) Begin(task x86.Addr) {
	h.m.wait = Wait{Task: task, Start: h.m.Now()}
	h.m.waitAsked = h.m.Now()
}

// Idle is called when every CPU waits; an error ends the run.
func (h *Host) Idle() error {
	if h.m.onWait == nil || h.m.Now() < h.m.waitAsked+waitStep {
		return nil
	}
	h.m.waitAsked = h.m.Now()
	return h.m.onWait(h.m.wait)
}

// Failed is the error of a run that has ended with err.
func (h *Host) Failed(err error) error {
	if h.m.onWait == nil {
		return err
	}
	w := h.m.wait
	w.Err = err
	return h.m.onWait(w)
}

// Exec returns the address range of the machine's own executable memory.
func (h *Host) Exec() x86.Range { return h.m.exec }

// ExecPage allocates a page of the machine's own executable memory, without a name.
func (h *Host) ExecPage() (x86.Addr, error) { return h.m.allocExec(PageSize) }

// UserCode puts code into a page of user memory.
func (h *Host) UserCode(code []byte) (x86.Addr, error) {
	at, err := h.m.heapPages(&h.m.user, PageSize)
	if err != nil {
		return 0, err
	}
	h.m.engine.Allow(x86.Range{Start: at, End: at + PageSize}, AttrX)
	return at, h.m.PokeText(at, code)
}

// Outside is ErrNested inside a handler, and fails where the machine is closed or
// another goroutine uses it.
func (h *Host) Outside() error { return h.m.outside() }

// Last is the frame at the last fault.
func (h *Host) Last(regs *x86.PtRegs) { h.m.last = *regs }

// Enter makes a CPU enter a function, on the stack below its task's.
func (h *Host) Enter(cpu int, addr x86.Addr, args []uint64) error {
	c := h.m.cpus[cpu]
	if err := h.m.enter(c, belowStack(c), args); err != nil {
		return err
	}
	c.SetIP(addr)
	return nil
}

// Run gives a CPU a budget, and lets it run from where it is until the instruction
// count is limit or something else ends the run.
func (h *Host) Run(cpu int, limit uint64) (contract.Reason, error) {
	m := h.m
	if m.runs == 0 {
		m.allow()
		defer m.startTimer()()
	}
	c := m.cpus[cpu]
	x, err := m.run(c, c.IP(), limit)
	return x.Why, err
}
