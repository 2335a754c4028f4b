//go:build linux

// Command bpfloader loads the programs of a BPF object, each by itself, attaches each as its section says, and writes what the
// kernel answered as JSON (bpf/answer). It runs in the guest; package bpf puts it there.
//
// It must not know that the kernel is a guest of ours.
//
//	bpfloader [-verbose] [-from NUMBER] [-btf FILE] OBJECT
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"

	"kprobelab/bpf/answer"
)

func main() {
	verbose := flag.Bool("verbose", false, "the verifier's log has each instruction")
	from := flag.Int("from", 0, "begin with the program of this `NUMBER`, by the order of their names")
	types := flag.String("btf", "", "relocate against the types of `FILE`, not the kernel's")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "bpfloader: one OBJECT is wanted")
		os.Exit(2)
	}
	out := json.NewEncoder(os.Stdout)
	l, err := open(flag.Arg(0), *types, *verbose)
	if err != nil {
		err = out.Encode(answer.Line{Error: err.Error()})
	} else {
		err = l.programs(*from, func(line answer.Line) error { return out.Encode(line) })
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bpfloader:", err)
		os.Exit(1)
	}
}
