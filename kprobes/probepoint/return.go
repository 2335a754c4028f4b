package probepoint

import (
	"kprobelab/kprobes/rule"
	"kprobelab/profile"
)

// ResolveReturn is Resolve for a return probe, with the checks of its place that a kprobe
// does not have: it is at a function's entry, and not where return probes are
// forbidden (docs/spec 5.2).
func ResolveReturn(v Names, r Request, c *profile.Config) (Point, error) {
	p, err := Resolve(v, r, c)
	switch {
	case !c.Built.Kprobes:
		return p, err
	case err != nil && c.Kret.EntryOnly && !c.Kret.EntryErrno:
		return p, Refuse(rule.NotEntry, r.Addr, r.Symbol)
	case err != nil:
		return p, err
	case c.Kret.EntryOnly && c.Kret.EntryErrno && p.Symbol.Name == "":
		// An address that no symbol has (kprobe_on_func_entry).
		return p, Refuse(rule.NoSymbol, p.Addr, p.String())
	case c.Kret.EntryOnly && !p.Entry:
		return p, Refuse(rule.NotEntry, p.Addr, p.String())
	case c.Kret.BlacklistSwitchTo && isSwitchTo(v, &p):
		return p, Refuse(rule.KretBlacklist, p.Addr, p.String())
	}
	return p, nil
}

// isSwitchTo is the test against kretprobe_blacklist, whose only entry is the
// function that changes stacks.
func isSwitchTo(v Names, p *Point) bool {
	s := v.Lookup("__switch_to")
	return len(s) > 0 && s[0].Addr == p.Addr
}
