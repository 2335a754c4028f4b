package explore

import (
	"context"
	"embed"
	"fmt"
	"io"
	"strings"

	"kprobelab/shard"
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

// Checks receives the verdicts of the library.
type Checks struct {
	// Out gets a line for each scenario. If Shard is not nil, it gets them instead, as the results of a shard.
	Out   io.Writer
	Shard *shard.Writer
	// Begin is called before each scenario, End after.
	Begin func(name string)
	End   func()
}

// checked is the answer for a scenario: a line with its verdict and what it should be, and whether these are the same.
type checked struct {
	Line string `json:"line"`
	Good bool   `json:"good"`
}

// CheckLibrary explores scenarios of the program's own: of each it tells the verdict, and what it should be. It returns whether
// all have the verdict that they expect; an interrupt is no such end. A shard has no verdict of its own, unless it is interrupted.
func CheckLibrary(ctx context.Context, to *Checks, names []string, o Options) (good bool, err error) {
	good = true
	for i, name := range names {
		c, err := to.check(ctx, name, o)
		if err != nil {
			return false, err
		}
		if ctx.Err() != nil {
			c.Line += fmt.Sprintf("\ninterrupted at scenario %d of %d", i+1, len(names))
			c.Good = false
		}
		if to.Shard != nil && ctx.Err() == nil {
			if err := to.Shard.Add(c); err != nil {
				return false, err
			}
			continue
		}
		fmt.Fprintln(to.Out, c.Line)
		if good = good && c.Good; ctx.Err() != nil {
			return false, nil
		}
	}
	if to.Shard != nil {
		err = to.Shard.End()
	}
	return good, err
}

func (to *Checks) check(ctx context.Context, name string, o Options) (c checked, err error) {
	p, err := FromLibrary(name)
	if err != nil {
		return c, err
	}
	to.Begin(name)
	res, err := p.Explore(ctx, o)
	to.End()
	if err != nil {
		return c, err
	}
	want := p.Scenario().Expected(o.Profile.Name)
	c.Good = want == res.Verdict
	c.Line = fmt.Sprintf("%-30s %-14s %d runs, %d states", name, res.Verdict, res.Counts.Runs, res.Counts.States)
	if !c.Good {
		c.Line += fmt.Sprintf("; expected: %s; %s", want, res.Reason)
	}
	return c, nil
}

// Merge prints what the shards of the library have found, and returns whether all is as expected.
func Merge(w io.Writer, r *shard.Results) (good bool, err error) {
	good = true
	err = shard.Each(r, func(c checked) error {
		good = good && c.Good
		_, err := fmt.Fprintln(w, c.Line)
		return err
	})
	return good, err
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
