package tracing

import (
	"strings"

	"kprobelab/profile"
)

// readme is the file README: the list of files, and the language of kprobe_events in the words of
// the modelled release. Scripts look there for a kernel's features.
func (t *Tracing) readme() string {
	lines := []string{
		"tracing mini-HOWTO:",
		"",
		" Important files:",
		"  trace\t\t\t- The static contents of the buffer",
		"\t\t\t  To clear the buffer write into this file: echo > trace",
		"  trace_pipe\t\t- A consuming read to see the contents of the buffer",
		"  current_tracer\t- function and latency tracers",
		"  available_tracers\t- list of configured tracers for current_tracer",
	}
	if t.c.ErrorLog {
		lines = append(lines, "  error_log\t- error log for failed commands (that support it)")
	}
	lines = append(lines,
		"  buffer_size_kb\t- view and modify size of per cpu buffer",
		"  buffer_total_size_kb  - view total size of all cpu buffers",
		"  trace_marker\t\t- Writes into this file writes into the kernel buffer",
		"  tracing_on\t\t- enable/disable tracing: quick way to stop it",
		"  snapshot\t\t- Like 'trace' but shows the content of the static",
		"\t\t\t  snapshot buffer. Read the contents for more",
		"\t\t\t  information",
		"  instances\t\t- Make sub-buffers with: mkdir instances/foo",
		"  available_events\t- list of events that can be enabled",
		"  set_event\t\t- list of events that are enabled, and enables them",
	)
	if t.c.DynamicEvents {
		lines = append(lines,
			"  dynamic_events\t\t- Create/append/remove/show the generic dynamic events",
			"\t\t\t  Write into this file to define/undefine new trace events.")
	}
	lines = append(lines,
		"  kprobe_events\t\t- Create/append/remove/show the kernel dynamic events",
		"\t\t\t  Write into this file to define/undefine new trace events.")
	if t.p.Uprobes.Exists {
		lines = append(lines,
			"  uprobe_events\t\t- Create/append/remove/show the userspace dynamic events",
			"\t\t\t  Write into this file to define/undefine new trace events.")
	}
	lines = append(lines, "\t  accepts: event-definitions (one definition per line)")
	lines = append(lines, t.grammar()...)
	lines = append(lines,
		"  events/\t\t- Directory containing all trace event subsystems:",
		"      enable\t\t- Write 0/1 to enable/disable tracing of all events",
		"  events/<system>/\t- Directory containing all trace events for <system>:",
		"      enable\t\t- Write 0/1 to enable/disable tracing of all <system>",
		"\t\t\t  events",
		"      filter\t\t- If set, only events passing filter are traced",
		"  events/<system>/<event>/\t- Directory containing control files for",
		"\t\t\t  <event>:",
		"      enable\t\t- Write 0/1 to enable/disable tracing of <event>",
		"      filter\t\t- If set, only events passing filter are traced",
		"      trigger\t\t- If set, a command to perform when event is hit",
		"\t    Format: <trigger>[:count][if <filter>]",
		"\t   trigger: traceon, traceoff",
		"\t            enable_event:<system>:<event>",
		"\t            disable_event:<system>:<event>",
		"\t\t    stacktrace",
		"\t\t    snapshot",
	)
	return strings.Join(lines, "\n") + "\n"
}

// grammar are the lines about definitions.
func (t *Tracing) grammar() []string {
	name, suffix, arg := "[:[<group>/]<event>]", "", ""
	if t.c.AutoNames {
		name = "[:[<group>/][<event>]]"
	}
	if t.c.ReturnSuffix {
		suffix = "%return"
	}
	if t.c.ArgFetch {
		arg = ", $arg<N>"
	}
	maxActive := ""
	if t.c.MaxActive {
		maxActive = "[maxactive]"
	}
	list := []string{
		"\t   Format: p" + name + " <place> [<args>]",
		"\t           r" + maxActive + name + " <place> [<args>]",
		"\t           -" + strings.Trim(name, "[]") + trailing(name),
		"\t    place: [<module>:]<symbol>[+<offset>]|<memaddr>",
		"place (kretprobe): [<module>:]<symbol>[+<offset>]" + suffix + "|<memaddr>",
	}
	if t.p.Uprobes.Exists {
		list = append(list, t.userPlace())
	}
	list = append(list,
		"\t     args: <name>=fetcharg[:type]",
		"\t fetcharg: %<register>, @<address>, @<symbol>[+|-<offset>],",
	)
	list = append(list, t.variables(arg)...)
	if !t.c.ArgFetch {
		return append(list, "\t           +|-<offset>(<fetcharg>)", "\t     type: s8/16/32/64, u8/16/32/64, string,",
			"\t           b<bit-width>@<bit-offset>/<container-size>")
	}
	list = append(list, `	           +|-[u]<offset>(<fetcharg>), \imm-value, \"imm-string"`)
	if t.c.Typecasts {
		list = append(list, "\t           this_cpu_read(<fetcharg>), this_cpu_ptr(<fetcharg>)")
	}
	if t.c.BTFArgs {
		return append(list, "\t     kernel return probes support: $retval, $arg<N>, $comm",
			"\t     type: s8/16/32/64, u8/16/32/64, x8/16/32/64, char, string, symbol,",
			"\t           b<bit-width>@<bit-offset>/<container-size>, ustring,",
			`	           symstr, %pd/%pD, <type>\[<array-size>\]`)
	}
	list = append(list, "\t     type: s8/16/32/64, u8/16/32/64, x8/16/32/64, string, symbol,",
		"\t           b<bit-width>@<bit-offset>/<container-size>, ustring,")
	if t.c.Types == profile.Types61 {
		return append(list, `	           symstr, <type>\[<array-size>\]`)
	}
	return append(list, `	           <type>\[<array-size>\]`)
}

// userPlace is the line about the place of a uprobe.
func (t *Tracing) userPlace() string {
	place := "   place (uprobe): <path>:<offset>"
	if t.c.ReturnSuffix {
		place += "[%return]"
	}
	if t.c.DynamicEvents {
		place += "[(ref_ctr_offset)]"
	}
	return place
}

// variables returns the lines about named values.
func (t *Tracing) variables(arg string) []string {
	comm, end := ", $comm", ","
	if !t.c.CommFetch {
		comm = ""
	}
	if t.c.Typecasts {
		end = ", $current"
	}
	list := []string{"\t           $stack<index>, $stack, $retval" + comm + arg + end}
	switch {
	case t.c.Typecasts:
		list = append(list, "\t           [(structname[,field])]<argname>[->field[->field|.field...]],",
			"\t           [(structname[,field])](fetcharg)->field[->field|.field...],")
	case t.c.BTFArgs:
		list = append(list, "\t           <argname>[->field[->field|.field...]],")
	}
	return list
}

// trailing closes the bracket that the deletion's line opens: the event may be
// left out.
func trailing(name string) string {
	if strings.HasSuffix(name, "]]") {
		return "]"
	}
	return ""
}
