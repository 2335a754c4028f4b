package run_test

import (
	"fmt"
	"os"
	"strings"
	"time"

	"kprobelab"
	"kprobelab/run"
	"kprobelab/script"
	"kprobelab/x86"
)

// A plan of its own gets what happens as values.
func ExampleKernel_Run() {
	lab, err := kprobelab.Open("", nil)
	if err != nil {
		panic(err)
	}
	defer lab.Close()

	probe, err := run.Kprobe("gcd")
	if err != nil {
		panic(err)
	}
	plan := run.Kernel{
		Probes: []run.KernelProbe{probe},
		Jobs:   []run.Job{{Text: "gcd(12, 18)"}},
	}
	err = plan.Run(lab.Image, run.Func(func(e run.Event) error {
		switch e := e.(type) {
		case run.Hit:
			if !e.Post {
				fmt.Printf("hit of %s, di %d, si %d\n", e.Probe.Text, e.Regs.DI, e.Regs.SI)
			}
		case run.Called:
			fmt.Println(e.Call, "=", e.Value)
		case run.Counters:
			fmt.Println("hits:", e.Probes[0].Hits)
		}
		return nil
	}))
	if err != nil {
		panic(err)
	}
	// Output:
	// hit of gcd, di 12, si 18
	// gcd(12, 18) = 6
	// hits: 1
}

// The same as the command prints it with --json.
func ExampleJSON() {
	out := run.NewJSON(os.Stdout)
	at := x86.Addr(0x1000)
	_ = out.Put(run.Planted{Probe: run.Probe{Kind: "kprobe", Text: "gcd", Addr: &at}})
	_ = out.Put(run.Logged{From: "kernel", Line: "a line of its log"})
	if err := out.Flush(); err != nil {
		panic(err)
	}
	// Output:
	// {"event":"planted","kind":"kprobe","probe":"gcd","addr":"0x1000"}
	// {"event":"log","kind":"kernel","detail":"a line of its log"}
}

// A script of bpftrace, and a call that hits its probe.
func ExampleScript_Run() {
	img, err := kprobelab.OpenImage("", nil)
	if err != nil {
		panic(err)
	}
	s, err := script.Bpftrace(img, `kretprobe:gcd { printf("gcd is %d\n", retval); }`, nil)
	if err != nil {
		panic(err)
	}
	var out strings.Builder
	p := run.Script{
		Calls: []string{"gcd(12, 18)"}, Wait: time.Minute, Budget: 1_000_000,
		Output: &script.Output{Out: &out, Log: func(line string) { fmt.Println(line) }},
	}
	done, err := p.Run(img, s)
	if err != nil {
		panic(err)
	}
	fmt.Println(strings.TrimSpace(out.String()))
	fmt.Println(done.Counts[0].Probe, "was hit", done.Counts[0].Hits, "times")
	// Output:
	// gcd is 6
	// kretprobe:gcd was hit 1 times
}
