package script_test

import (
	"errors"
	"fmt"
	"os"
	"time"

	"kprobelab"
	"kprobelab/script"
)

// A script of bpftrace counts the calls of a function of the guest kernel.
func ExampleBpftrace() {
	lab, err := kprobelab.Open("", nil)
	if err != nil {
		panic(err)
	}
	defer lab.Close()

	s, err := script.Bpftrace(lab.Image, `kprobe:gcd { @[arg0] = count(); }`, nil)
	if err != nil {
		panic(err)
	}
	run, err := s.Start(lab, &script.Output{Out: os.Stdout})
	if err != nil {
		panic(err)
	}
	for _, n := range []int{12, 5, 12} {
		if _, err := lab.Call("gcd", n, 18); err != nil {
			panic(err)
		}
	}
	if err := run.Close(); err != nil {
		panic(err)
	}
	c := run.Counts()[0]
	fmt.Printf("%s: %d hits by %s\n", c.Probe, c.Hits, c.How)
	// Output:
	// @[5]: 1
	// @[12]: 2
	// kprobe:gcd: 3 hits by ftrace
}

// A script of SystemTap has a timer, which ticks in virtual time.
func ExampleStap() {
	lab, err := kprobelab.Open("", nil)
	if err != nil {
		panic(err)
	}
	defer lab.Close()

	s, err := script.Stap(lab.Image, `probe kprobe.function("gcd") { printf("%s(%d)\n", ppfunc(), int_arg(1)) }
		probe timer.s(1) { println("tick") exit() }`, nil)
	if err != nil {
		panic(err)
	}
	run, err := s.Start(lab, &script.Output{Out: os.Stdout})
	if err != nil {
		panic(err)
	}
	if _, err := lab.Call("gcd", 12, 18); err != nil {
		panic(err)
	}
	run.Wait(time.Minute)
	fmt.Println(run.Ended(), run.Close())
	// Output:
	// gcd(12)
	// tick
	// true <nil>
}

// The error of a script that is not accepted contains the text that the tool prints.
func ExampleRefusedError() {
	img, err := kprobelab.OpenImage("", nil)
	if err != nil {
		panic(err)
	}
	_, err = script.Bpftrace(img, `BEGIN { @x = nothing(1); }`, nil)
	var refused *script.RefusedError
	if errors.As(err, &refused) {
		fmt.Print(refused.Text)
	}
	// Output:
	// stdin:1:14-21: ERROR: Unknown function: nothing
	// BEGIN { @x = nothing(1); }
	//              ~~~~~~~
}
