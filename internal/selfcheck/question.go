package selfcheck

import (
	"errors"
	"fmt"

	"kprobelab/decoder"
	"kprobelab/errno"
	"kprobelab/internal/own"
	"kprobelab/kimage"
	"kprobelab/kprobes/probepoint"
	"kprobelab/kprobes/rule"
	"kprobelab/kprobes/slot"
	"kprobelab/x86"
)

// question is one that the rules and a function of the image both answer.
type question struct {
	// function is the image's function; about is the question that it decides.
	function, about string
	// rules returns the answer of the rules, and the rule that gave it; ok is false if
	// the question does not apply at this point.
	rules func(*asker, x86.Addr) (answer, rule string, ok bool)
	// own returns the image's answer.
	own func(*own.Kernel, []byte, x86.Addr) (string, error)
}

// questions are all, in the order in which register_kprobe comes to them.
var questions = []question{
	{"arch_adjust_kprobe_addr", "where a probe at a function's entry is placed", adjusted, ownAdjusted},
	{"kernel_text_address", "is it text?", isText, ownText},
	{"within_kprobe_blacklist", "is it on the blacklist?", blacklisted, yesNo((*own.Kernel).Blacklisted)},
	{"jump_label_text_reserved", "is it in a jump label?", inSite(kimage.SiteJumpLabel, rule.JumpLabel), yesNo(func(k *own.Kernel, a x86.Addr) (bool, error) { return k.JumpLabelReserved(a, a) })},
	{"static_call_text_reserved", "is it in a static call?", inSite(kimage.SiteStaticCall, rule.StaticCall), yesNo(func(k *own.Kernel, a x86.Addr) (bool, error) { return k.StaticCallReserved(a, a) })},
	{"find_bug", "is it the ud2 of a BUG or WARN?", isBug, yesNo((*own.Kernel).FindBug)},
	{"search_exception_tables", "is it in the exception table?", isException, ownException},
	{"insn_decode", "how long is the instruction?", decoded, ownDecoded},
	{"can_probe", "does decoding come to it, and may it be probed?", boundary, yesNo((*own.Kernel).CanProbe)},
	{"arch_prepare_kprobe", "is the instruction taken, with its copy?", prepared, ownPrepared},
	{"can_boost", "may a jump back follow the copy?", boosted, ownBoosted},
	{"can_optimize", "may a jump replace it, before it is copied?", optimizable, yesNo((*own.Kernel).CanOptimize)},
	{"arch_prepare_optimized_kprobe", "does a jump replace it, with the copy of the region?", optimized, ownOptimized},
}

func word(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

func yesNo(ask func(*own.Kernel, x86.Addr) (bool, error)) func(*own.Kernel, []byte, x86.Addr) (string, error) {
	return func(k *own.Kernel, _ []byte, a x86.Addr) (string, error) {
		yes, err := ask(k, a)
		return word(yes), err
	}
}

// adjusted applies to functions' entries only: everywhere else the address stays.
func adjusted(s *asker, a x86.Addr) (string, string, bool) {
	sym, ok := s.img.SymbolAt(a)
	if !ok || sym.Addr != a {
		return "", "", false
	}
	p, err := probepoint.Resolve(s.img, probepoint.Request{Addr: a}, s.profile)
	if err != nil {
		return "", "", false
	}
	return p.Addr.String(), "", true
}

func ownAdjusted(k *own.Kernel, _ []byte, a x86.Addr) (string, error) {
	at, _, err := k.AdjustAddr(a, 0)
	return at.String(), err
}

func isText(s *asker, a x86.Addr) (string, string, bool) {
	in := s.img.InText(a)
	return word(in), reason(!in, rule.NotText), true
}

func ownText(k *own.Kernel, _ []byte, a x86.Addr) (string, error) {
	yes, err := k.KernelText(a)
	return word(yes), err
}

func blacklisted(s *asker, a x86.Addr) (string, string, bool) {
	in := probepoint.Blacklisted(s.img, a, s.profile)
	return word(in), reason(in, rule.Blacklisted), true
}

func inSite(kind kimage.SiteKind, id rule.ID) func(*asker, x86.Addr) (string, string, bool) {
	return func(s *asker, a x86.Addr) (string, string, bool) {
		_, in := s.img.SiteAt(kind, a)
		return word(in), reason(in, id), true
	}
}

func isBug(s *asker, a x86.Addr) (string, string, bool) {
	in := s.img.BugEntry(a)
	return word(in), reason(in, rule.BugTable), true
}

func isException(s *asker, a x86.Addr) (string, string, bool) {
	_, in := s.img.ExceptionEntry(a)
	return word(in), reason(in, rule.ExceptionEntry), true
}

func ownException(k *own.Kernel, _ []byte, a x86.Addr) (string, error) {
	v, err := k.Call("search_exception_tables", uint64(a))
	return word(v != 0), err
}

// decoded returns the instruction's length, "bad" if the decoder reports an error.
func decoded(s *asker, _ x86.Addr) (string, string, bool) {
	i, err := decoder.DecodeKernel(s.code, &s.profile.Decoder)
	if err != nil {
		return "bad", "", s.profile.Decoder.Errors
	}
	return fmt.Sprint(i.Length), "", true
}

func ownDecoded(k *own.Kernel, code []byte, _ x86.Addr) (string, error) {
	i, err := k.Decode(code)
	if i.Bad {
		return "bad", err
	}
	return fmt.Sprint(i.Length), err
}

func boundary(s *asker, a x86.Addr) (string, string, bool) {
	if !s.profile.Check.Boundary {
		return "", "", false
	}
	err := s.boundary(a)
	var r *probepoint.Refusal
	if errors.As(err, &r) {
		return "no", r.Rule.String(), true
	}
	return word(err == nil), "", true
}

func boosted(s *asker, a x86.Addr) (string, string, bool) {
	i, err := decoder.DecodeKernel(s.code, &s.profile.Decoder)
	if err != nil || s.boundary(a) != nil {
		return "", "", false
	}
	yes := slot.Boostable(s.img, &i, a, s.profile)
	return word(yes), reason(!yes, rule.NotBoostable), true
}

func ownBoosted(k *own.Kernel, code []byte, a x86.Addr) (string, error) {
	yes, err := k.CanBoost(code, a)
	return word(yes), err
}

// optimizable is the verdict up to the copy, which can_optimize does not make.
func optimizable(s *asker, a x86.Addr) (string, string, bool) {
	if s.boundary(a) != nil {
		return "", "", false
	}
	d := s.opt.Decide(a)
	switch {
	case d.Reason == rule.NoOptprobes, d.Reason == rule.FtraceBased:
		return "", "", false
	case d.OK, d.Reason >= rule.Distance:
		return "yes", "", true
	}
	return "no", d.Reason.String(), true
}

// prepared is the errno of the instruction's checks: it is where decoding comes to,
// and can be copied out of line.
func prepared(s *asker, a x86.Addr) (string, string, bool) {
	err := s.boundary(a)
	if !s.profile.Check.Boundary {
		return "", "", false
	}
	if err == nil {
		p := probepoint.Point{Addr: a}
		_, err = probepoint.BuildSlot(s.img, &p, s.buffer, false, s.profile)
	}
	var r *probepoint.Refusal
	if errors.As(err, &r) {
		return errno.Of(err).Name(), r.Rule.String(), true
	}
	return "0", "", err == nil
}

func ownPrepared(k *own.Kernel, _ []byte, a x86.Addr) (string, error) {
	v, err := k.Prepare(a)
	if v == 0 {
		return "0", err
	}
	return errno.Errno(-v).Name(), err
}

// optimized returns the verdict, without the reservations that boot makes.
func optimized(s *asker, a x86.Addr) (string, string, bool) {
	if s.boundary(a) != nil {
		return "", "", false
	}
	d := s.opt.Decide(a)
	switch d.Reason {
	case rule.NoOptprobes, rule.FtraceBased, rule.ReservedFtrace, rule.ReservedSMPLock, rule.Distance:
		return "", "", false
	}
	return word(d.OK), reason(!d.OK, d.Reason), true
}

func ownOptimized(k *own.Kernel, _ []byte, a x86.Addr) (string, error) {
	v, err := k.PrepareOptimized(a)
	return word(v == 0), err
}

// reason returns the rule's name if it holds.
func reason(holds bool, id rule.ID) string {
	if holds {
		return id.String()
	}
	return ""
}

func newResult(img *kimage.Image) *Result {
	questions := questionsOf(img)
	r := &Result{Questions: make([]Answers, len(questions)), Booted: img.Core() != nil}
	for i := range questions {
		q := &questions[i]
		r.Questions[i] = Answers{Function: q.function, About: q.about, Kinds: map[Kind]int{}}
	}
	return r
}
