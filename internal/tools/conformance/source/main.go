// Package source draws probes on a vmlinux at random, has perf probe and this project
// write their definitions, and compares them line by line (make conformance-source).
//
// Where they differ, the same probe is written once more in perf's way (perfprobe.Writer,
// AsPerf): a difference that this removes is explained by what was wrong with the
// variable. What is left is not explained, and ends the program with 1.
package source

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"

	"kprobelab/internal/perfprobe"
	"kprobelab/internal/source"
	"kprobelab/internal/tools/conformance/verb"
	"kprobelab/internal/tracing/definition"
)

// Run runs the verb source.
func Run(args []string) error {
	f := flag.NewFlagSet("source", flag.ExitOnError)
	image := f.String("image", "", "the vmlinux with debugging information")
	perf := f.String("perf", "perf", "the command of perf")
	n := f.Int("n", 1000, "how many probes")
	seed := f.Uint64("seed", 1, "what decides them")
	kept := f.String("kept", "", "a file of perf's answers: those it has are not asked for again, the others are added")
	show := f.Int("show", 20, "how many differences of a kind are printed")
	if err := f.Parse(args); err != nil {
		return err
	}
	ok, err := run(*image, strings.Fields(*perf), f.Args(), *n, *seed, *show, *kept)
	return verb.Differ(!ok, err)
}

// readme is the tracing README of the running kernel, which perf reads if it may. To ask perf for
// anyProbe as root makes perf mount tracefs.
const (
	readme   = "/sys/kernel/tracing/README"
	anyProbe = "vfs_read"
)

func run(image string, perf, probes []string, n int, seed uint64, show int, kept string) (bool, error) {
	f, err := source.Open(image)
	if err != nil {
		return false, err
	}
	c := comparison{file: f, image: image, perf: perf, count: map[string]int{}, examples: map[string][]string{}, show: show}
	c.theirs(anyProbe)
	text, _ := os.ReadFile(readme)
	c.features = perfprobe.ReadFeatures(string(text))
	version, err := exec.Command(perf[0], append(perf[1:], "--version")...).Output()
	if err != nil {
		return false, fmt.Errorf("perf: %w", err)
	}
	if c.said, err = readAnswers(kept, strings.TrimSpace(string(version)), f.BuildID(), fmt.Sprintf("%+v", c.features)); err != nil {
		return false, err
	}
	defer c.said.file.Close()
	fmt.Printf("%s, seed %d; of its kernel's README it has %+v\n", strings.TrimSpace(string(version)), seed, c.features)
	for _, probe := range probes {
		if err := c.answer(c.ask(probe)); err != nil {
			return false, err
		}
	}
	if len(probes) > 0 {
		return c.report(len(probes)), nil
	}
	d := drawer{f: f, r: rand.New(rand.NewPCG(seed, 0))}
	var asked []question
	for i := range n {
		if (i+1)%100 == 0 {
			fmt.Fprintf(os.Stderr, "%d of %d\n", i+1, n)
		}
		kind, probe := d.draw()
		c.count["drawn: "+kind]++
		if d.r.IntN(5) == 0 {
			probe = fmt.Sprintf("drawn:q%d=%s", i, probe) // else with the name that perf chooses
		}
		if asked = append(asked, c.ask(probe)); len(asked) > atOnce {
			if err := c.answer(asked[0]); err != nil {
				return false, err
			}
			asked = asked[1:]
		}
	}
	for _, q := range asked {
		if err := c.answer(q); err != nil {
			return false, err
		}
	}
	return c.report(n), nil
}

// atOnce is the number of perf processes that run while earlier answers are compared. One process for several
// probes would not be faster: it reads the debugging information again for each probe.
const atOnce = 2

// question is a probe that perf is asked for.
type question struct {
	probe  string
	theirs <-chan string
}

func (c *comparison) ask(probe string) question {
	answer := make(chan string, 1)
	if said, ok := c.said.of[probe]; ok {
		answer <- said
	} else {
		go func() { answer <- c.theirs(probe) }()
	}
	return question{probe, answer}
}

// answer waits for perf's answer, keeps it, and judges.
func (c *comparison) answer(q question) error {
	theirs := <-q.theirs
	c.judge(q.probe, theirs)
	return c.said.keep(q.probe, theirs)
}

// comparison holds the image and perf, and counts the verdicts so far.
type comparison struct {
	file     *source.File
	features perfprobe.Features
	image    string
	perf     []string
	said     answers
	count    map[string]int
	examples map[string][]string
	show     int
}

// ours returns this project's definitions for a probe, one a line. With asPerf, the writer does as perf does where
// both differ.
func (c *comparison) ours(probe string, asPerf bool) (string, error) {
	p, err := perfprobe.Parse(definition.ReadLine(probe))
	if err != nil {
		return "", err
	}
	w := perfprobe.Writer{File: c.file, Features: c.features, AsPerf: asPerf}
	list, err := w.Define(p)
	if err != nil {
		return "", err
	}
	s := ""
	for _, d := range list {
		s += d.Line().Text + "\n"
	}
	return s, nil
}

const died = "perf died\n"

// theirs returns perf's definitions for a probe: "" if perf refuses the probe, died if a signal ended perf.
func (c *comparison) theirs(probe string) string {
	args := append(slices.Clone(c.perf[1:]), "probe", "-q", "-k", c.image, "-D", probe)
	out, err := exec.Command(c.perf[0], args...).Output()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() < 0:
		return died
	case err != nil:
		return ""
	}
	return string(out)
}

// judge says how the two compare.
func (c *comparison) judge(probe, theirs string) {
	ours, err := c.ours(probe, false)
	switch {
	case theirs == died:
		c.note("explained: perf ends with a signal", probe, ours+text(err))
		return
	case err == nil && ours == theirs:
		c.note("the same definitions", probe, "")
		return
	case err != nil && theirs == "":
		c.note("both refuse", probe, err.Error())
		return
	}
	switch asPerf, perfErr := c.ours(probe, true); {
	case perfErr == nil && asPerf == theirs, perfErr != nil && theirs == "":
		c.note("explained: "+c.reason(ours, theirs, err, perfErr), probe, differing(theirs, ours)+text(err))
	case perfErr == nil && fits(theirs, asPerf):
		c.note("explained: perf writes what is in its memory for a structure that is always the same bytes", probe, differing(theirs, asPerf))
	case perfErr == nil && c.samePlaces(theirs, asPerf):
		c.note("explained: perf takes another of the names that an address has", probe, differing(theirs, asPerf))
	default:
		detail := differing(theirs, asPerf) + text(perfErr)
		fmt.Fprintf(os.Stderr, "not explained: %s\n%s", probe, indent(detail))
		c.note("NOT EXPLAINED", probe, detail)
	}
}

// fits reports whether the definitions are perf's, except for the numbers that perf writes without having read them.
func fits(theirs, asPerf string) bool {
	if !strings.Contains(asPerf, `\`+perfprobe.Unread) {
		return false
	}
	pattern := strings.ReplaceAll(regexp.QuoteMeta(asPerf), regexp.QuoteMeta(`\`+perfprobe.Unread), `\\-?[0-9]+`)
	ok, err := regexp.MatchString("^"+pattern+"$", theirs)
	return err == nil && ok
}

// samePlaces reports definitions that differ only in the names by which they say the same addresses.
func (c *comparison) samePlaces(a, b string) bool {
	left, right := strings.Split(a, "\n"), strings.Split(b, "\n")
	return slices.EqualFunc(left, right, func(a, b string) bool {
		if a == b {
			return true
		}
		x, y := strings.SplitN(a, " ", 3), strings.SplitN(b, " ", 3)
		return len(x) > 1 && len(x) == len(y) && x[0] == y[0] && slices.Equal(x[2:], y[2:]) && c.sameAddress(x[1], y[1])
	})
}

// sameAddress reports whether two texts SYMBOL+OFFSET are one address.
func (c *comparison) sameAddress(a, b string) bool {
	a, offset, _ := strings.Cut(a, "+")
	b, other, _ := strings.Cut(b, "+")
	return offset == other && slices.ContainsFunc(c.file.Symbols(a), func(x source.Symbol) bool {
		return slices.ContainsFunc(c.file.Symbols(b), func(y source.Symbol) bool { return x.Start == y.Start })
	})
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error() + "\n"
}

// differing are the first lines that only one of the two has.
func differing(theirs, ours string) string {
	a, b := strings.Split(theirs, "\n"), strings.Split(ours, "\n")
	out := ""
	for _, side := range []struct {
		name      string
		has, lack []string
	}{{"perf: ", a, b}, {"ours: ", b, a}} {
		n := 0
		for _, line := range side.has {
			if n < 3 && !slices.Contains(side.lack, line) {
				out += side.name + line + "\n"
				n++
			}
		}
	}
	return out
}

// reason is the kind of an explained difference.
func (c *comparison) reason(ours, theirs string, err, perfErr error) string {
	var misuse *source.Misuse
	switch {
	case errors.As(err, &misuse) && misuse.Incomplete:
		return "perf takes -1 for the size of a structure that the unit only declares"
	case errors.Is(perfErr, perfprobe.ErrNothingThere), errors.Is(perfErr, perfprobe.ErrNotByItsName):
		return perfErr.Error()
	case err == nil && strings.Count(ours, "\n") == strings.Count(theirs, "\n") && firstWords(ours) != firstWords(theirs):
		return "perf names a function of .init.text as the source does, not as the symbol table"
	case err == nil && strings.ReplaceAll(ours, perfprobe.Absent, perfprobe.PerfAbsent) == theirs:
		return "perf writes a number for what is missing that no kernel takes"
	case err == nil && repeats(theirs) && !repeats(ours):
		return "perf writes two arguments of one name, which no kernel takes"
	case err != nil:
		return "perf takes the first operation of a location for all of it; refused here"
	case theirs == "":
		return "perf refuses what can be read (bitfields, values, single pieces)"
	case strings.Count(theirs, `=\-`) > strings.Count(ours, `=\-`):
		return "perf takes the highest bit of an unsigned constant for its sign"
	case strings.Contains(theirs, "@") && symbols(ours) != symbols(theirs):
		return "perf names a static variable by a name that the symbol table does not have"
	}
	return "perf takes the first operation of a location for all of it; another fetch here"
}

// firstWords are the places of definitions.
func firstWords(s string) (out string) {
	for _, line := range strings.Split(s, "\n") {
		if w := strings.Fields(line); len(w) > 1 {
			out += w[1] + " "
		}
	}
	return out
}

// repeats reports a definition with two arguments of one name.
func repeats(s string) bool {
	for _, line := range strings.Split(s, "\n") {
		seen := map[string]bool{}
		for _, w := range strings.Fields(line)[min(2, len(strings.Fields(line))):] {
			name, _, _ := strings.Cut(w, "=")
			if seen[name] {
				return true
			}
			seen[name] = true
		}
	}
	return false
}

// symbols are the words of definitions that name a symbol's memory.
func symbols(s string) (out string) {
	for _, w := range strings.Fields(s) {
		if i := strings.IndexByte(w, '@'); i >= 0 {
			out += w[i:] + " "
		}
	}
	return out
}

func (c *comparison) note(kind, probe, detail string) {
	c.count[kind]++
	if len(c.examples[kind]) < c.show {
		c.examples[kind] = append(c.examples[kind], "  "+probe+"\n"+indent(detail))
	}
}

func indent(s string) string {
	if s == "" {
		return ""
	}
	return "    " + strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n    ") + "\n"
}

func (c *comparison) report(n int) bool {
	var kinds []string
	for k := range c.count {
		kinds = append(kinds, k)
	}
	slices.Sort(kinds)
	for _, k := range kinds {
		if strings.HasPrefix(k, "explained") || strings.HasPrefix(k, "NOT") {
			fmt.Printf("\n%s\n%s", k, strings.Join(c.examples[k], ""))
		}
	}
	fmt.Println()
	for _, k := range kinds {
		fmt.Printf("%6d  %s\n", c.count[k], k)
	}
	fmt.Printf("%6d  probes\n", n)
	return c.count["NOT EXPLAINED"] == 0
}
