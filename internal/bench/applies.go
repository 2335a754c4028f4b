package bench

import (
	"kprobelab/kimage"
	"kprobelab/kprobes/probepoint"
	"kprobelab/kprobes/rule"
	"kprobelab/optimizer"
	"kprobelab/profile"
	"kprobelab/x86"
)

// barred returns a sentence with the reason why a hit at a place cannot take the path under these
// rules, "" if no rule bars it. A probe must be possible at the place.
func (p *Path) barred(v kimage.View, at x86.Addr, c *profile.Config) string {
	if p.kind == disabled || p.kind == nextDoor {
		return ""
	}
	point, err := probepoint.Resolve(v, probepoint.Request{Addr: at}, c)
	if err != nil {
		return err.Error()
	}
	place, err := probepoint.Place(v, &point, x86.Addr(c.ModuleBase), p.kind == withPost, c)
	switch {
	case err != nil:
		return err.Error()
	case p.returns() && c.Kret.EntryOnly && !point.Entry:
		return rule.NotEntry.Why()
	case p.returns() && c.Kret.MissedInNMI && c.Step.Int3IsNMI && !p.optimize && place.How != probepoint.Ftrace:
		return "this kernel misses every return probe whose entry is hit through an int3"
	case p.kind == missedReturn:
		return "the one instance would have to be taken by a call that is still inside the function"
	case p.optimize && place.How != probepoint.Ftrace:
		return unoptimized(v, point.Addr, c)
	}
	return p.runsOtherwise(place.How, c)
}

// returns reports whether a return probe is planted.
func (p *Path) returns() bool {
	return p.kind == returning || p.kind == both || p.kind == missedReturn
}

// unoptimized is the rule at which the optimizer stops.
func unoptimized(v kimage.View, at x86.Addr, c *profile.Config) string {
	verdict := optimizer.Check(v, at, c)
	if stops := verdict.Stops(); stops != nil {
		return stops.Sentence()
	}
	return ""
}

// runsOtherwise describes the difference between a probe's way to run there and the path's.
func (p *Path) runsOtherwise(how probepoint.How, c *profile.Config) string {
	switch {
	case how == probepoint.Ftrace && p.how != how:
		return "it is a fentry site: the function tracer calls the handlers, and nothing traps"
	case p.how == probepoint.Ftrace && how != p.how:
		return "it is no fentry site: the function tracer does not call the handlers"
	case how == probepoint.Emulated && p.how != how:
		return "the instruction is emulated: no copy of it is executed"
	case p.how == probepoint.Emulated && how != p.how:
		return "the instruction is not emulated: a copy of it is executed"
	case p.how == probepoint.Boosted && how != p.how && !c.Slot.LazyBoost:
		return "no jump back may follow a copy of this instruction: it cannot be boosted"
	case p.byDebug && !c.Step.TrapFlag:
		return "this kernel has an int3 after the copy, as from 5.13 on: the path is k"
	case p.Name == "k" && c.Step.TrapFlag:
		return "this kernel steps by the trap flag, as before 5.13: the path is k-tf"
	}
	return ""
}
