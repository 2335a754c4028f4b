package traces

import (
	"regexp"
	"slices"
	"strings"
)

// rule says of two records that differ why that is no fault.
type rule struct {
	why string
	// same changes both sides alike; records that are equal afterwards do not differ.
	same func(record) record
}

// rules are tried in this order, each on what the ones before have made.
var rules = []rule{
	{
		"what a timer interrupted: an instruction takes 1 ns here and 4 ns there, so a timer comes at another one",
		func(r record) record {
			if !r.isStack() {
				return r
			}
			for i, f := range r.text {
				if strings.HasPrefix(f, "asm_sysvec_") {
					r.text = r.text[:i+1]
					break
				}
			}
			return r
		},
	},
	{
		"the task is asked to give up its CPU (N, l), by a tick or for a reader that it wakes, which is a matter of time, too",
		func(r record) record {
			if len(r.flags) > 1 && strings.ContainsRune(asked, rune(r.flags[1])) {
				r.flags = r.flags[:1] + "." + r.flags[2:]
			}
			return r
		},
	},
	{
		"an int3 (Zff; without a count of preemption d) that the kernel's optimizer replaces by a jump some time later; here it has done so before the program",
		func(r record) record {
			r.flags = strings.ReplaceAll(r.flags, "Zff", "...")
			if inside.MatchString(r.place) && strings.Trim(r.flags[1:], ".") == "" && r.flags[0] == 'd' {
				r.flags = "." + r.flags[1:]
			}
			return r
		},
	},
	{
		"the stack of a trigger begins with the kernel's own handler, which does not run here",
		func(r record) record {
			if !r.isStack() || len(r.text) == 0 || !handlers[r.text[0]] {
				return r
			}
			r.text = slices.Clone(r.text)
			for len(r.text) > 0 && (handlers[r.text[0]] || strings.HasPrefix(r.text[0], "0x")) {
				r.text = r.text[1:]
			}
			return r
		},
	},
}

// asked are the second flags of a task that is asked to give up its CPU, at once or lazily.
const asked = "NnplLbB"

// inside begins the record of a probe inside a function. One at an entry is no int3.
var inside = regexp.MustCompile(`^\(\w+\+0x0*[1-9a-f][0-9a-f]*/0x`)

// handlers are the kernel's functions from a probe to a trigger. The function tracer's
// trampoline among them has no symbol.
var handlers = map[string]bool{
	"kprobe_trace_func": true, "kprobe_dispatcher": true, "kprobe_ftrace_handler": true, "ftrace_ops_assist_func": true,
	"kretprobe_trace_func": true, "kretprobe_dispatcher": true, "kretprobe_rethook_handler": true,
	"rethook_trampoline_handler": true, "arch_rethook_trampoline_callback": true, "arch_rethook_trampoline": true,
	"__kretprobe_trampoline_handler": true, "trampoline_handler": true, "kretprobe_trampoline": true, "__kretprobe_trampoline": true,
}
