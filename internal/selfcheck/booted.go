package selfcheck

import (
	"encoding/hex"
	"errors"
	"fmt"

	"kprobelab/errno"
	"kprobelab/internal/own"
	"kprobelab/kimage"
	"kprobelab/kprobes/probepoint"
	"kprobelab/kprobes/slot"
	"kprobelab/x86"
)

// A kernel that has booted is asked with one call for everything: register_kprobe of a
// disabled probe.

// bootedQuestions are about what it makes of the probe.
var bootedQuestions = []question{
	{"register_kprobe", "is a probe registered, or refused with which errno?", registered, made(ownRegistered)},
	{"kprobe.addr", "where is it placed?", madeAt, made(accepted(func(r *own.Registration) string { return r.Addr.String() }))},
	{"kprobe.flags", "does the function tracer call it?", madeFtrace, made(accepted(func(r *own.Registration) string { return word(r.Ftrace) }))},
	{"kprobe.ainsn.boostable", "does a jump back follow the copy?", madeBoosted, made(accepted(func(r *own.Registration) string { return word(r.Boostable) }))},
	{"kprobe.ainsn.emulate_op", "is the instruction emulated?", madeEmulated, made(accepted(func(r *own.Registration) string { return word(r.Emulated) }))},
	{"kprobe.ainsn.insn", "what is written into the slot?", madeCopy, made(accepted(func(r *own.Registration) string { return hex.EncodeToString(r.Copy) }))},
	{"get_kprobe", "may a jump replace the breakpoint?", madeOptimized, made(accepted(func(r *own.Registration) string { return word(r.Optimized) }))},
	{"register_kretprobe", "is a return probe registered, for how many calls, or refused with which errno?", registeredReturn, ownReturn},
}

// questionsOf returns the questions that the image can answer.
func questionsOf(img *kimage.Image) []question {
	if img.Core() != nil {
		return bootedQuestions
	}
	return questions
}

// refused is the answer to a question about registered probes, if the probe was refused.
const refused = "refused"

// made makes a question about the probe that the kernel makes at an address.
func made(of func(*own.Registration) string) func(*own.Kernel, []byte, x86.Addr) (string, error) {
	return func(k *own.Kernel, _ []byte, a x86.Addr) (string, error) {
		r, err := k.Register(a)
		if err != nil {
			return "", err
		}
		return of(&r), nil
	}
}

func accepted(of func(*own.Registration) string) func(*own.Registration) string {
	return func(r *own.Registration) string {
		if r.Errno != 0 {
			return refused
		}
		return of(r)
	}
}

func ownRegistered(r *own.Registration) string {
	return result(r.Errno)
}

// result names what a function returned: 0, or the errno.
func result(no int) string {
	if no == 0 {
		return "0"
	}
	return errno.Errno(-no).Name()
}

// register computes the rules' answer to a registration, once for each point.
func (s *asker) register(a x86.Addr) error {
	if !s.placed {
		s.placed = true
		s.point, s.unplaced = probepoint.Resolve(s.img, probepoint.Request{Addr: a}, s.profile)
		if s.unplaced == nil {
			s.placement, s.unplaced = probepoint.Place(s.img, &s.point, s.buffer, false, s.profile)
		}
	}
	return s.unplaced
}

func registered(s *asker, a x86.Addr) (string, string, bool) {
	return answer(s.register(a), "0")
}

// answer is the errno and the rule of a refusal, else what is taken.
func answer(err error, taken string) (string, string, bool) {
	var r *probepoint.Refusal
	if errors.As(err, &r) {
		return errno.Of(err).Name(), r.Rule.String(), true
	}
	return taken, "", err == nil
}

// registeredReturn is the errno, or the size of the pool.
func registeredReturn(s *asker, a x86.Addr) (string, string, bool) {
	_, err := probepoint.ResolveReturn(s.img, probepoint.Request{Addr: a}, s.profile)
	if err == nil {
		err = s.register(a)
	}
	return answer(err, calls(s.profile.MaxActive(s.k.NumCPU())))
}

func calls(n int) string { return fmt.Sprintf("for %d calls", n) }

func ownReturn(k *own.Kernel, _ []byte, a x86.Addr) (string, error) {
	r, err := k.RegisterReturn(a)
	if r.Errno != 0 {
		return result(r.Errno), err
	}
	return calls(r.MaxActive), err
}

// ofProbe makes a question about probes that the rules take.
func ofProbe(of func(s *asker) string) func(*asker, x86.Addr) (string, string, bool) {
	return func(s *asker, a x86.Addr) (string, string, bool) {
		if s.register(a) != nil {
			return "", "", false
		}
		return of(s), "", true
	}
}

var (
	madeAt       = ofProbe(func(s *asker) string { return s.point.Addr.String() })
	madeFtrace   = ofProbe(func(s *asker) string { return word(s.point.Ftrace) })
	madeBoosted  = ofProbe(func(s *asker) string { return word(s.placement.How == probepoint.Boosted) })
	madeEmulated = ofProbe(func(s *asker) string { return word(s.placement.Slot.Emulation.Kind != slot.EmulateNone) })
)

// madeCopy returns the slot's content at the address that the kernel chose.
func madeCopy(s *asker, a x86.Addr) (string, string, bool) {
	if s.register(a) != nil || s.point.Ftrace {
		return "", "", false
	}
	r, err := s.k.Register(a)
	if err != nil || r.Errno != 0 || r.Copy == nil {
		return "", "", false
	}
	made, err := probepoint.BuildSlot(s.img, &s.point, r.Slot, false, s.profile)
	if err != nil {
		return "", "", false
	}
	return hex.EncodeToString(made.Bytes[:made.Len]), "", true
}

func madeOptimized(s *asker, a x86.Addr) (string, string, bool) {
	if s.register(a) != nil {
		return "", "", false
	}
	d := s.opt.Decide(s.point.Addr)
	return word(d.OK), reason(!d.OK, d.Reason), true
}
