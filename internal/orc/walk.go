package orc

import (
	"unsafe"

	"kprobelab/internal/bounded"
	"kprobelab/kimage"
	"kprobelab/kimage/btf"
	"kprobelab/x86"
)

// Unwinder knows a kernel's tables.
type Unwinder struct {
	read   func(x86.Addr, []byte) error
	layout layout
	kernel table
	// text is the kernel's code; init is the code that boot has freed. Idle tasks' stacks show
	// callers in it all the same.
	text, init x86.Range
	modules    x86.Addr
}

// New finds the tables of a kernel by its symbols, and their layout by its types or, without types,
// by the entries. It returns nil if the kernel has no tables, or the layout is unknown. read reads
// all of b, or fails.
func New(lookup func(name string) []kimage.Symbol, types *btf.Types, read func(at x86.Addr, b []byte) error) *Unwinder {
	at := func(name string) x86.Addr {
		if s := lookup(name); len(s) > 0 {
			return s[0].Addr
		}
		return 0
	}
	l, ok := layoutOf(types)
	if !ok {
		if l, ok = shownLayout(at, read); !ok {
			return nil
		}
	}
	if null, ok := nullEntry(at, read, l.size); !ok || !l.decodesNull(null) {
		return nil
	}
	return find(l, at, read)
}

// find finds the tables of entries that are laid out so.
func find(l layout, at func(name string) x86.Addr, read func(at x86.Addr, b []byte) error) *Unwinder {
	u := &Unwinder{read: read, layout: l, modules: at("modules"), text: x86.Range{Start: at("_stext"), End: at("_etext")}, init: x86.Range{Start: at("_sinittext"), End: at("_einittext")}}
	ips, end := at("__start_orc_unwind_ip"), at("__stop_orc_unwind_ip")
	u.kernel = table{ips, at("__start_orc_unwind"), int(end-ips) / 4}
	if ips == 0 || end <= ips || u.kernel.entries == 0 || u.kernel.n > bounded.OrcEntries || u.text.Start == 0 {
		return nil
	}
	return u
}

// Kernel reports whether an address is in the kernel's code, boot's code included
// (__kernel_text_address, but for modules).
func (u *Unwinder) Kernel(addr uint64) bool {
	a := x86.Addr(addr)
	return u.text.Contains(a) || u.init.Contains(a)
}

// Frame is the position of a walk.
type Frame struct {
	IP, SP, BP uint64
	// Signal: IP is an interrupted instruction, not the address after a call.
	Signal bool
	// Regs are the registers there, if they are known.
	Regs *x86.PtRegs
}

// At is the frame of registers.
func At(regs *x86.PtRegs) Frame {
	return Frame{IP: regs.IP, SP: regs.SP, BP: regs.BP, Signal: true, Regs: regs}
}

// The offsets in the frame that __switch_to_asm leaves on the stack of a task that does not run
// (struct inactive_task_frame): r15, r14, r13, r12, bx, bp, and the return address.
const (
	inactiveBP   = 5 * 8
	inactiveRet  = 6 * 8
	inactiveSize = 7 * 8
)

// Asleep is the frame of a task that does not run; sp is its thread.sp.
func (u *Unwinder) Asleep(sp uint64) (Frame, bool) {
	bp, ok1 := u.word(sp + inactiveBP)
	ip, ok2 := u.word(sp + inactiveRet)
	return Frame{IP: ip, SP: sp + inactiveSize, BP: bp}, ok1 && ok2
}

// Parts of pt_regs that are read from the stack.
const (
	offIP     = uint64(unsafe.Offsetof(x86.PtRegs{}.IP))
	userMode  = 3
	wordBytes = 8
)

// Walk calls fn with each return address above a frame, and its place on the stack, until fn
// returns false or the stack ends. original returns the true address for a replaced one; nil: no
// address is replaced. Walk reports whether it reached an end that the tables know.
func (u *Unwinder) Walk(f Frame, original func(addr, at uint64) uint64, fn func(addr, at uint64) bool) bool {
	if original == nil {
		original = func(addr, _ uint64) uint64 { return addr }
	}
	s := state{Unwinder: u, Frame: f, original: original, full: f.Regs != nil}
	for range bounded.StackFrames {
		at, more := s.next()
		if !more {
			return s.atEnd
		}
		if !fn(s.IP, at) {
			return true
		}
	}
	return false
}

// state is a walk (struct unwind_state).
type state struct {
	*Unwinder
	Frame
	original func(addr, at uint64) uint64
	// full: all registers of Regs are known, not only those the processor pushes. previous is the
	// last Regs for which full was true.
	full     bool
	previous *x86.PtRegs
	atEnd    bool
}

// register is a register of the frame (get_reg).
func (s *state) register(of func(*x86.PtRegs) uint64) (uint64, bool) {
	switch {
	case s.Regs == nil:
	case s.full:
		return of(s.Regs), true
	case s.previous != nil:
		return of(s.previous), true
	}
	return 0, false
}

// next goes to the caller, and returns the place of the caller's address (unwind_next_frame).
func (s *state) next() (at uint64, ok bool) {
	if s.Regs != nil && s.Regs.CS&userMode == userMode {
		s.atEnd = true
		return 0, false
	}
	ip := s.IP
	if !s.Signal {
		ip-- // the call's own address
	}
	e, found := s.find(ip)
	if !found {
		e = guess
	}
	if e.kind == kindUndefined || e.kind == kindEnd {
		s.atEnd = e.kind == kindEnd
		return 0, false
	}
	before := s.SP
	sp, ok := s.caller(e)
	if !ok {
		return 0, false
	}
	switch e.kind {
	case kindCall:
		at = sp - wordBytes
		if s.IP, ok = s.word(at); !ok {
			return 0, false
		}
		s.IP, s.SP = s.original(s.IP, at), sp
		s.Regs, s.previous = nil, nil
	default:
		if at, ok = s.interrupted(e.kind, sp); !ok {
			return 0, false
		}
	}
	s.Signal = e.signal
	if !s.findBP(e, sp) {
		return 0, false
	}
	// Nothing but another stack lies further down.
	if s.SP <= before && (s.SP^before)&^(x86.ThreadSize-1) == 0 {
		return 0, false
	}
	return at, true
}

// caller is the stack pointer before the frame.
func (s *state) caller(e entry) (sp uint64, ok bool) {
	ok = true
	offset := uint64(e.spOffset)
	switch e.spReg {
	case regSP:
		return s.SP + offset, true
	case regBP:
		return s.BP + offset, true
	case regSPIndirect:
		sp, ok = s.word(s.SP)
		return sp + offset, ok
	case regBPIndirect:
		return s.word(s.BP + offset)
	case regR10:
		return s.register(func(r *x86.PtRegs) uint64 { return r.R10 })
	case regR13:
		return s.register(func(r *x86.PtRegs) uint64 { return r.R13 })
	case regDI:
		return s.register(func(r *x86.PtRegs) uint64 { return r.DI })
	case regDX:
		return s.register(func(r *x86.PtRegs) uint64 { return r.DX })
	}
	return 0, false
}

// interrupted goes to the frame that an exception or an interrupt has interrupted. Its registers
// are at sp: all, or only the five that the processor pushed.
func (s *state) interrupted(k kind, sp uint64) (at uint64, ok bool) {
	regs, from := new(x86.PtRegs), uint64(0)
	if k == kindPartial {
		from = offIP
	}
	b := (*[x86.PtRegsSize]byte)(unsafe.Pointer(regs))[from:]
	if s.read(x86.Addr(sp), b) != nil {
		return 0, false
	}
	if k == kindPartial {
		if s.full {
			s.previous = s.Regs
		}
	} else {
		s.previous = nil
	}
	s.Regs, s.full = regs, k == kindRegs
	s.SP = regs.SP
	s.IP = s.original(regs.IP, s.SP-wordBytes)
	return sp + offIP - from, true
}

func (s *state) findBP(e entry, sp uint64) (ok bool) {
	switch e.bpReg {
	case regUndefined:
		if v, ok := s.register(func(r *x86.PtRegs) uint64 { return r.BP }); ok {
			s.BP = v
		}
		return true
	case regPrevSP:
		s.BP, ok = s.word(sp + uint64(e.bpOffset))
	case regBP:
		s.BP, ok = s.word(s.BP + uint64(e.bpOffset))
	}
	return ok
}
