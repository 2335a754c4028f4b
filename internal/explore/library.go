package explore

import (
	"context"
	"embed"
	"fmt"
	"io"
	"strings"
)

//go:embed testdata/scenarios
var library embed.FS

const libraryDir = "testdata/scenarios"

// Library names the scenarios inside the program, in the order of their names.
func Library() []string {
	list, err := library.ReadDir(libraryDir)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	var names []string
	for _, e := range list {
		names = append(names, strings.TrimSuffix(e.Name(), ".poke"))
	}
	return names
}

// FromLibrary is a scenario of the program's own.
func FromLibrary(name string) (*Program, error) {
	text, err := library.ReadFile(libraryDir + "/" + name + ".poke")
	if err != nil {
		return nil, fmt.Errorf("there is no scenario %q", name)
	}
	return Compile(string(text))
}

// WriteLibrary lists the program's own scenarios, and the bugs that can be brought back.
func WriteLibrary(w io.Writer) error {
	for _, name := range Library() {
		p, err := FromLibrary(name)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%-26s %s\n", name, p.Scenario().About)
	}
	fmt.Fprintln(w)
	for _, b := range Switches() {
		fmt.Fprintf(w, "--bug %-3s %s (%s)\n", b.ID, b.Title, b.Scenario)
	}
	return nil
}

// CheckLibrary explores the program's own scenarios, and writes a line about each: its verdict, and what it should be. begin is
// called before each, end after. It returns whether all have the verdict that they expect; an interrupt is no such end.
func CheckLibrary(ctx context.Context, w io.Writer, o Options, begin func(name string), end func()) (good bool, err error) {
	good = true
	list := Library()
	for i, name := range list {
		p, err := FromLibrary(name)
		if err != nil {
			return false, err
		}
		begin(name)
		res, err := p.Explore(ctx, o)
		end()
		if err != nil {
			return false, err
		}
		fmt.Fprintf(w, "%-30s %-14s %d runs, %d states", name, res.Verdict, res.Counts.Runs, res.Counts.States)
		if want := p.Scenario().Expected(o.Profile.Name); want != res.Verdict {
			fmt.Fprintf(w, "; expected: %s; %s", want, res.Reason)
			good = false
		}
		fmt.Fprintln(w)
		if ctx.Err() != nil {
			fmt.Fprintf(w, "interrupted at scenario %d of %d\n", i+1, len(list))
			return false, nil
		}
	}
	return good, nil
}

// Replay runs a schedule's text again, and returns its end as the text has it, and as it is now.
func Replay(text string) (again *Schedule, said Verdict, err error) {
	s, err := ParseSchedule(text)
	if err != nil {
		return nil, "", err
	}
	again, err = s.Again()
	return again, s.Verdict, err
}
