package bpftrace

import (
	"slices"
	"strings"

	"kprobelab/internal/script/host"
)

// Ways answers for a kernel what it says to the ways in which bpftrace attaches.
type Ways interface {
	// Traced are the functions of available_filter_functions, Blacklist the names of
	// kprobes/blacklist. Traces reports whether there is such a file.
	Traces() bool
	Traced() []host.Function
	Blacklist() []string
	// Loaded reports whether a module is loaded.
	Loaded(module string) bool
	// Typed reports whether BTF has a function of the name, of a module or, with "",
	// of anything, and how many parameters it has.
	Typed(function, module string) (parameters int, ok bool)
	// Kprobe is the answer to a probe at SYMBOL+OFFSET or MODULE:SYMBOL+OFFSET, by an
	// event of perf's, and where that is refused by kprobe_events.
	Kprobe(place string, ret bool) error
	// Links reports whether one program can be linked to many functions, ProgramLinks to
	// many of a program's; Link is the answer.
	Links() bool
	ProgramLinks() bool
	Link(functions []string) error
	// Trampoline is the answer to a program at a function. verified says that the verifier
	// refuses it already, when it is loaded.
	Trampoline(function string, ret bool) (verified bool, err error)
}

// traced maps the functions that patterns can fit to the modules that have them. bpftrace
// leaves out the functions of kprobes' blacklist, and some that hang kernels.
type traced map[string][]string

// vmlinux is the module of the kernel's own functions.
const vmlinux = "vmlinux"

// harmful and harmfulPrefixes are the names, and the beginnings of names, of functions that
// hang kernels, as bpftrace lists them.
var (
	harmful         = []string{"arch_cpu_idle", "default_idle", "bpf_dispatcher_xdp_func"}
	harmfulPrefixes = []string{"__ftrace_invalid_address__", "rcu_"}
)

// Harmful reports whether bpftrace leaves a function out of its list of traceable functions, because a probe there
// hangs kernels.
func Harmful(function string) bool {
	begins := func(prefix string) bool { return strings.HasPrefix(function, prefix) }
	return slices.Contains(harmful, function) || slices.ContainsFunc(harmfulPrefixes, begins)
}

// traceable returns the functions that patterns can fit. bpftrace warns of probes at all
// other functions.
func (c *checker) traceable() traced {
	if c.traced == nil {
		c.traced = traced{}
		if c.k == nil || c.k.Ways == nil {
			return c.traced
		}
		for _, f := range c.k.Ways.Traced() {
			if Harmful(f.Name) {
				continue
			}
			module := f.Module
			if module == "" {
				module = vmlinux
			}
			if !slices.Contains(c.traced[f.Name], module) {
				c.traced[f.Name] = append(c.traced[f.Name], module)
			}
		}
		for _, name := range c.k.Ways.Blacklist() {
			delete(c.traced, name)
		}
	}
	return c.traced
}

// matching returns the sorted lines that a pattern fits: FUNCTION, or MODULE:FUNCTION.
func (t traced) matching(pattern string, modules bool, has func(function, module string) bool) (list []string) {
	for name, in := range t {
		if strings.Contains(name, ".part.") {
			continue // the tool takes them for untraceable
		}
		if !modules {
			if match(pattern, name) {
				list = append(list, name)
			}
			continue
		}
		for _, m := range in {
			if line := m + ":" + name; match(pattern, line) && (has == nil || has(name, m)) {
				list = append(list, line)
			}
		}
	}
	slices.Sort(list)
	return list
}
