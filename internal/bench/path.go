package bench

import (
	"fmt"
	"strings"

	"kprobelab/kprobes/probepoint"
	"kprobelab/profile"
)

// Parts counts how many times each part of a hit happens.
type Parts struct {
	// Traps are int3s at the probed address.
	Traps float64 `json:"traps"`
	// Steps are copies executed in the slot up to a second trap: the #DB of the
	// trap flag, or an int3 after the copy.
	Steps float64 `json:"steps"`
	// Detours are passages of a detour buffer, with its call of the handlers.
	Detours float64 `json:"detours"`
	// Tracers are passages of the function tracer's trampoline.
	Tracers float64 `json:"tracers"`
	// Trampolines are returns through the return trampoline.
	Trampolines float64 `json:"trampolines"`
}

// String lists the parts with a count other than 0: "1 trap, 1 step".
func (p Parts) String() string {
	var list []string
	for _, part := range []struct {
		n    float64
		name string
	}{{p.Traps, "trap"}, {p.Steps, "step"}, {p.Detours, "detour"}, {p.Tracers, "tracer"}, {p.Trampolines, "trampoline"}} {
		switch {
		case part.n == 1:
			list = append(list, "1 "+part.name)
		case part.n != 0:
			list = append(list, fmt.Sprintf("%g %ss", part.n, part.name))
		}
	}
	if len(list) == 0 {
		return "nothing"
	}
	return strings.Join(list, ", ")
}

// Path is a way that a hit can take.
type Path struct {
	// Name is the path's letter in the documentation, or a word if it has no letter.
	Name string
	// Describes is one line for people.
	Describes string
	// Documented is the documentation's figure for an x86-64 processor of
	// 2008 (kprobes.rst, Optimized Probe Overhead) in microseconds per hit; 0
	// where it has none.
	Documented float64

	// release is the named profile; preempt, where set, changes its PREEMPTION.
	release string
	preempt bool
	// place is the guest kernel's function, and offset in it, that is probed.
	place  string
	offset uint32
	kind   kind
	// how is the way in which the probe has to run while it is no jump.
	how probepoint.How
	// optimize allows jump optimization.
	optimize bool
	// parts are the parts that a hit must have.
	parts Parts
	// byDebug: the step ends in #DB.
	byDebug bool
}

// kind is the kind of probe that is planted.
type kind int

const (
	plainKprobe kind = iota
	withPost
	returning
	both // a kprobe and a return probe on one function
	missedReturn
	nestedMiss
	disabled
	nextDoor // a kprobe on another function
)

// The probed places, all of the guest kernel.
const (
	placeOptimizable = "opt_yes"    // no fentry site; mov, add: can be boosted and optimized
	placeBranch      = "opt_no_jcc" // test, je at +3
	placeTraced      = "leaf"       // begins with a fentry site
	placeNested      = "kprobe_stacktrace_internal_target"
	placeOuter       = "opt_yes_rip"
	placeNextDoor    = "opt_yes_five" // right after opt_yes
)

var paths = []Path{
	{Name: "k", Describes: "int3, and the int3 after the copy in the slot", Documented: 0.99, release: "6.1",
		place: placeOptimizable, parts: Parts{Traps: 1, Steps: 1}},
	{Name: "k-tf", Describes: "int3, and the trap flag's #DB after the copy", Documented: 0.99, release: "5.8", preempt: true,
		place: placeOptimizable, parts: Parts{Traps: 1, Steps: 1}, byDebug: true},
	{Name: "k-post", Describes: "k with a post_handler", release: "6.1",
		place: placeOptimizable, kind: withPost, parts: Parts{Traps: 1, Steps: 1}},
	{Name: "emulated", Describes: "int3, and a conditional branch that is emulated", release: "6.1",
		place: placeBranch, offset: 3, how: probepoint.Emulated, parts: Parts{Traps: 1}},
	{Name: "b", Describes: "boosted: int3, and the slot's copy jumps back", Documented: 0.43, release: "5.10",
		place: placeOptimizable, how: probepoint.Boosted, parts: Parts{Traps: 1}},
	{Name: "o", Describes: "optimized: a jump to the detour buffer, no trap", Documented: 0.06, release: "6.1", optimize: true,
		place: placeOptimizable, parts: Parts{Detours: 1}},
	{Name: "ftrace", Describes: "on a fentry site, from the function tracer", release: "6.1",
		place: placeTraced, how: probepoint.Ftrace, parts: Parts{Tracers: 1}},
	{Name: "r", Describes: "return probe whose entry is a k", Documented: 1.24, release: "6.1",
		place: placeOptimizable, kind: returning, parts: Parts{Traps: 1, Steps: 1, Trampolines: 1}},
	{Name: "rb", Describes: "return probe whose entry is boosted", Documented: 0.68, release: "5.10",
		place: placeOptimizable, how: probepoint.Boosted, kind: returning, parts: Parts{Traps: 1, Trampolines: 1}},
	{Name: "ro", Describes: "return probe whose entry is optimized", Documented: 0.30, release: "6.1", optimize: true,
		place: placeOptimizable, kind: returning, parts: Parts{Detours: 1, Trampolines: 1}},
	{Name: "r-ftrace", Describes: "return probe whose entry is on a fentry site", release: "6.1",
		place: placeTraced, how: probepoint.Ftrace, kind: returning, parts: Parts{Tracers: 1, Trampolines: 1}},
	{Name: "kr", Describes: "a kprobe and a return probe on one function, by int3", release: "6.1",
		place: placeOptimizable, kind: both, parts: Parts{Traps: 1, Steps: 1, Trampolines: 1}},
	{Name: "r-missed", Describes: "return probe with no instance left, on a fentry site", release: "6.1",
		place: placeNested, how: probepoint.Ftrace, kind: missedReturn, parts: Parts{Tracers: 1}},
	{Name: "nested", Describes: "int3 inside another probe's handler: counted as missed", release: "6.1",
		place: placeOptimizable, kind: nestedMiss, parts: Parts{Traps: 1, Steps: 1}},
	{Name: "disabled", Describes: "registered and disabled: nothing is in the text", release: "6.1",
		place: placeOptimizable, kind: disabled},
	{Name: "next-door", Describes: "calls of a function whose neighbour is probed", release: "6.1",
		place: placeOptimizable, kind: nextDoor},
}

// Paths are all that can be measured, in the order of the table.
func Paths() []Path { return append([]Path(nil), paths...) }

// handler names the kind of the path's handler.
func (p *Path) handler() string {
	switch p.kind {
	case missedReturn, nestedMiss, disabled, nextDoor:
		return HandlerNone
	}
	return HandlerGo
}

// Profile names the kernel whose rules the path runs on: boosting needs one
// without PREEMPTION, the trap flag an old one.
func (p *Path) Profile() string {
	switch {
	case p.preempt:
		return p.release + "+PREEMPTION"
	case !p.config().Preemption:
		return p.release + " (no PREEMPTION)"
	}
	return p.release
}

func (p *Path) config() *profile.Config {
	c, ok := profile.Named(p.release)
	if !ok {
		panic("BUG: no profile " + p.release)
	}
	if p.preempt {
		c.Preemption = true
	}
	return c
}
