package process

import (
	"encoding/binary"

	"kprobelab/errno"
	"kprobelab/x86"
)

// altStack is the alternate signal stack, with the flags that sigaltstack was given.
type altStack struct {
	at, size uint64
	flags    uint32
}

// Flags of an alternate stack (SS_ONSTACK, SS_DISABLE, SS_AUTODISARM).
const (
	stackIn       = 1
	stackNone     = 2
	stackDisarm   = 1 << 31
	minAltStack   = 2048
	redZone       = 128
	frameAlign    = 16
	floatAlign    = 64
	floatSize     = 512 // fxsave's area
	floatDefined  = 416 // of it, what fxsave writes
	userCS        = 0x33
	userSS        = 0x2b
	contextSS     = 2 | 4 // UC_SIGCONTEXT_SS, UC_STRICT_RESTORE_SS
	handlerClears = x86.FlagDF | x86.FlagRF | x86.FlagTF
	// restored are the flags that sigreturn takes from the frame (FIX_EFLAGS).
	restored = x86.FlagAC | x86.FlagOF | x86.FlagDF | x86.FlagTF | x86.FlagSF | x86.FlagZF | x86.FlagAF | x86.FlagPF | x86.FlagCF | x86.FlagRF
)

func (s *altStack) contains(sp uint64) bool { return sp > s.at && sp-s.at <= s.size }

// state returns the stack's SS_ flags at a stack pointer (sas_ss_flags).
func (s *altStack) state(sp uint64) uint32 {
	switch {
	case s.size == 0:
		return stackNone
	case s.flags&stackDisarm == 0 && s.contains(sp):
		return stackIn
	}
	return 0
}

// Offsets in struct rt_sigframe of x86-64: the return address, struct ucontext with struct
// sigcontext in it, struct siginfo.
const (
	frameFlags   = 8
	frameStack   = 24
	frameContext = 48
	frameMask    = frameContext + 256
	frameInfo    = frameMask + 8
	frameSize    = frameInfo + 128
)

// Offsets in struct sigcontext, in words; the general registers are before them.
const (
	contextIP = 16 + iota
	contextFlags
	contextSegments
	contextError
	contextTrap
	contextMask
	contextAddress
	contextFloat
	contextWords = 32
)

// contextRegs are the general registers in the order of struct sigcontext.
func contextRegs(r *x86.PtRegs) [16]*uint64 {
	return [16]*uint64{
		&r.R8, &r.R9, &r.R10, &r.R11, &r.R12, &r.R13, &r.R14, &r.R15, &r.DI, &r.SI, &r.BP, &r.BX, &r.DX, &r.AX, &r.CX, &r.SP,
	}
}

// place returns the addresses of a frame and its float area (get_sigframe). 0 means that there is
// no room.
func (p *Process) place(a *action, sp uint64) (frame, float uint64) {
	nested, entering := p.stack.flags&stackDisarm == 0 && p.stack.contains(sp), false
	sp -= redZone
	if a.flags&actionOnStack != 0 && p.stack.state(sp) == 0 {
		sp, entering = p.stack.at+p.stack.size, true
	}
	float = (sp - floatSize) &^ (floatAlign - 1)
	frame = (float-frameSize)&^(frameAlign-1) - 8
	if (nested || entering) && !p.stack.contains(frame) {
		return 0, 0
	}
	return frame, float
}

// enter makes a handler be called: the frame is on the stack, with the float registers of the
// program, which the handler begins without (setup_rt_frame).
func (p *Process) enter(info *siginfo, a *action, regs *x86.PtRegs) {
	i := *info
	p.outside(p.own+floatSave, regs, func(regs *x86.PtRegs) {
		if !p.pushFrame(&i, a, regs) {
			if i.signal == SIGSEGV { // force_sigsegv
				p.actions[SIGSEGV].handler = handlerDefault
			}
			p.Force(SIGSEGV)
			return
		}
		p.mask |= a.mask
		if a.flags&actionNoDefer == 0 {
			p.mask |= setOf(i.signal)
		}
		p.setFloat(initialFloat(), regs)
	})
}

// initialFloat returns the float registers of a starting program, in the format of fxrstor.
func initialFloat() []byte {
	b := make([]byte, floatSize)
	binary.LittleEndian.PutUint16(b, 0x37f)
	binary.LittleEndian.PutUint32(b[24:], 0x1f80)
	return b
}

// setFloat loads the float registers before the program goes on with regs.
func (p *Process) setFloat(b []byte, regs *x86.PtRegs) {
	_ = p.m.WriteMem(p.float, b) // it is the machine's own
	p.outside(p.own+floatLoad, regs, func(*x86.PtRegs) {})
}

func (p *Process) pushFrame(i *siginfo, a *action, regs *x86.PtRegs) bool {
	at, float := p.place(a, regs.SP)
	if at == 0 || a.flags&actionRestorer == 0 {
		return false
	}
	area := make([]byte, floatDefined)
	_ = p.m.ReadMem(p.float, area) // it is the machine's own
	put := binary.LittleEndian
	frame := make([]byte, frameSize)
	put.PutUint64(frame, a.restorer)
	put.PutUint64(frame[frameFlags:], contextSS)
	put.PutUint64(frame[frameStack:], p.stack.at)
	put.PutUint32(frame[frameStack+8:], p.stack.flags)
	put.PutUint64(frame[frameStack+16:], p.stack.size)
	word := func(n int, v uint64) { put.PutUint64(frame[frameContext+8*n:], v) }
	for n, r := range contextRegs(regs) {
		word(n, *r)
	}
	word(contextIP, regs.IP)
	word(contextFlags, regs.Flags)
	word(contextSegments, userCS|userSS<<48)
	word(contextError, p.code)
	word(contextTrap, p.trap)
	mask := p.mask
	if p.waiting != nil {
		mask, p.waiting = *p.waiting, nil
	}
	word(contextMask, uint64(mask))
	word(contextAddress, p.address)
	word(contextFloat, float)
	put.PutUint64(frame[frameMask:], uint64(mask))
	if a.flags&actionInfo != 0 {
		put.PutUint32(frame[frameInfo:], uint32(i.signal))
		put.PutUint32(frame[frameInfo+8:], uint32(i.code))
		copy(frame[frameInfo+16:], i.body[:])
	} else {
		frame = frame[:frameInfo]
	}
	if p.Write(x86.Addr(float), area) != nil || p.Write(x86.Addr(at), frame) != nil {
		return false
	}
	if p.stack.flags&stackDisarm != 0 {
		p.stack = altStack{flags: stackNone}
	}
	regs.IP, regs.SP = a.handler, at
	regs.DI, regs.SI, regs.DX, regs.AX = uint64(i.signal), at+frameInfo, at+frameFlags, 0
	regs.Flags &^= handlerClears
	return true
}

// sigReturn goes on where the frame that the handler returned to says. A frame that cannot be
// read is SIGSEGV.
func (p *Process) sigReturn(regs *x86.PtRegs) {
	at := x86.Addr(regs.SP - 8)
	bad := func() {
		regs.AX = 0
		p.Force(SIGSEGV)
	}
	frame := make([]byte, frameInfo)
	if p.Read(at, frame) != nil {
		bad()
		return
	}
	word := func(n int) uint64 { return binary.LittleEndian.Uint64(frame[frameContext+8*n:]) }
	p.mask = sigset(binary.LittleEndian.Uint64(frame[frameMask:])) &^ unblockable
	for n, r := range contextRegs(regs) {
		*r = word(n)
	}
	regs.IP = word(contextIP)
	regs.Flags = regs.Flags&^restored | word(contextFlags)&restored
	area := initialFloat()
	if float := word(contextFloat); float != 0 {
		if p.Read(x86.Addr(float), area) != nil || float%frameAlign != 0 || binary.LittleEndian.Uint32(area[24:])>>16 != 0 {
			bad()
			return
		}
	}
	// What sigaltstack would refuse is left as it was.
	_ = p.setAltStack(frame[frameStack:frameContext], regs.SP)
	p.setFloat(area, regs)
}

func (p *Process) sigAltStack(r *x86.PtRegs) (uint64, error) {
	old := p.stack
	if r.DI != 0 {
		var b [24]byte
		if err := p.Read(x86.Addr(r.DI), b[:]); err != nil {
			return 0, err
		}
		if err := p.setAltStack(b[:], r.SP); err != nil {
			return 0, err
		}
	}
	if r.SI == 0 {
		return 0, nil
	}
	return 0, p.words(x86.Addr(r.SI), old.at, uint64(old.state(r.SP)|old.flags&stackDisarm), old.size)
}

// setAltStack sets the stack from a stack_t (do_sigaltstack).
func (p *Process) setAltStack(b []byte, sp uint64) error {
	s := altStack{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[16:]), binary.LittleEndian.Uint32(b[8:])}
	if p.stack.state(sp) == stackIn {
		return errno.EPERM
	}
	switch s.flags &^ stackDisarm {
	case stackNone:
		s.at, s.size = 0, 0
	case 0, stackIn:
		if s.size < minAltStack {
			return errno.ENOMEM
		}
	default:
		return errno.EINVAL
	}
	p.stack = s
	return nil
}
