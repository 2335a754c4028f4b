// Package bpftools compares the output of BPF tools on a booted kernel under QEMU with their output on a dump of the same
// boot (make conformance-bpf). The guest's script has written both: a tool, its exit code, its output, its standard error.
//
// It must not know how the tools were run.
package bpftools

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"kprobelab/internal/tools/conformance/verb"
	"kprobelab/run"
)

// Run runs the verb bpftools.
func Run(args []string) error {
	f := flag.NewFlagSet("bpftools", flag.ExitOnError)
	theirs := f.String("theirs", "", "the answers under QEMU")
	ours := f.String("ours", "", "the answers on the dump")
	workload := f.String("workload", "", "print the lines of these workloads (kprobelab exec --workload), and compare nothing")
	if err := f.Parse(args); err != nil {
		return err
	}
	if *workload != "" {
		fmt.Println(run.Workload(*workload))
		return nil
	}
	different, err := compareFiles(os.Stdout, *theirs, *ours)
	return verb.Differ(different, err)
}

// compareFiles prints a line for each tool, and the sum. It reports whether a tool differs.
func compareFiles(w io.Writer, theirs, ours string) (bool, error) {
	names, a, err := parseFile(theirs)
	if err != nil {
		return false, err
	}
	_, b, err := parseFile(ours)
	if err != nil {
		return false, err
	}
	if len(names) == 0 {
		return false, fmt.Errorf("%s has no answers", theirs)
	}
	var same, byRules, differ int
	used := map[string]int{}
	for _, name := range names {
		other := b[name]
		if other == nil {
			differ++
			fmt.Fprintf(w, "%-18s no answer here\n", name)
			continue
		}
		rules, ok := compare(name, a[name], other)
		switch {
		case !ok:
			differ++
			fmt.Fprintf(w, "%-18s DIFFERS\n%s", name, difference(name, a[name], other))
		case len(rules) == 0:
			same++
			fmt.Fprintf(w, "%-18s exit code %d, the same\n", name, other.code)
		default:
			byRules++
			for _, r := range rules {
				used[r]++
			}
			fmt.Fprintf(w, "%-18s exit code %d, the same but for %s\n", name, other.code, strings.Join(rules, ", "))
		}
	}
	fmt.Fprintf(w, "%d tools: %d the same, %d by rules, %d differ\n", len(names), same, byRules, differ)
	for _, r := range all {
		if r != ranks && used[r.name] > 0 { // it has the name of processes
			fmt.Fprintf(w, "  %3d: %s\n", used[r.name], r.name)
		}
	}
	return differ > 0, nil
}
