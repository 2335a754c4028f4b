package probepoint

import (
	"strings"

	"kprobelab/errno"
	"kprobelab/kimage"
	"kprobelab/kprobes/rule"
	"kprobelab/profile"
	"kprobelab/x86"
)

// Check makes the kernel's checks of an address in the kernel's order (docs/spec
// 1.3, checks 4 to 13, 17 and 18) and sets p.Ftrace. The error is a *Refusal with
// the first rule that refuses: EILSEQ inside an instruction, ENOENT in a
// module's freed init section, else EINVAL.
func Check(v kimage.View, p *Point, c *profile.Config) error { return check(v, p, nil, c) }

// CheckAddress is Check without the question whether an instruction starts at the
// address.
func CheckAddress(v kimage.View, p *Point, c *profile.Config) error {
	if err := checkFtrace(v, p, c); err != nil {
		return err
	}
	for _, k := range addressChecks {
		if k.applies(c) && k.refuses(v, p, c) {
			return RefuseAs(k.errnoIn(c), k.rule, p.Addr, p.String())
		}
	}
	return nil
}

// check is Check; s, when not nil, is the walk's step at the point.
func check(v kimage.View, p *Point, s *kimage.Step, c *profile.Config) error {
	if err := CheckAddress(v, p, c); err != nil {
		return err
	}
	switch {
	case p.Ftrace: // the function tracer needs no instruction and no slot
		return nil
	case !c.Check.Boundary:
		return nil
	case s != nil:
		return checkStep(v, s, p, c)
	}
	return checkBoundary(v, p, c)
}

// checkFtrace is the ftrace location rule (docs/spec 1.4).
func checkFtrace(v kimage.View, p *Point, c *profile.Config) error {
	p.Ftrace = false
	if !c.Check.FtraceSites || isFreedInit(v, p) {
		return nil
	}
	site, ok := v.SiteAt(kimage.SiteFtrace, p.Addr)
	switch {
	case !ok:
		return nil
	case site.Addr != p.Addr && c.Check.FtraceSiteMiddle && c.KprobesOnFtrace:
		return Refuse(rule.InsideFtrace, p.Addr, p.String())
	case site.Addr != p.Addr && !c.Check.FtraceSiteMiddle:
		return nil
	case !c.KprobesOnFtrace:
		return Refuse(rule.FtraceSite, p.Addr, p.String())
	}
	p.Ftrace = true
	return nil
}

// addressCheck is one row of check_kprobe_address_safe.
type addressCheck struct {
	rule    rule.ID
	applies func(*profile.Config) bool
	refuses func(kimage.View, *Point, *profile.Config) bool
}

// errnoIn is the check's errno in a release.
func (k *addressCheck) errnoIn(c *profile.Config) errno.Errno {
	if k.rule == rule.ModuleGoing && !c.Check.ModuleErrno {
		return errno.EINVAL
	}
	return k.rule.Errno()
}

func always(*profile.Config) bool { return true }

// addressChecks are checks 5 to 13 and 17 of docs/spec 1.3. The kernel's order
// decides which rule is named where several refuse.
var addressChecks = []addressCheck{
	{rule.NotText, always, notText},
	{rule.ModuleGoing, func(c *profile.Config) bool { return c.Check.ModuleGoingFirst }, inGoingModule},
	{rule.GateArea, func(c *profile.Config) bool { return c.Check.GateArea }, inGateArea},
	{rule.Blacklisted, always, blacklisted},
	{rule.JumpLabel, func(c *profile.Config) bool { return c.Check.JumpLabels }, inside(kimage.SiteJumpLabel)},
	{rule.StaticCall, func(c *profile.Config) bool { return c.Check.StaticCalls }, inside(kimage.SiteStaticCall)},
	{rule.BugTable, func(c *profile.Config) bool { return c.Check.BugTable }, isBug},
	{rule.CFISymbol, func(c *profile.Config) bool { return c.Check.CFISymbols }, inPreamble},
	{rule.ModuleGoing, func(c *profile.Config) bool { return !c.Check.ModuleGoingFirst }, inGoingModule},
	{rule.ModuleInit, always, inModuleInit},
	{rule.SMPLock, func(c *profile.Config) bool { return c.Check.SMPLocks }, inLockPrefix},
}

// notText accepts a module's init section, which check 13 refuses with its own errno.
func notText(v kimage.View, p *Point, _ *profile.Config) bool {
	if v.InText(p.Addr) {
		return false
	}
	module, init := v.InInit(p.Addr)
	return !init || module == ""
}

// gateArea is the vsyscall page, at a fixed address on x86-64.
var gateArea = x86.Range{Start: 0xffffffffff600000, End: 0xffffffffff601000}

func inGateArea(_ kimage.View, p *Point, _ *profile.Config) bool { return gateArea.Contains(p.Addr) }

// Blacklisted is within_kprobe_blacklist of an address wherever it is.
func Blacklisted(v kimage.View, at x86.Addr, c *profile.Config) bool {
	p := pointAt(v, at)
	return blacklisted(v, &p, c)
}

// pointAt is the point at an address, which is not resolved: it is not moved.
func pointAt(v kimage.View, at x86.Addr) Point {
	p := Point{Addr: at}
	if sym, ok := v.SymbolAt(at); ok {
		p.Symbol, p.Offset = sym, uint64(at.Sub(sym.Addr))
	}
	return p
}

// blacklisted is within_kprobe_blacklist: the address itself, or else, where
// the covering symbol is a compiler-made clone ("foo.isra.0"), the address of
// the symbol without the suffix.
func blacklisted(v kimage.View, p *Point, c *profile.Config) bool {
	if _, hit := v.Blacklisted(p.Addr); hit {
		return true
	}
	name, _, clone := strings.Cut(p.Symbol.Name, ".")
	if !clone || !c.Check.BlacklistClones {
		return false
	}
	plain := v.Lookup(name)
	if len(plain) == 0 {
		return false
	}
	_, hit := v.Blacklisted(plain[0].Addr)
	return hit
}

func inside(kind kimage.SiteKind) func(kimage.View, *Point, *profile.Config) bool {
	return func(v kimage.View, p *Point, _ *profile.Config) bool {
		_, hit := v.SiteAt(kind, p.Addr)
		return hit
	}
}

func isBug(v kimage.View, p *Point, _ *profile.Config) bool { return v.BugEntry(p.Addr) }

// inPreamble is is_cfi_preamble_symbol: the address is in the bytes that the compiler puts before a
// function.
func inPreamble(_ kimage.View, p *Point, c *profile.Config) bool {
	const cfi, pfx = "__cfi_", "__pfx_"
	name := p.Symbol.Name
	if c.Check.CFISwapped {
		return name != "" && (strings.HasPrefix(cfi, name) || strings.HasPrefix(pfx, name))
	}
	return strings.HasPrefix(name, cfi) || strings.HasPrefix(name, pfx)
}

// inLockPrefix is check 17: a lock prefix that the kernel may still patch when a second CPU comes
// up. A probe that the function tracer calls is exempt.
func inLockPrefix(v kimage.View, p *Point, _ *profile.Config) bool {
	_, hit := v.SiteAt(kimage.SiteSMPLock, p.Addr)
	return hit && !p.Ftrace
}

// inModuleInit is a module's init text, which is freed once the module is live.
func inModuleInit(v kimage.View, p *Point, _ *profile.Config) bool {
	module, ok := v.InInit(p.Addr)
	return ok && module != "" && stateOf(v, module) != ModuleComing
}

// inGoingModule is a module of which no reference can be taken.
func inGoingModule(v kimage.View, p *Point, _ *profile.Config) bool {
	return p.Symbol.Module != "" && stateOf(v, p.Symbol.Module) == ModuleGoing
}

// isFreedInit is the kernel's own init text, whose ftrace sites the tracer
// forgets when boot frees it.
func isFreedInit(v kimage.View, p *Point) bool {
	module, ok := v.InInit(p.Addr)
	return ok && module == "" && !v.InText(p.Addr)
}
