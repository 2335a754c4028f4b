// Command program compares what kprobelab says with what kernels and other tools say. Its first argument is a verb of
// the table below; scripts/conformance*.sh prepare what each verb reads.
//
// It must not know how a verb compares. It ends with 0 if nothing differs, 1 if answers differ, 77 if a kernel did not
// run to its end, and 2 after any other error.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"

	"kprobelab/internal/tools/conformance/aliases"
	"kprobelab/internal/tools/conformance/asked/ask"
	"kprobelab/internal/tools/conformance/attach"
	"kprobelab/internal/tools/conformance/begin"
	"kprobelab/internal/tools/conformance/boot"
	"kprobelab/internal/tools/conformance/bpftools"
	"kprobelab/internal/tools/conformance/configs"
	"kprobelab/internal/tools/conformance/forms"
	hazards "kprobelab/internal/tools/conformance/hazards/boot"
	"kprobelab/internal/tools/conformance/levels"
	"kprobelab/internal/tools/conformance/load"
	"kprobelab/internal/tools/conformance/objects"
	"kprobelab/internal/tools/conformance/points"
	"kprobelab/internal/tools/conformance/registers"
	"kprobelab/internal/tools/conformance/scripts"
	"kprobelab/internal/tools/conformance/skeletons"
	"kprobelab/internal/tools/conformance/source"
	"kprobelab/internal/tools/conformance/table"
	"kprobelab/internal/tools/conformance/traces"
	"kprobelab/internal/tools/conformance/transparent"
	"kprobelab/internal/tools/conformance/uprobes"
	"kprobelab/internal/tools/conformance/values"
	"kprobelab/internal/tools/conformance/verb"
)

// verbs is the table of comparisons.
var verbs = []verb.Verb{
	{Name: "aliases", Does: "variables of the library's probe aliases, with SystemTap's own", Run: aliases.Run},
	{Name: "ask", Does: "answers of a booted kernel's tracing files, by random uses", Run: ask.Run},
	{Name: "attach", Does: "which probes of drawn bpftrace scripts attach", Run: attach.Run},
	{Name: "begin", Does: "all output of drawn bpftrace scripts of BEGIN and END", Run: begin.Run},
	{Name: "boot", Does: "probes that a booted kernel registers, with the rules", Run: boot.Run},
	{Name: "bpftools", Does: "output of BPF tools under QEMU, with their output on a dump", Run: bpftools.Run},
	{Name: "configs", Does: "draw configurations of a kernel", Run: configs.Run},
	{Name: "forms", Does: "every form of dump that QEMU and makedumpfile write", Run: forms.Run},
	{Name: "hazards", Does: "hazards that happen on a booted kernel", Run: hazards.Run},
	{Name: "levels", Does: "values of the dated fields of a release", Run: levels.Run},
	{Name: "load", Does: "verdicts of a kernel on BPF selftests, with veristat's", Run: load.Run},
	{Name: "objects", Does: "which BPF objects load, by bpftool and by check", Run: objects.Run},
	{Name: "points", Does: "where probe points of scripts are, with stap", Run: points.Run},
	{Name: "registers", Does: "which hardware breakpoints a kernel refuses", Run: registers.Run},
	{Name: "scripts", Does: "which changed scripts stap and bpftrace accept", Run: scripts.Run},
	{Name: "skeletons", Does: "BPF objects inside of tools on each kernel, and beside bpftool", Run: skeletons.Run},
	{Name: "source", Does: "definitions of random probes, with perf probe's", Run: source.Run},
	{Name: "table", Does: "put the results of boot into a page", Run: table.Run},
	{Name: "traces", Does: "two files trace of one program on one kernel", Run: traces.Run},
	{Name: "transparent", Does: "a program with uprobes on every instruction", Run: transparent.Run},
	{Name: "uprobes", Does: "which instructions take a uprobe, and how", Run: uprobes.Run},
	{Name: "values", Does: "draw bpftrace scripts about integers, compare their output", Run: values.Run},
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: program VERB ARGUMENTS")
		verb.Help(os.Stderr, verbs)
		os.Exit(2)
	}
	v, err := verb.Find(verbs, os.Args[1])
	if err == nil {
		err = v.Run(os.Args[2:])
	}
	// The answers that differ are printed already.
	if err != nil && !errors.Is(err, verb.ErrDiffer) && !errors.Is(err, verb.ErrNotRun) {
		fmt.Fprintf(os.Stderr, "%s: %v\n", os.Args[1], err)
		if errors.Is(err, flag.ErrHelp) {
			verb.Help(os.Stderr, verbs)
		}
	}
	os.Exit(verb.Code(err))
}
