package report

import (
	"fmt"
	"strings"
)

// Unless is something other than the code that keeps a probe from being a jump.
type Unless struct {
	// Sentence says it in words; Source is the place of the rule.
	Sentence string `json:"sentence"`
	Source   string `json:"source"`
}

// unless lists what prevents the optimization of a probe whose code allows it.
func (x *explainer) unless() {
	if !x.e.Optimized {
		return
	}
	add := func(source, format string, args ...any) {
		x.e.Unless = append(x.e.Unless, Unless{fmt.Sprintf(format, args...), source})
	}
	add("kernel/kprobes.c, optimize_kprobe", "a probe at this address has a post handler")
	if inside := x.inside(); len(inside) > 0 {
		state := "registered (a disabled one counts as long as its int3 stands)"
		if x.Profile.Optimize.EnabledNeighboursOnly {
			state = "enabled"
		}
		add("arch/x86/kernel/kprobes/opt.c, arch_check_optimized_kprobe", "a probe at %s is %s: its int3 would be overwritten", strings.Join(inside, ", "), state)
	}
	add("kernel/kprobes.c, optimize_kprobe", "all probes at this address are disabled, or all of the system's are disarmed (debugfs, kprobes/enabled)")
	add("kernel/kprobes.c, proc_kprobes_optimization_handler", "debug.kprobes-optimization is 0")
}

// inside are the instructions that the jump runs over, past the first.
func (x *explainer) inside() (list []string) {
	for _, i := range x.v.Copied {
		if i.Addr > x.at {
			list = append(list, fmt.Sprintf("%s+%#x", x.sym.Name, uint64(i.Addr.Sub(x.sym.Addr))))
		}
	}
	return list
}
