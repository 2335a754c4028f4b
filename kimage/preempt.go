package kimage

import "kprobelab/x86"

// PreemptCount finds the per-CPU preempt count, by its link-time address: the
// variable __preempt_count, or in 6.2 to 6.14 the second word of pcpu_hot. It
// takes the Lookup of a View.
func PreemptCount(lookup func(name string) []Symbol) (at x86.Addr, ok bool) {
	if s := lookup("__preempt_count"); len(s) > 0 {
		return s[0].Addr, true
	}
	// struct pcpu_hot { current_task, preempt_count, cpu_number, … }
	if s := lookup("pcpu_hot"); len(s) > 0 {
		return s[0].Addr + 8, true
	}
	return 0, false
}

// CurrentTask finds the per-CPU pointer to the current task, as PreemptCount does.
func CurrentTask(lookup func(name string) []Symbol) (at x86.Addr, ok bool) {
	for _, name := range []string{"current_task", "pcpu_hot"} {
		if s := lookup(name); len(s) > 0 {
			return s[0].Addr, true
		}
	}
	return 0, false
}
