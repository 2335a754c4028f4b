//go:build linux

// Command bpfloader loads the programs of a BPF object, each by itself, attaches each as its section says, and writes what the
// kernel answered as JSON (bpf/answer). It runs in the guest; package bpf puts it there.
//
// It must not know that the kernel is a guest of ours.
//
//	bpfloader -run NAME,... OBJECT
//	bpfloader [-verbose] [-from NUMBER] [-btf FILE] [-contract FILE] OBJECT
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"strings"

	"kprobelab/bpf/answer"
	"kprobelab/internal/bounded"
)

func main() {
	verbose := flag.Bool("verbose", false, "the verifier's log has each instruction")
	from := flag.Int("from", 0, "begin with the program of this `NUMBER`, by the order of their names")
	var f files
	flag.StringVar(&f.types, "btf", "", "relocate against the types of `FILE`, not the kernel's")
	flag.StringVar(&f.contract, "contract", "", "complete the object as the contract in `FILE` says")
	run := flag.String("run", "", "attach the programs of these `NAMES`, with commas between them, until SIGINT, and write what they tell")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "bpfloader: one OBJECT is wanted")
		os.Exit(2)
	}
	out := json.NewEncoder(os.Stdout)
	f.object = flag.Arg(0)
	debug.SetMaxStack(bounded.BPFStack) // Go's own limit is more than a guest has
	err := answers(f, *verbose, *run, *from, func(line answer.Line) error { return out.Encode(line) })
	if err != nil {
		fmt.Fprintln(os.Stderr, "bpfloader:", err)
		os.Exit(1)
	}
}

// answers reads the object, and tells what was asked. The library can fail on a damaged object by a panic.
func answers(f files, verbose bool, run string, from int, tell func(answer.Line) error) (err error) {
	var l *loader
	defer func() {
		if r := recover(); r != nil && l == nil {
			err = tell(answer.Line{Error: fmt.Sprintf("it is damaged: %v", r)})
		} else if r != nil {
			err = fmt.Errorf("the object is damaged: %v", r)
		}
	}()
	l, err = open(f, verbose)
	switch {
	case err != nil:
		return tell(answer.Line{Error: oneLine(err.Error()), Contract: errors.Is(err, errContract)})
	case run != "":
		return l.run(strings.Split(run, ","), tell)
	}
	return l.programs(from, tell)
}

// oneLine is the first line of a text, and the beginning of a long one.
func oneLine(text string) string {
	text, _, _ = strings.Cut(text, "\n")
	return text[:min(len(text), bounded.BPFSentence)]
}
