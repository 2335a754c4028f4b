package session

import (
	"bytes"
	"errors"

	"kprobelab/internal/callsyntax"
)

// Make makes the call now, on the machine's own task. The error is the machine's (*machine.Fault,
// *machine.BudgetError), or the subsystem's if a hit failed; the result is then nil.
func (l *Session) Make(c *Call) (*Result, error) {
	if c.System != "" {
		return l.makeSystem(c)
	}
	r, args, err := l.marshal(c)
	defer l.release(r)
	if err != nil {
		return nil, err
	}
	r.Value, err = l.Machine.CallAddr(c.Symbol.Addr, args...)
	return l.finish(r, err)
}

// makeSystem makes a system call. Its buffers are in the task's memory.
func (l *Session) makeSystem(c *Call) (*Result, error) {
	k, err := l.Booted()
	if err != nil {
		return nil, err
	}
	r := &Result{Call: c}
	ret, err := k.SystemCall(c.System, systemArgs(c, r)...)
	if err != nil {
		return nil, err
	}
	r.Value = uint64(ret)
	return r, nil
}

// systemArgs are the arguments of a system call. What comes back in buffers goes to the
// result.
func systemArgs(c *Call, r *Result) []any {
	args := make([]any, len(c.Args))
	for i, a := range c.Args {
		switch a := a.(type) {
		case callsyntax.Int:
			args[i] = a.Value
		case callsyntax.SymbolRef:
			args[i] = c.Refs[i]
		default:
			before, _ := content(a)
			b := Buffer{Arg: i, Before: before, After: bytes.Clone(before)}
			args[i] = b.After
			r.Buffers = append(r.Buffers, b)
		}
	}
	return args
}

// Prepare gives the task the user memory that the calls need, before there are probes
// that would see it.
func (l *Session) Prepare(calls []*Call) error {
	most := 0
	for _, c := range calls {
		size := 0
		for _, a := range c.Args {
			if b, is := content(a); is && c.System != "" {
				size += len(b) + bufferRoom
			}
		}
		most = max(most, size)
	}
	if most == 0 {
		return nil
	}
	k, err := l.Booted()
	if err != nil {
		return err
	}
	return k.MapUser(most)
}

// bufferRoom is the number of bytes that a buffer in user memory takes in addition to its content.
const bufferRoom = 32

// Words puts the call's buffers into the guest's heap, where they stay, and returns the
// words to pass: for calls that are made over and over. The buffers of a system call
// are in the task's memory, until the next system call's take their place.
func (l *Session) Words(c *Call) ([]uint64, error) {
	if c.System != "" {
		k, err := l.Booted()
		if err != nil {
			return nil, err
		}
		return k.UserWords(c.System, systemArgs(c, &Result{})...)
	}
	_, words, err := l.marshal(c)
	return words, err
}

// marshal puts the call's buffers into the guest's heap, and gives the words
// to pass.
func (l *Session) marshal(c *Call) (*Result, []uint64, error) {
	r := &Result{Call: c}
	args := make([]uint64, len(c.Args))
	for i, a := range c.Args {
		switch a := a.(type) {
		case callsyntax.Int:
			args[i] = a.Value
		case callsyntax.SymbolRef:
			args[i] = uint64(c.Refs[i])
		default:
			b, err := l.buffer(i, a)
			if err != nil {
				return r, nil, err
			}
			r.Buffers = append(r.Buffers, b)
			args[i] = uint64(b.addr)
		}
	}
	return r, args, nil
}

func (l *Session) buffer(i int, a callsyntax.Arg) (Buffer, error) {
	b := Buffer{Arg: i}
	b.Before, _ = content(a)
	var err error
	if b.addr, err = l.Machine.Alloc(len(b.Before)); err != nil {
		return b, err
	}
	return b, l.Machine.WriteMem(b.addr, b.Before)
}

// finish reads the buffers back, and adds what went wrong in a hit.
func (l *Session) finish(r *Result, err error) (*Result, error) {
	if err = errors.Join(err, l.Kprobes.ClearErr()); err != nil {
		return nil, err
	}
	return r, l.readBack(r)
}

func (l *Session) readBack(r *Result) error {
	for i := range r.Buffers {
		b := &r.Buffers[i]
		b.After = make([]byte, len(b.Before))
		if err := l.Machine.ReadMem(b.addr, b.After); err != nil {
			return err
		}
	}
	return nil
}

func (l *Session) release(r *Result) {
	for _, b := range r.Buffers {
		l.Machine.Free(b.addr)
	}
}
