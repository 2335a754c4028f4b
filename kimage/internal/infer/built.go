package infer

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kprobelab/kimage/evidence"
	"kprobelab/profile"
)

// component is a part that a kernel is built with or without. A symbol or a text of it in the image
// counts before the configuration; so does the absence of all of them in an image with all symbols.
type component struct {
	// name is the profile's field.
	name string
	// options are all needed. "CONFIG_OLD CONFIG_NEW" is one that has got another name.
	options []string
	// alone: no release has or lacks it, the configuration alone decides.
	alone bool
	// symbols: one of them is in every kernel that has it, and none in one that has not. Where
	// there are none, section decides.
	symbols []string
	section string
	// texts are messages of which a kernel that has it has one. They say nothing by being absent.
	texts []string
	// needs are names of components above, of which it needs one of each list.
	needs [][]string
}

var components = []component{
	{name: "Built.Kprobes", options: []string{"CONFIG_KPROBES"},
		symbols: []string{"register_kprobe", "unregister_kprobe", "register_kretprobe", "get_kprobe", "within_kprobe_blacklist", "kprobes_inc_nmissed_count"},
		texts:   []string{"Dumping kprobe:", "Unrecoverable kprobe detected", "kprobe jump-optimization is "}},
	{name: "Tracing.Exists", options: []string{"CONFIG_KPROBE_EVENTS"}, needs: [][]string{{"Built.Kprobes"}},
		symbols: []string{"kprobe_dispatcher", "create_trace_kprobe", "trace_kprobe_create", "init_kprobe_trace"}},
	{name: "Built.PerfProbes", options: []string{"CONFIG_PERF_EVENTS", "CONFIG_KPROBE_EVENTS"}, needs: [][]string{{"Tracing.Exists"}},
		symbols: []string{"perf_kprobe_init", "perf_kprobe_event_init"}},
	{name: "Uprobes.Exists", options: []string{"CONFIG_UPROBES"}, symbols: []string{"uprobe_mmap", "uprobe_munmap", "uprobe_register"}},
	{name: "Built.UprobeEvents", options: []string{"CONFIG_UPROBE_EVENTS"}, needs: [][]string{{"Uprobes.Exists"}},
		symbols: []string{"uprobe_dispatcher", "create_trace_uprobe", "trace_uprobe_create"}},
	{name: "Built.Ftrace", options: []string{"CONFIG_DYNAMIC_FTRACE"}, symbols: []string{"ftrace_modify_all_code", "ftrace_location", "ftrace_dyn_arch_init"}},
	{name: "Built.DirectCalls", options: []string{"CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS"}, needs: [][]string{{"Built.Ftrace"}},
		symbols: []string{"register_ftrace_direct", "update_ftrace_direct_add"}},
	{name: "Built.ErrorInjection", alone: true, options: []string{"CONFIG_FUNCTION_ERROR_INJECTION"}, symbols: []string{"within_error_injection_list"}},
	{name: "Built.KCFI", alone: true, options: []string{"CONFIG_CFI_CLANG CONFIG_CFI"}, symbols: []string{"is_cfi_trap", "report_cfi_failure", "handle_cfi_failure"}},
	{name: "Built.BTF", options: []string{"CONFIG_DEBUG_INFO_BTF"}, section: ".BTF"},
	{name: "Built.BPF", options: []string{"CONFIG_BPF_SYSCALL"}, symbols: []string{"bpf_prog_new_fd", "bpf_map_new_fd"}},
	{name: "Built.BPFEvents", options: []string{"CONFIG_BPF_EVENTS", "CONFIG_PERF_EVENTS"}, needs: [][]string{{"Built.BPF"}, {"Tracing.Exists", "Built.UprobeEvents"}},
		symbols: []string{"perf_event_attach_bpf_prog", "trace_call_bpf", "trace_bpf_prog"}},
	{name: "Built.Trampolines", options: []string{"CONFIG_BPF_JIT"}, needs: [][]string{{"Built.BPF"}},
		symbols: []string{"bpf_trampoline_link_prog", "__bpf_trampoline_link_prog"}},
	{name: "Built.KprobeMulti", options: []string{"CONFIG_FPROBE"}, needs: [][]string{{"Built.BPFEvents"}, {"Built.Ftrace"}},
		symbols: []string{"register_fprobe"}},
	{name: "Built.KprobeSession", options: []string{"CONFIG_FPROBE"}, needs: [][]string{{"Built.KprobeMulti"}}, symbols: []string{"bpf_session_is_return"}},
	{name: "Built.BPFLSM", options: []string{"CONFIG_BPF_LSM"}, needs: [][]string{{"Built.Trampolines"}}, symbols: []string{"bpf_lsm_verify_prog"}},
	{name: "Built.Iterators", options: []string{"CONFIG_BPF_SYSCALL"}, needs: [][]string{{"Built.BPF"}}, symbols: []string{"bpf_iter_reg_target"}},
}

// everyKernels are functions that every kernel has. An image whose symbols lack one does not have
// all its symbols, and then an absent one says nothing.
var everyKernels = []string{"start_kernel", "schedule", "panic", "kfree", "do_exit", "vfs_read", "register_die_notifier"}

// Whole reports whether the image has the symbols of a whole kernel.
func (e *Evidence) Whole() bool {
	if !e.img.Kernel() {
		return false
	}
	for _, name := range everyKernels {
		if _, ok := e.img.SymbolAddr(name); !ok {
			return false
		}
	}
	return true
}

// built decides what the kernel is built with.
func (e *Evidence) built(c *profile.Config) {
	whole := e.Whole()
	for i := range components {
		p := &components[i]
		// No configuration adds a component that the release does not have yet.
		has := c.Field(p.name) == "true"
		f, known := e.component(p, whole, has)
		on := f.Value == "true"
		for _, any := range p.needs {
			lacks := func(name string) bool { return c.Field(name) != "true" }
			if (!known || on) && has && !slices.ContainsFunc(any, func(name string) bool { return !lacks(name) }) {
				on, known = false, true
				f = evidence.Fact{Name: p.name, Evidence: "it needs " + strings.Join(any, " or ") + ", which is not there", From: e.sourceOf(any[0])}
			}
		}
		if !known {
			continue
		}
		// With a requested profile, the kernel has no more than that release.
		if on && !has && !p.alone && (f.From == evidence.Configured || e.asked) {
			continue
		}
		if on != has {
			f.Evidence += "; profile " + c.Name + " has it otherwise"
			if err := c.SetField(p.name, strconv.FormatBool(on)); err != nil {
				panic("BUG: " + err.Error())
			}
		}
		f.Value = strconv.FormatBool(on)
		e.facts.Add(f)
	}
}

// sourceOf is the kind of evidence of a fact that was found before.
func (e *Evidence) sourceOf(name string) evidence.Source {
	for i := range *e.facts {
		if (*e.facts)[i].Name == name {
			return (*e.facts)[i].From
		}
	}
	return evidence.Dated
}

// component decides by the evidence whether the kernel is built with a component; false if there is
// no evidence. An option can be older than the component: if the release has no such component, the
// option is no evidence for one.
func (e *Evidence) component(p *component, whole, has bool) (evidence.Fact, bool) {
	var witnesses []evidence.Witness
	add := func(on bool, why string, from evidence.Source) {
		witnesses = append(witnesses, evidence.Says(strconv.FormatBool(on), why, from))
	}
	if there, why, from := e.shown(p); there {
		add(true, why, from)
	} else if whole && (p.section == "" || !e.img.OnlyText()) {
		add(false, why, from)
	}
	if on, why, ok := e.configured(p); ok {
		if has || !on || len(witnesses) == 0 {
			add(on, why, evidence.Configured)
		}
	} else if why != "" {
		add(on, why, evidence.Absent)
	}
	f, ok := evidence.Decided(p.name, witnesses)
	if on, why, said := e.configured(p); said {
		f = e.askedFor(f, evidence.Says(strconv.FormatBool(on), why, evidence.Configured))
	}
	return f, ok
}

// shown reports whether the image has a sign that only a kernel with the component has.
func (e *Evidence) shown(p *component) (there bool, why string, from evidence.Source) {
	if p.section != "" {
		if e.img.Section(p.section) != nil {
			return true, "section " + p.section, evidence.Symbolic
		}
		return false, "no section " + p.section, evidence.Symbolic
	}
	for _, name := range p.symbols {
		if _, ok := e.img.SymbolAddr(name); ok {
			return true, "symbol " + name, evidence.Symbolic
		}
	}
	for _, text := range p.texts {
		if s := e.img.Section(".rodata"); s != nil && bytes.Contains(s.Data, []byte(text)) {
			return true, fmt.Sprintf("%q in %s", text, s.Name), evidence.Coded
		}
	}
	return false, "no symbol " + strings.Join(p.symbols, ", "), evidence.Symbolic
}

// configured says whether the configuration turns a component on. ok is false if it does not name
// an option that the component needs; on is false then.
func (e *Evidence) configured(p *component) (on bool, why string, ok bool) {
	lacks := ""
	for _, names := range p.options {
		var v string
		var known bool
		option, newer, _ := strings.Cut(names, " ")
		if v, known = e.Config.Options[option]; !known && newer != "" {
			option = newer
			v, known = e.Config.Options[option]
		}
		switch {
		case !known && e.Config.Options != nil:
			lacks = cmp.Or(lacks, option)
		case known && v != "y":
			return false, option + "=" + v + " in " + e.Config.From, true
		case known:
			why = option + "=" + v + " in " + e.Config.From
		}
	}
	if lacks != "" {
		return false, lacks + " is not in " + e.Config.From, false
	}
	return true, why, why != ""
}
