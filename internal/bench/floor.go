package bench

import (
	"errors"

	"kprobelab/kprobes"
	"kprobelab/machine"
	"kprobelab/profile"
	"kprobelab/x86"
)

// The machine's own costs, measured as the paths are.
const (
	floorTrap       = "trap"
	floorStep       = "step"
	floorDebug      = "debug"
	floorCallout    = "callout"
	floorDetour     = "detour"
	floorTracer     = "tracer"
	floorTrampoline = "trampoline"
)

type floorSpec struct {
	name, describes string
	subject         func(*subject) error
	optimize        bool
}

var floorSpecs = []floorSpec{
	{name: floorTrap, describes: "an int3 to the hook, and on at another address", subject: bareTrap},
	{name: floorStep, describes: "an int3 that was answered beforehand", subject: bareStep},
	{name: floorDebug, describes: "the #DB of the trap flag to the hook, and on at another address", subject: bareDebug},
	{name: floorCallout, describes: "a call-out to Go and back", subject: bareCallout},
	{name: floorDetour, describes: "the detour buffer's own instructions", subject: bareDetour, optimize: true},
	{name: floorTracer, describes: "the function tracer's trampoline's own instructions", subject: bareTracer},
	{name: floorTrampoline, describes: "the return trampoline's own instructions", subject: bareTrampoline},
}

func (f *floorSpec) make() (*subject, error) {
	c, _ := profile.Named("6.1")
	s, err := guestKernel(c, f.optimize, 0).make()
	if err != nil {
		return nil, err
	}
	sub := &subject{stand: s, name: f.name, per: 1, run: s.calls, chunk: counting}
	if err := f.subject(sub); err != nil {
		s.Close()
		return nil, err
	}
	return sub, nil
}

// bareTraps receives traps and does only the engine's part of a hit. No hit resumes where its trap
// left ip: it goes to the slot, past the instruction, or back to the original code. Writing ip ends
// the engine's loop and starts it anew, which is a fifth of a trap.
type bareTraps struct {
	x86.Traps
	m    *machine.Machine
	step bool
	// past is the distance in bytes from the trap to the instruction where it resumes.
	past uint64
	// answer is an int3 that is answered at the one before, 0 for none.
	answer x86.Addr
}

func (b *bareTraps) Int3(regs *x86.PtRegs) bool {
	switch {
	case b.step:
		regs.Flags |= x86.FlagTF
	case b.answer != 0:
		b.m.AnswerInt3(b.answer, b.answer+1, x86.FlagIF)
	default:
		regs.IP += b.past
	}
	return true
}

func (b *bareTraps) Debug(regs *x86.PtRegs) bool {
	regs.Flags &^= x86.FlagTF
	regs.IP += b.past
	return true
}

const (
	opNop = 0x90
	opRet = 0xc3
)

// patch pokes bytes.
func (s *stand) patch(at x86.Addr, b ...byte) func() error {
	return func() error { return s.Machine.PokeText(at, b) }
}

func bareTrap(s *subject) error {
	at, err := s.code("bench_trap", []byte{opNop, opNop, opRet})
	if err != nil {
		return err
	}
	s.Machine.SetTraps(&bareTraps{Traps: s.Kprobes.Traps(), past: 1})
	s.plant, s.remove = s.patch(at, x86.Int3), s.patch(at, opNop)
	return s.aim(at, guestWords)
}

func bareDebug(s *subject) error {
	at, err := s.code("bench_debug", []byte{x86.Int3, opNop, opNop, opRet})
	if err != nil {
		return err
	}
	traps := &bareTraps{Traps: s.Kprobes.Traps()}
	s.Machine.SetTraps(traps)
	s.plant = func() error { traps.step, traps.past = true, 1; return nil }
	s.remove = func() error { traps.step, traps.past = false, 0; return nil }
	return s.aim(at, guestWords)
}

// bareStep has two int3s in a row, of which the second is answered at the
// first.
func bareStep(s *subject) error {
	at, err := s.code("bench_step", []byte{x86.Int3, opNop, opRet})
	if err != nil {
		return err
	}
	traps := &bareTraps{Traps: s.Kprobes.Traps(), m: s.Machine}
	s.Machine.SetTraps(traps)
	plant, remove := s.patch(at+1, x86.Int3), s.patch(at+1, opNop)
	s.plant = func() error { traps.answer = at + 1; return plant() }
	s.remove = func() error { traps.answer = 0; return remove() }
	return s.aim(at, guestWords)
}

// calloutCode is sub $168,%rsp; mov %rsp,%rdi; call; add $168,%rsp; ret.
var calloutCode = []byte{
	0x48, 0x81, 0xec, 0xa8, 0, 0, 0, 0x48, 0x89, 0xe7, 0xe8, 0, 0, 0, 0,
	0x48, 0x81, 0xc4, 0xa8, 0, 0, 0, opRet,
}

func bareCallout(s *subject) error {
	stub, err := s.Machine.Callout("bench_callout", func(x86.Addr, *x86.PtRegs) {})
	if err != nil {
		return err
	}
	at, err := s.code("bench_call", calloutCode)
	if err != nil {
		return err
	}
	if err := s.patch(at+11, rel32(at+15, stub)...)(); err != nil {
		return err
	}
	if err := s.short(stub); err != nil {
		return err
	}
	s.plant, s.remove = s.remove, s.plant
	return errors.Join(s.remove(), s.aim(at, guestWords))
}

// short plants a ret over the first instruction of a function.
func (s *subject) short(at x86.Addr) error {
	var first [1]byte
	if err := s.Machine.ReadMem(at, first[:]); err != nil {
		return err
	}
	s.plant, s.remove = s.patch(at, opRet), s.patch(at, first[0])
	return nil
}

func bareDetour(s *subject) error { return bareEntry(s, placeOptimizable, "optimized_callback") }

func bareTracer(s *subject) error { return bareEntry(s, placeTraced, "kprobe_ftrace_handler") }

// bareEntry is a probe that is reached without a trap. What its detour buffer or
// its trampoline calls returns at once.
func bareEntry(s *subject, place, callback string) error {
	at, p := s.symbol(place), &kprobes.Kprobe{}
	plant := func() error { return s.plantKprobe(p, at, 0) }
	if err := plant(); err != nil { // the callback is placed with the first probe
		return err
	}
	if err := errors.Join(s.unplant(p, nil), s.short(s.added(callback))); err != nil {
		return err
	}
	cut, mend := s.plant, s.remove
	s.plant = func() error { return errors.Join(plant(), cut()) }
	s.remove = func() error { return errors.Join(s.unplant(p, nil), mend()) }
	return s.aim(at, guestWords)
}

// frameAbove is the offset of the return address from the frame that the return
// trampoline builds.
const frameAbove = 168

// bareTrampoline is a function that returns to the trampoline. In the place of
// the trampoline's callback are a few instructions that write the address of the
// caller, which is always the same.
func bareTrampoline(s *subject) error {
	rp := &kprobes.Kretprobe{}
	if err := errors.Join(s.plantReturn(rp, s.symbol(placeOptimizable)), s.unplant(nil, rp)); err != nil {
		return err
	}
	tramp, callback := s.added("arch_rethook_trampoline"), s.added("arch_rethook_trampoline_callback")
	// movq $trampoline,(%rsp); ret
	to := append(append([]byte{0x48, 0xc7, 0x04, 0x24}, word32(uint32(tramp))...), opRet)
	at, err := s.code("bench_return", to)
	if err != nil {
		return err
	}
	if err := s.aim(at, guestWords); err != nil {
		return err
	}
	// mov $next,%rax; mov %rax,168(%rdi); ret
	back := append([]byte{0x48, 0xc7, 0xc0}, word32(uint32(s.next))...)
	back = append(append(back, 0x48, 0x89, 0x87), word32(frameAbove)...)
	back = append(back, opRet)
	s.plant = s.patch(at, to...)
	s.remove = s.patch(at, opRet)
	return errors.Join(s.patch(callback, back...)(), s.remove())
}

// floorOf is the least that a path takes: the costs of its parts.
func floorOf(p *Path, ns map[string]float64) float64 {
	trap, call, second := ns[floorTrap], ns[floorCallout], ns[floorStep]
	switch {
	case p.byDebug:
		second = ns[floorDebug]
	case p.kind == withPost, p.kind == nestedMiss:
		second = trap
	}
	return p.parts.Traps*trap + p.parts.Steps*second +
		p.parts.Detours*(ns[floorDetour]+call) +
		p.parts.Tracers*(ns[floorTracer]+call) +
		p.parts.Trampolines*(ns[floorTrampoline]+call)
}
