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
	"strings"

	"kprobelab/bpf/answer"
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
	l, err := open(f, *verbose)
	if err != nil {
		err = out.Encode(answer.Line{Error: err.Error(), Contract: errors.Is(err, errContract)})
	} else if *run != "" {
		err = l.run(strings.Split(*run, ","), func(line answer.Line) error { return out.Encode(line) })
	} else {
		err = l.programs(*from, func(line answer.Line) error { return out.Encode(line) })
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bpfloader:", err)
		os.Exit(1)
	}
}
