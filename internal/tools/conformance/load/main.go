// Package load compares the answers of kprobelab bpf about the programs of many objects with the answers of veristat, which loads
// them by libbpf on the same kernel (make conformance-load).
//
// It must not know how veristat was run.
package load

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"kprobelab"
	"kprobelab/bpf"
	"kprobelab/bpf/answer"
	"kprobelab/internal/tools/conformance/verb"
	"kprobelab/machine"
)

// Run runs the verb load.
func Run(args []string) error {
	f := flag.NewFlagSet("load", flag.ExitOnError)
	dump := f.String("dump", "", "the booted kernel's dump")
	theirs := f.String("theirs", "", "veristat's output (-v -l 1)")
	loader := f.String("loader", "", "the loader of BPF programs (go build ./internal/bpfloader)")
	if err := f.Parse(args); err != nil {
		return err
	}
	different, err := run(os.Stdout, *dump, *theirs, *loader, f.Args())
	return verb.Differ(different, err)
}

// run asks the kernel about each object, and prints what differs and the sums.
func run(w io.Writer, dump, theirs, loader string, objects []string) (different bool, err error) {
	program, err := os.ReadFile(loader)
	if err != nil {
		return false, err
	}
	text, err := os.ReadFile(theirs)
	if err != nil {
		return false, err
	}
	answers := parse(string(text))
	if len(answers) == 0 {
		return false, fmt.Errorf("%s has no answers", theirs)
	}
	l, err := kprobelab.Open(dump, &kprobelab.Options{Budget: bpf.Budget})
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	fresh, err := l.Machine.Snapshot()
	if err != nil {
		return false, err
	}
	sums, annotated := &sums{}, &sums{}
	for _, file := range objects {
		name := filepath.Base(file)
		object, err := os.ReadFile(file)
		if err != nil {
			return false, err
		}
		list, err := ask(l, fresh, object, &bpf.Options{Loader: program})
		if err != nil {
			fmt.Fprintf(w, "%s: %v\n", name, err)
		}
		sums.compare(w, name, answers[name], list)
		ask := func(o *bpf.Options) ([]answer.Program, error) {
			o.Loader = program
			return ask(l, fresh, object, o)
		}
		if err := annotated.annotations(w, name, object, answers[name], list, ask); err != nil {
			fmt.Fprintf(w, "%s: %v\n", name, err)
		}
	}
	sums.print(w, "beside veristat")
	annotated.print(w, "beside the objects' own annotations")
	return sums.differ+annotated.differ > 0, nil
}

// ask asks a kernel about an object, and puts the kernel back.
func ask(l *kprobelab.Lab, fresh *machine.Snapshot, object []byte, o *bpf.Options) ([]answer.Program, error) {
	k, err := l.Booted()
	if err != nil {
		return nil, err
	}
	answers, err := bpf.Load(k, object, o)
	err = errors.Join(err, l.Renew(fresh, nil))
	if answers == nil {
		return nil, err
	}
	return answers.Programs, err
}
