package machine

import (
	"fmt"
	"math"
	"reflect"
	"slices"

	"kprobelab/errno"
	"kprobelab/internal/contract"
	"kprobelab/x86"
)

// entryFlags are the flags at a function's entry: interrupts on.
const entryFlags = 0x246

// redZone is the distance in bytes from the interrupted stack pointer down to the start of a nested
// call: the 128 bytes that belong to the interrupted function (System V ABI), and the room of the
// kernel's register frame.
const redZone = 128 + x86.PtRegsSize

// copyBack is a guest buffer of a call, and the slice that receives its content afterwards.
type copyBack struct {
	at x86.Addr
	to []byte
}

// Call calls a function of the guest and returns its rax. It runs as the boot
// task or, when a handler calls, on the stack of the task that was interrupted.
//
// Integers, bools, nil and x86.Addr are passed as they are, and a *Buf by its
// address (0 for nil). A string becomes a NUL-terminated guest buffer. A []byte
// becomes a guest buffer whose content is copied back after the call; a User is
// the same in user memory. These buffers are freed after the call. A variadic
// callee sees al = 0.
//
// A call that a handler makes counts against the budget of the interrupted run.
//
// Errors: ErrNoSymbol, ErrAmbiguous, *Fault, *BudgetError, ErrHandler,
// ErrDeadlock, ErrHalted, ErrTaskExited, ErrClosed, ErrShared.
func (m *Machine) Call(name string, args ...any) (uint64, error) {
	addr, err := m.function(name)
	if err != nil {
		return 0, err
	}
	words, bufs, err := m.marshal(args)
	if err != nil {
		m.release(bufs)
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	ret, err := m.CallAddr(addr, words...)
	m.finish(bufs)
	if err != nil {
		return ret, fmt.Errorf("%s: %w", name, err)
	}
	return ret, nil
}

// CallAddr is Call for an address and plain words. It allocates nothing unless it
// fails.
func (m *Machine) CallAddr(addr x86.Addr, args ...uint64) (uint64, error) {
	if err := m.Closed(); err != nil {
		return 0, err
	}
	outermost, err := m.take()
	if err != nil {
		return 0, err
	}
	defer m.give(outermost)
	if m.cur.Depth() > 0 {
		return m.callNested(addr, args)
	}
	if m.booted != nil {
		m.last, err = m.booted.Call(addr, slices.Clone(args)) // so that args need no heap where nothing has booted
		return m.last.AX, err
	}
	t := m.tasks[0]
	if t.state != idle {
		t.state = idle // the last call failed inside the guest
	}
	c := m.claim(t)
	if err := m.enter(c, t.stack-x86.PtRegsSize, args); err != nil {
		return 0, err
	}
	c.SetIP(addr)
	t.state = runnable
	err = m.schedule(t)
	m.last = *t.place().Regs()
	if err == nil {
		m.last.IP = uint64(m.sh.OuterEnd) // where it returned to
	}
	if err != nil && m.traps != nil {
		m.traps.TaskExit(t.n) // nothing of the call will ever go on
	}
	return m.last.AX, err
}

// callNested makes a handler's call, on the interrupted task's stack. Afterwards
// every register is as it was.
func (m *Machine) callNested(addr x86.Addr, args []uint64) (uint64, error) {
	c, st, aim := m.cur, m.takeState(), m.aim
	defer m.putState(st)
	c.Save(st)
	if err := m.enter(c, belowStack(c), args); err != nil {
		c.Load(st)
		return 0, err
	}
	x, err := m.run(c, addr, math.MaxUint64)
	if err == nil && x.Why != contract.Returned {
		err = ErrAtomic
	}
	m.last = *c.Regs()
	c.Load(st)
	m.aim = aim
	m.engine.Aim(aim)
	if m.expired() {
		m.sh.StopAt.Store(0)
	}
	return m.last.AX, err
}

// belowStack returns the stack pointer for a call inside the CPU's running task.
func belowStack(c *cpu) x86.Addr { return (x86.Addr(c.Regs().SP) - redZone) &^ 15 }

// enter puts arguments and return address where a function expects them. At its
// first instruction sp+8 is a multiple of 16.
func (m *Machine) enter(c *cpu, sp x86.Addr, args []uint64) error {
	var six [6]uint64
	copy(six[:], args)
	rest := args[min(len(args), 6):]
	sp = (sp - 8*x86.Addr(len(rest))) &^ 15
	for i, w := range rest {
		if err := m.putWord(sp.Add(int64(8*i)), w); err != nil {
			return fmt.Errorf("argument %d on the stack: %w", i+7, err)
		}
	}
	sp -= 8
	back := m.sh.OuterEnd
	if c.Depth() > 0 {
		back = m.sh.InnerEnd
	}
	if err := m.putWord(sp, uint64(back)); err != nil {
		return fmt.Errorf("return address on the stack: %w", err)
	}
	c.Enter(sp, six, entryFlags)
	return nil
}

func (m *Machine) putWord(at x86.Addr, w uint64) error {
	_, err := m.SwapWord(at, w)
	return err
}

// Closed is ErrClosed once the machine is closed.
func (m *Machine) Closed() error {
	if m.closed || m.gone {
		return ErrClosed
	}
	return nil
}

// function finds the one symbol of that name.
func (m *Machine) function(name string) (x86.Addr, error) {
	if err := m.Closed(); err != nil {
		return 0, err
	}
	list := m.src.Lookup(name)
	for _, s := range m.symbols {
		if s.Name == name {
			list = append(list[:len(list):len(list)], s)
		}
	}
	switch len(list) {
	case 0:
		return 0, fmt.Errorf("%s: %w: %w", name, ErrNoSymbol, errno.ENOENT)
	case 1:
		return list[0].Addr, nil
	}
	return 0, fmt.Errorf("%s: %w: at %s, %s and maybe more: %w", name, ErrAmbiguous, list[0].Addr, list[1].Addr, errno.EADDRNOTAVAIL)
}

// marshal turns arguments into words. The caller releases the buffers, even after
// an error.
func (m *Machine) marshal(args []any) ([]uint64, []copyBack, error) {
	words := make([]uint64, len(args))
	var bufs []copyBack
	buffer := func(h *heap, content, back []byte) (uint64, error) {
		at, err := m.alloc(h, len(content))
		if err != nil {
			return 0, err
		}
		bufs = append(bufs, copyBack{at, back})
		return uint64(at), m.WriteMem(at, content)
	}
	for i, a := range args {
		var err error
		switch v := a.(type) {
		case nil:
		case string:
			words[i], err = buffer(&m.heap, append([]byte(v), 0), nil)
		case []byte:
			words[i], err = buffer(&m.heap, v, v)
		case User:
			words[i], err = buffer(&m.user, v, v)
		case *Buf:
			if v != nil {
				words[i] = uint64(v.Addr)
			}
		case bool:
			if v {
				words[i] = 1
			}
		default:
			words[i], err = word(v)
		}
		if err != nil {
			return nil, bufs, fmt.Errorf("argument %d: %w", i+1, err)
		}
	}
	return words, bufs, nil
}

// word is any integer type; a negative one is extended to 64 bits.
func word(v any) (uint64, error) {
	r := reflect.ValueOf(v)
	switch {
	case r.CanInt():
		return uint64(r.Int()), nil
	case r.CanUint():
		return r.Uint(), nil
	}
	return 0, fmt.Errorf("a %T cannot be passed: %w", v, errno.EINVAL)
}

// finish copies a call's buffers back, and releases them.
func (m *Machine) finish(bufs []copyBack) {
	for _, b := range bufs {
		if len(b.to) > 0 {
			// The buffer is ours until it is released below.
			_ = m.ReadMem(b.at, b.to)
		}
	}
	m.release(bufs)
}

func (m *Machine) release(bufs []copyBack) {
	for i := len(bufs) - 1; i >= 0; i-- {
		m.Free(bufs[i].at)
	}
}
