//go:build unicorn && cgo && linux && amd64

// Package ask boots kernels, asks them and the project the same of the tracing
// files, and prints where the answers differ; scripts/conformance-tracing.sh
// gives it what it needs. It ends with 1 when something differs, and with 77
// when a kernel did not run.
package ask

import (
	"cmp"
	"flag"
	"fmt"
	"time"

	"kprobelab"
	"kprobelab/internal/tools/conformance/asked"
	"kprobelab/internal/tools/conformance/asked/booted"
	"kprobelab/internal/tools/conformance/verb"
	"kprobelab/kimage"
	"kprobelab/tracing"
)

// options are the command line.
type options struct {
	booted.Asker
	n    int
	seed uint64
}

// most bounds the differences that are printed.
const most = 20

// Run runs the verb ask.
func Run(args []string) error {
	f := flag.NewFlagSet("ask", flag.ExitOnError)
	var o options
	f.StringVar(&o.QEMU, "qemu", "qemu-system-x86_64", "the program that starts QEMU")
	f.StringVar(&o.Init, "init", "", "the init program")
	f.IntVar(&o.n, "n", 1000, "how many questions of each sort to ask each kernel")
	f.Uint64Var(&o.seed, "seed", 1, "chooses the questions")
	f.DurationVar(&o.Limit, "limit", 10*time.Minute, "how long a kernel may run")
	if err := f.Parse(args); err != nil {
		return err
	}
	var failed error
	for _, kernel := range f.Args() {
		differ, err := o.one(kernel)
		switch {
		case err != nil:
			fmt.Printf("%s: %v\n", kernel, err)
			failed = cmp.Or(failed, verb.ErrNotRun)
		case differ > 0:
			failed = verb.ErrDiffer
		}
	}
	return failed
}

// one asks one kernel, and counts the differences.
func (o *options) one(kernel string) (int, error) {
	ops := asked.Generate(o.seed, o.n)
	theirs, err := o.Ask(kernel, ops)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", verb.ErrNotRun, err)
	}
	ours, err := emulated(kernel, ops)
	if err != nil {
		return 0, err
	}
	list := asked.Compare(ops, theirs, ours)
	refused := 0
	for _, a := range theirs {
		if a.Errno != 0 {
			refused++
		}
	}
	fmt.Printf("%s: %d uses of files, %d refused by the kernel, %d answered otherwise here\n", kernel, len(ops), refused, len(list))
	for i := range list[:min(len(list), most)] {
		fmt.Println(&list[i])
	}
	return len(list), nil
}

// emulated asks the project, over the kernel's image.
func emulated(kernel string, ops []asked.Op) ([]asked.Answer, error) {
	img, err := kimage.Open(kernel, nil)
	if err != nil {
		return nil, err
	}
	l, err := kprobelab.New(img, &kprobelab.Options{CPUs: 2})
	if err != nil {
		return nil, err
	}
	defer l.Close()
	t, err := tracing.New(l.Kprobes, l.Machine, &tracing.Options{Source: img})
	if err != nil {
		return nil, err
	}
	defer t.Close()
	return asked.Run(t, ops), nil
}
