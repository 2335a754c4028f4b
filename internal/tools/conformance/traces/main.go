package traces

import (
	"flag"
	"fmt"
	"io"
	"os"

	"kprobelab/internal/tools/conformance/verb"
)

// maxShown bounds the differences that are printed.
const maxShown = 20

// Run runs the verb traces.
func Run(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("traces OURS KERNELS: %w", flag.ErrHelp)
	}
	var lists [2][]record
	for i, file := range args {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if lists[i], err = parse(string(text)); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	res := compare(lists[0], lists[1])
	res.print(os.Stdout)
	return verb.Differ(len(res.different) > 0 || res.kernels == 0, nil)
}

func (res *result) print(w io.Writer) {
	fmt.Fprintf(w, "%d records of %d tasks, %d of the kernel's: %d are the same but for CPU and time\n", res.ours, res.tasks, res.kernels, res.same)
	for i, n := range res.by {
		if n > 0 {
			fmt.Fprintf(w, "%d differ in %s\n", n, rules[i].why)
		}
	}
	if res.pointers > 0 {
		fmt.Fprintf(w, "%d differ in pointers into the kernel's memory, each of which names the same object on both sides: what is allocated after the dump is elsewhere\n", res.pointers)
	}
	if res.numbered > 0 {
		fmt.Fprintf(w, "%d differ in the process number that they have of the same task\n", res.numbered)
	}
	if res.raced > 0 {
		fmt.Fprintf(w, "%d are of futexes, where tasks of the program have others wait: which of two tasks comes first is a matter of time\n", res.raced)
	}
	if res.renumbered {
		fmt.Fprintln(w, "process numbers differ: the kernel starts tasks of its own in between, when its time has come")
	}
	if res.background > 0 {
		fmt.Fprintf(w, "%d are of tasks of the kernel's own, which only one side started in the time of the program\n", res.background)
	}
	if res.moved > 0 {
		fmt.Fprintf(w, "%d come earlier or later among those of other tasks: which of two tasks goes on first is a matter of time\n", res.moved)
	}
	fmt.Fprintf(w, "%d differ\n", len(res.different))
	for i, d := range res.different {
		if i == maxShown {
			fmt.Fprintf(w, "and %d more\n", len(res.different)-i)
			break
		}
		fmt.Fprintln(w, d)
	}
}
