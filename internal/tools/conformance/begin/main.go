// Command begin draws scripts of bpftrace's whose probes are BEGIN and END, and whose grammar is right while their
// types often are not, runs each with the real bpftrace and with this program, and compares the exit code and every
// byte of the output and of what is said, for BEGIN=N make conformance-bpftrace.
package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
)

func main() {
	n := flag.Int("n", 2000, "how many scripts")
	seed := flag.Uint64("seed", 1, "decides the scripts")
	tool := flag.String("tool", "", "the real bpftrace")
	lab := flag.String("kprobelab", "", "this program")
	show := flag.Int("show", 20, "print so many differences")
	draw := flag.Bool("draw", false, "print the scripts, and run none")
	flag.Parse()
	list := make([]script, *n)
	for i := range list {
		list[i] = drawScript(rand.New(rand.NewPCG(*seed, uint64(i))))
		if *draw {
			fmt.Printf("--- %d %q\n%s\n", i, list[i].args, list[i].text)
		}
	}
	if *draw {
		return
	}
	ok, err := run(list, *tool, *lab, *show)
	if err != nil {
		fmt.Fprintln(os.Stderr, "begin:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

// run has both run all scripts, and says which of them differ.
func run(list []script, tool, lab string, show int) (bool, error) {
	answers := make([][2]answer, len(list))
	errs := make([]error, len(list))
	work := make(chan int)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for i := range work {
				if answers[i][0], errs[i] = ask(list[i], tool); errs[i] == nil {
					answers[i][1], errs[i] = ask(list[i], lab, "bpftrace")
				}
			}
		})
	}
	for i := range list {
		work <- i
	}
	close(work)
	wg.Wait()
	refused, same, silent, bad := 0, 0, 0, 0
	causes := map[string]int{}
	for i, a := range answers {
		theirs, ours := a[0].cleaned(), a[1].cleaned()
		cause := ""
		switch {
		case errs[i] != nil:
			return false, errs[i]
		case theirs.silent:
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
		if cause = causeOf(list[i], theirs, ours); cause != "" {
			causes[cause]++
			continue
		}
		if bad++; bad <= show {
			fmt.Printf("--- %d %q\n%s\n--- the tool: %d\n%s%s--- kprobelab: %d\n%s%s\n", i, list[i].args, list[i].text, theirs.code, theirs.said, theirs.out, ours.code, ours.said, ours.out)
		}
	}
	fmt.Printf("%d scripts, %d of them refused by the tool; %d more had no answer of it in %s\n", len(list)-silent, refused, silent, patience)
	fmt.Printf("the same exit code, output and messages to the byte: %d\n", same)
	for c, n := range causes {
		fmt.Printf("  %d: %s\n", n, c)
	}
	fmt.Printf("different without a known cause: %d\n", bad)
	return bad == 0 && same > 0, nil
}
