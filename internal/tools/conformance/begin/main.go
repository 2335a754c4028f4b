// Package begin draws scripts of bpftrace's whose probes are BEGIN and END, and whose grammar is right while their
// types often are not, runs each with the real bpftrace and with this program, and compares the exit code and every
// byte of the output and of what is said, for BEGIN=N make conformance-bpftrace.
package begin

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"kprobelab/internal/tools/conformance/verb"
)

// Run runs the verb begin.
func Run(args []string) error {
	f := flag.NewFlagSet("begin", flag.ExitOnError)
	n := f.Int("n", 2000, "how many scripts")
	seed := f.Uint64("seed", 1, "decides the scripts")
	tool := f.String("tool", "", "the real bpftrace")
	lab := f.String("kprobelab", "", "this program")
	show := f.Int("show", 20, "print so many differences")
	draw := f.Bool("draw", false, "print the scripts, and run none")
	if err := f.Parse(args); err != nil {
		return err
	}
	list := make([]script, *n)
	for i := range list {
		list[i] = drawScript(rand.New(rand.NewPCG(*seed, uint64(i))))
		if *draw {
			fmt.Printf("--- %d %q\n%s\n", i, list[i].args, list[i].text)
		}
	}
	if *draw {
		return nil
	}
	ok, err := run(list, *tool, *lab, *show)
	return verb.Differ(!ok, err)
}

// result holds both answers to script number i; err says why there are none.
type result struct {
	i            int
	theirs, ours answer
	err          error
}

// askBoth asks the tool and this program. What ended by an interrupt and differs is asked again with more time: on a
// loaded machine the interrupt may have come before the handler.
func askBoth(i int, s script, tool, lab string) (r result) {
	r.i = i
	for _, wait := range []time.Duration{patience, 6 * patience} {
		if r.theirs, r.err = ask(s, wait, tool); r.err != nil {
			return r
		}
		again := r.theirs.interrupted
		if r.ours, r.err = ask(s, 6*patience, lab, "bpftrace"); r.err != nil {
			return r
		}
		r.theirs, r.ours = r.theirs.cleaned(), r.ours.cleaned()
		if !again || r.theirs == r.ours {
			return r
		}
	}
	return r
}

// run has both run all scripts, and says which of them differ.
func run(list []script, tool, lab string, show int) (bool, error) {
	// What waits to be interrupted takes no processor.
	const workers = 6
	results := make(chan result)
	var wg sync.WaitGroup
	work := make(chan int)
	for range workers {
		wg.Go(func() {
			for i := range work {
				results <- askBoth(i, list[i], tool, lab)
			}
		})
	}
	go func() {
		for i := range list {
			work <- i
		}
		close(work)
		wg.Wait()
		close(results)
	}()
	refused, same, silent, bad := 0, 0, 0, 0
	caused := map[string]int{}
	for r := range results {
		i, theirs, ours := r.i, r.theirs, r.ours
		if r.err != nil {
			return false, r.err
		}
		if theirs.silent {
			silent++
			continue
		}
		if theirs.code == 1 {
			refused++
		}
		if theirs == ours {
			same++
			continue
		}
		if cause := causeOf(list[i], theirs, ours); cause != "" {
			caused[cause]++
			continue
		}
		if bad++; bad <= show {
			fmt.Printf("--- %d %q\n%s\n--- the tool: %d\n%s%s--- kprobelab: %d\n%s%s\n", i, list[i].args, list[i].text, theirs.code, theirs.said, theirs.out, ours.code, ours.said, ours.out)
		}
	}
	fmt.Printf("%d scripts, %d of them refused by the tool; %d more had no answer of it\n", len(list)-silent, refused, silent)
	fmt.Printf("the same exit code, output and messages to the byte: %d\n", same)
	for _, c := range causes {
		if n := caused[c.cause]; n > 0 {
			fmt.Printf("  %d: %s\n", n, c.cause)
		}
	}
	fmt.Printf("different without a known cause: %d\n", bad)
	return bad == 0 && same > 0, nil
}
