package kprobelab_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"kprobelab"
	"kprobelab/errno"
	"kprobelab/interp"
	"kprobelab/kprobes"
	"kprobelab/kprobes/probepoint"
	"kprobelab/x86"
)

// Probe a function and its return, and call it.
func Example() {
	lab, err := kprobelab.Open("", nil) // the guest kernel; a path opens an image
	if err != nil {
		panic(err)
	}
	defer lab.Close()

	_, err = lab.Kprobe("gcd", func(_ *kprobes.Kprobe, regs *x86.PtRegs) int {
		fmt.Printf("gcd(%d, %d)\n", regs.DI, regs.SI)
		return 0
	}, nil)
	if err != nil {
		panic(err)
	}
	_, err = lab.Kretprobe("gcd", nil, func(_ *kprobes.Instance, regs *x86.PtRegs) int {
		fmt.Printf("gcd returned %d\n", regs.AX)
		return 0
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(lab.Call("gcd", 12, 18))
	// Output:
	// gcd(12, 18)
	// gcd returned 6
	// 6 <nil>
}

// A refusal has the kernel's errno, and the rule that refused.
func ExampleLab_Kprobe() {
	lab, err := kprobelab.Open("", nil)
	if err != nil {
		panic(err)
	}
	defer lab.Close()

	_, err = lab.Kprobe("gcd+6", nil, nil)
	fmt.Println(err)
	fmt.Println(errors.Is(err, errno.EILSEQ))
	var refusal *probepoint.Refusal
	fmt.Println(errors.As(err, &refusal))
	// Output:
	// probe gcd+0x6: not at an instruction boundary (EILSEQ)
	// true
	// true
}

// With Optimize, a probe that may become a jump does, once Settle has let the
// optimizer run.
func ExampleLab_Settle() {
	lab, err := kprobelab.Open("", &kprobelab.Options{Optimize: true})
	if err != nil {
		panic(err)
	}
	defer lab.Close()

	if _, err := lab.Kprobe("gcd+5", nil, nil); err != nil {
		panic(err)
	}
	if err := lab.Settle(); err != nil {
		panic(err)
	}
	fmt.Print(lab.Kprobes.List())
	// Output:
	// ffffffff81000185  k  gcd+0x5    [OPTIMIZED]
}

// Kprobe events, in the language of the tracing files.
func ExampleLab_Tracing() {
	lab, err := kprobelab.Open("", nil)
	if err != nil {
		panic(err)
	}
	defer lab.Close()
	tracing, err := lab.Tracing(nil)
	if err != nil {
		panic(err)
	}
	defer tracing.Close()

	_ = tracing.Write("kprobe_events", "p:in gcd a=$arg1:u64 b=$arg2:u64", true)
	_ = tracing.Write("events/enable", "1", true)
	_, _ = lab.Call("gcd", 12, 18)
	trace, err := fs.ReadFile(tracing, "trace")
	if err != nil {
		panic(err)
	}
	lines := strings.Split(strings.TrimSpace(string(trace)), "\n")
	fmt.Println(strings.TrimSpace(lines[len(lines)-1]))
	// Output:
	// init-1       [000] .....     0.000000: in: (gcd+0x0/0x70) a=12 b=18
}

// The parts without the front door: a machine, and kprobes on it.
func Example_parts() {
	img, err := kprobelab.OpenImage("", nil)
	if err != nil {
		panic(err)
	}
	m, err := interp.New(img, nil)
	if err != nil {
		panic(err)
	}
	defer m.Close()
	k := kprobes.New(m, img, img.Profile())

	p := &kprobes.Kprobe{SymbolName: "gcd"}
	fmt.Println(k.RegisterKprobe(p))
	fmt.Println(m.Call("gcd", 12, 18))
	k.UnregisterKprobe(p)
	// Output:
	// <nil>
	// 6 <nil>
}
