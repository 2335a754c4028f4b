package main

import (
	"fmt"
	"io"
	"os"
)

// maxShown bounds the differences that are printed.
const maxShown = 20

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: traces OURS KERNELS")
		os.Exit(2)
	}
	var lists [2][]record
	for i, file := range os.Args[1:] {
		text, err := os.ReadFile(file)
		if err != nil {
			fmt.Fprintln(os.Stderr, "traces:", err)
			os.Exit(3)
		}
		if lists[i], err = parse(string(text)); err != nil {
			fmt.Fprintf(os.Stderr, "traces: %s: %v\n", file, err)
			os.Exit(3)
		}
	}
	res := compare(lists[0], lists[1])
	res.print(os.Stdout)
	if len(res.different) > 0 || res.kernels == 0 {
		os.Exit(1)
	}
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
