package registers

import (
	"kprobelab/errno"
	"kprobelab/x86"
)

// Rules of PTRACE_POKEUSER.
const (
	NotInUser  Rule = "USER_OFFSET"
	NoDebugReg Rule = "DR4_DR5"
)

// Where struct user has u_debugreg, and where it ends (asm/user_64.h).
const (
	DebugRegs = 848
	UserSize  = DebugRegs + 8*8 + 2*8
)

// What DR6 reads as when nothing has happened (DR6_RESERVED), and bits of DR7 that are not
// looked at (DR_CONTROL_RESERVED).
const (
	dr6Reserved = 0xffff0ff0
	dr7Reserved = 0xffffffff0000fc00
)

// Traced is the state of a task's debug registers, as a debugger has set them.
type Traced struct {
	slots    [Count]*Event
	dr6, dr7 uint64
}

// lengths are the lengths of DR7's LEN, by its two bits (SDM Vol. 3B, "Debug Control Register").
var lengths = [4]uint64{1, 2, 8, 4}

// types are the bp_type of DR7's R/W, by its two bits; input and output has none.
var types = [4]uint32{Execute, Write, Empty, Read | Write}

// control returns the fields of DR7 for a register.
func control(dr7 uint64, n int) (enabled bool, rw, length uint64) {
	field := dr7 >> (16 + 4*n)
	return dr7>>(2*n)&3 != 0, field & 3, field >> 2 & 3
}

// attr sets the fields of DR7 for a register. An execute breakpoint has the length bits of one
// byte.
func attr(a Attr, rw, length uint64, enabled bool) (Attr, error) {
	a.Type, a.Len, a.Disabled = types[rw], lengths[length], !enabled
	switch {
	case a.Type == Empty:
		return a, &Refusal{NoSuchAccess, errno.EINVAL, "DR7 watches input and output, which the kernel has not"}
	case a.Type == Execute && a.Len != 1:
		return a, &Refusal{ExecuteLong, errno.EINVAL, "DR7's length of an execute breakpoint is that of one byte"}
	case a.Type == Execute:
		a.Len = ExecuteLen
	}
	return a, nil
}

// Peek is PTRACE_PEEKUSER, at an offset of struct user after the registers. What is no debug
// register reads as 0.
func (s *Set) Peek(task int, offset uint64) (uint64, error) {
	if offset%8 != 0 || offset >= UserSize {
		return 0, notInUser
	}
	n := debugReg(offset)
	if n < 0 {
		return 0, nil
	}
	t := s.of(task)
	switch {
	case n < Count && t.slots[n] != nil:
		return uint64(t.slots[n].Addr), nil
	case n == 6:
		return t.dr6 ^ dr6Reserved, nil
	case n == 7:
		return t.dr7, nil
	}
	return 0, nil
}

// Poke is PTRACE_POKEUSER, at an offset of struct user after the registers.
func (s *Set) Poke(task int, offset, value uint64) error {
	n := debugReg(offset)
	if n < 0 {
		return notInUser
	}
	t := s.of(task)
	switch {
	case n < Count:
		return s.pokeAddr(task, n, x86.Addr(value))
	case n == 6:
		t.dr6 = value ^ dr6Reserved
	case n == 7:
		if err := s.pokeControl(task, value&^dr7Reserved); err != nil {
			return err
		}
		t.dr7 = value
	default:
		return &Refusal{NoDebugReg, errno.EIO, "there is no such debug register: DR4 and DR5 are no registers"}
	}
	return nil
}

var notInUser = &Refusal{NotInUser, errno.EIO, "struct user has no debug register at this offset"}

// debugReg returns the number of the register at an offset, -1 if there is none.
func debugReg(offset uint64) int {
	n := (offset - DebugRegs) / 8
	if offset%8 != 0 || offset < DebugRegs || n > 7 {
		return -1
	}
	return int(n)
}

func (s *Set) of(task int) *Traced {
	t := s.traced[task]
	if t == nil {
		t = &Traced{}
		s.traced[task] = t
	}
	return t
}

// pokeAddr is for DR0 to DR3. The first write reserves a register, though it is not enabled: as a
// register that watches the writes to one byte.
func (s *Set) pokeAddr(task, n int, at x86.Addr) error {
	t := s.of(task)
	if e := t.slots[n]; e != nil {
		a := e.Attr
		a.Addr = at
		return s.modify(e, a)
	}
	e, err := s.Register(Attr{Type: Write, Addr: at, Len: 1, ExcludeKernel: true, Disabled: true}, task, Any)
	t.slots[n] = e
	return err
}

// pokeControl is for DR7: register by register. If one is refused, DR7 is written back as it was,
// and a register that is not enabled then watches the execution of its address.
func (s *Set) pokeControl(task int, dr7 uint64) error {
	old := s.control(task)
	err := s.controlEach(task, dr7)
	if err != nil {
		_ = s.controlEach(task, old) // it held a moment ago
	}
	return err
}

func (s *Set) controlEach(task int, dr7 uint64) error {
	t := s.of(task)
	for n := range Count {
		enabled, rw, length := control(dr7, n)
		e := t.slots[n]
		if e == nil && !enabled {
			continue
		}
		from := Attr{ExcludeKernel: true}
		if e != nil {
			from = e.Attr
		}
		a, err := attr(from, rw, length, enabled)
		switch {
		case err != nil:
			return err
		case e != nil:
			err = s.modify(e, a)
		default:
			t.slots[n], err = s.Register(a, task, Any)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// control returns the DR7 of the enabled registers.
func (s *Set) control(task int) (dr7 uint64) {
	for n, e := range s.of(task).slots {
		if e == nil || e.Disabled {
			continue
		}
		for rw, kind := range types {
			if kind == e.Type {
				dr7 |= uint64(rw) << (16 + 4*n)
			}
		}
		for length, bytes := range lengths {
			if bytes == e.Len && e.Type != Execute {
				dr7 |= uint64(length) << (18 + 4*n)
			}
		}
		dr7 |= 2 << (2 * n) // by the bit for all tasks
	}
	return dr7
}

// modify changes a breakpoint of a debugger's, which keeps its register.
func (s *Set) modify(e *Event, a Attr) error {
	changed := &asked{Event: &Event{a, e.Task, e.CPU}, s: s}
	if err := changed.refused(parse); err != nil {
		return err
	}
	e.Attr = a
	return nil
}
