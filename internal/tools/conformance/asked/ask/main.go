//go:build cgo && linux && amd64

// Command ask boots kernels, asks them and the project the same of the tracing
// files, and prints where the answers differ; scripts/conformance-tracing.sh
// gives it what it needs. It ends with 1 when something differs, and with 77
// when a kernel did not run.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"kprobelab"
	"kprobelab/internal/qemu"
	"kprobelab/internal/qemu/frame"
	"kprobelab/internal/tools/conformance/asked"
	"kprobelab/kimage"
	"kprobelab/tracing"
)

// options are the command line.
type options struct {
	qemu, init string
	n          int
	seed       uint64
	limit      time.Duration
}

// errNotRun is a guest that did not come to its end, which says nothing about
// what the kernel answers.
var errNotRun = errors.New("the guest did not run to its end")

// most is how many differences are printed.
const most = 20

func main() {
	var o options
	flag.StringVar(&o.qemu, "qemu", "qemu-system-x86_64", "the program that starts QEMU")
	flag.StringVar(&o.init, "init", "", "the init program")
	flag.IntVar(&o.n, "n", 1000, "how many questions of each sort to ask each kernel")
	flag.Uint64Var(&o.seed, "seed", 1, "chooses the questions")
	flag.DurationVar(&o.limit, "limit", 10*time.Minute, "how long a kernel may run")
	flag.Parse()
	code := 0
	for _, kernel := range flag.Args() {
		differ, err := o.one(kernel)
		switch {
		case err != nil:
			fmt.Printf("%s: %v\n", kernel, err)
			if code == 0 {
				code = 77
			}
		case differ > 0:
			code = 1
		}
	}
	os.Exit(code)
}

// one asks one kernel, and counts the differences.
func (o *options) one(kernel string) (int, error) {
	ops := asked.Generate(o.seed, o.n)
	theirs, err := o.boot(kernel, ops)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errNotRun, err)
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

func (o *options) boot(kernel string, ops []asked.Op) (answers []asked.Answer, err error) {
	init, err := os.ReadFile(o.init)
	if err != nil {
		return nil, err
	}
	list, err := json.Marshal(ops)
	if err != nil {
		return nil, err
	}
	m := &qemu.Machine{
		QEMU: o.qemu, Kernel: kernel, CPU: kimage.DefaultCPU, CPUs: 2, Init: init, Limit: o.limit,
		Files: map[string][]byte{asked.OpsFile: list},
	}
	err = m.Boot(func(r *qemu.Running) error {
		name, data, err := r.Frame()
		switch {
		case err != nil:
			return err
		case name == frame.Failed:
			return errors.New("init: " + string(data))
		}
		return json.Unmarshal(data, &answers)
	})
	if err == nil && len(answers) != len(ops) {
		err = fmt.Errorf("%d answers to %d questions", len(answers), len(ops))
	}
	return answers, err
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
