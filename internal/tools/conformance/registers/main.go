// Package registers has a booted kernel asked for hardware breakpoints at random, and compares
// its answers with the rules' (make conformance-watch).
//
//	registers -seed N -questions N -ask FILE DUMP       writes what testdata/registers.elf is to read
//	registers -seed N -questions N -answers FILE DUMP   compares what it printed
//	registers -seed N -questions N -rounds N DUMP       asks the dump itself, and compares
package registers

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"

	"kprobelab"
	"kprobelab/booted"
	"kprobelab/internal/breakpoints"
	"kprobelab/internal/tools/conformance/verb"
	"kprobelab/watch/registers"
)

// program is the path of testdata/registers.elf in the dump's guest.
const program = "/bin/registers"

// budget is enough for some hundred questions.
const budget = 2_000_000_000

// Run runs the verb registers.
func Run(args []string) error {
	return verb.Differ(run(args))
}

// asked is a dump and its questions.
type asked struct {
	l      *kprobelab.Lab
	booted *booted.Kernel
	kernel registers.Kernel
	list   []breakpoints.Ask
}

func run(args []string) (differ bool, err error) {
	f := flag.NewFlagSet("registers", flag.ExitOnError)
	seed := f.Uint64("seed", 1, "what decides the questions")
	questions := f.Int("questions", 400, "how many questions")
	rounds := f.Int("rounds", 1, "how many times that many, each with the next seed")
	ask := f.String("ask", "", "write the questions to this file")
	answers := f.String("answers", "", "compare with the answers in this file")
	if err := f.Parse(args); err != nil {
		return false, err
	}
	if f.NArg() != 1 {
		return false, fmt.Errorf("one dump is needed")
	}
	l, err := kprobelab.Open(f.Arg(0), &kprobelab.Options{Budget: budget})
	if err != nil {
		return false, err
	}
	defer l.Close()
	k, err := l.Booted()
	if err != nil {
		return false, err
	}
	a := &asked{l: l, booted: k, kernel: l.Registers().Kernel}
	a.kernel.Restricted = true // Debian's
	a.choose(*seed, *questions, true)
	switch {
	case *ask != "":
		return false, os.WriteFile(*ask, breakpoints.Encode(a.list), 0o644)
	case *answers != "":
		text, err := os.ReadFile(*answers)
		if err != nil {
			return false, err
		}
		return a.compare("under QEMU", string(text))
	}
	return a.rounds(*seed, *questions, *rounds)
}

func (a *asked) choose(seed uint64, questions int, hotplug bool) {
	c := breakpoints.ChoiceOf(a.kernel, a.l.Image)
	c.Hotplug = hotplug
	a.list = breakpoints.Random(rand.New(rand.NewPCG(seed, 2)), c, a.kernel, questions)
}

// rounds asks the dump itself, again and again as it was.
func (a *asked) rounds(seed uint64, questions, rounds int) (differ bool, err error) {
	clean, err := a.l.Machine.Snapshot()
	if err != nil {
		return false, err
	}
	for round := range rounds {
		a.choose(seed+uint64(round), questions, false)
		if err := a.l.Machine.Restore(clean); err != nil {
			return differ, err
		}
		var out bytes.Buffer
		if _, err := a.booted.Exec(&booted.Program{Args: []string{program}, Stdin: breakpoints.Encode(a.list), Stdout: &out}); err != nil {
			return differ, err
		}
		d, err := a.compare(fmt.Sprintf("on the dump, seed %d", seed+uint64(round)), out.String())
		if err != nil {
			return differ, err
		}
		differ = differ || d
	}
	return differ, nil
}

// release is the third word of "Linux version 6.1.0 …".
func release(banner string) string {
	words := strings.Fields(banner)
	if len(words) < 3 {
		return "an unknown kernel"
	}
	return words[2]
}

func (a *asked) compare(where, text string) (differ bool, err error) {
	got, err := breakpoints.Read(text)
	if err != nil {
		return true, err
	}
	diffs := breakpoints.Differences(a.kernel, a.list, got)
	refused := 0
	for _, v := range got {
		if v < 0 {
			refused++
		}
	}
	fmt.Printf("%s: %s: %d questions, %d refused, %d answers differ\n", release(a.l.Image.Banner()), where, len(a.list), refused, len(diffs))
	for _, d := range diffs {
		fmt.Println(" ", d)
	}
	return len(diffs) > 0, nil
}
