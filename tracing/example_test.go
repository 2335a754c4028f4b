package tracing_test

import (
	"fmt"
	"io/fs"
	"strings"

	"kprobelab"
	"kprobelab/kimage"
	"kprobelab/tracing"
)

// Define an event, call the probed function, read the trace.
func Example() {
	img, err := kimage.FromBytes("guest kernel", kprobelab.GuestELF(), nil)
	if err != nil {
		panic(err)
	}
	l, err := kprobelab.New(img, nil)
	if err != nil {
		panic(err)
	}
	defer l.Close()
	t, err := tracing.New(l.Kprobes, l.Machine, &tracing.Options{Source: img})
	if err != nil {
		panic(err)
	}
	defer t.Close()

	fmt.Println(t.Write("kprobe_events", "p:in gcd $foo", true))
	_ = t.Write("kprobe_events", "p:in gcd a=$arg1:u64 b=$arg2:u64 by=$comm", true)
	_ = t.Write("events/enable", "1", true)
	_, _ = l.Machine.Call("gcd", 12, 18)
	trace, _ := fs.ReadFile(t, "trace")
	lines := strings.Split(strings.TrimSpace(string(trace)), "\n")
	_, values, _ := strings.Cut(lines[len(lines)-1], ") ")
	fmt.Println(values)
	// Output:
	// write kprobe_events: p:in gcd $foo (column 9): Invalid $-variable specified: invalid argument
	// a=12 b=18 by="init"
}
