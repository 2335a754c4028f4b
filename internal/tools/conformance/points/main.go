// Package points draws probe points on a vmlinux at random, has stap and this project resolve them,
// and compares where they are (-p2) and which variables they have (-L) (make conformance-stap, with the
// kernel's debugging information).
package points

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"kprobelab/internal/source"
	"kprobelab/internal/tools/conformance/verb"
)

// Run runs the verb points.
func Run(args []string) error {
	f := flag.NewFlagSet("points", flag.ExitOnError)
	c := comparison{found: map[string]map[string]int{}, variables: map[string]int{}}
	f.StringVar(&c.image, "image", "", "the vmlinux with debugging information")
	f.StringVar(&c.program, "program", "", "the program that is compared")
	f.StringVar(&c.stap, "stap", "stap", "the command of stap")
	f.StringVar(&c.tree, "tree", "", "a folder that stap takes for the kernel's, with its vmlinux")
	n := f.Int("n", 300, "how many points")
	seed := f.Uint64("seed", 1, "what decides them")
	show := f.Int("show", 10, "how many differences are printed")
	if err := f.Parse(args); err != nil {
		return err
	}
	ok, err := c.run(f.Args(), *n, *seed, *show)
	return verb.Differ(!ok, err)
}

// drawer draws points.
type drawer struct {
	f         *source.File
	r         *rand.Rand
	functions []source.Symbol
}

// kinds are the kinds of points; %s is a function, %p its beginning, %f its file, %l a line of it, %m one
// that follows, %d a line from its declaration on.
var kinds = []string{
	`kernel.statement("%s@%f:*")`, `kernel.statement("%s@%f:%l")`, `kernel.statement("%s@%f:%l-%m")`, `kernel.statement("%s@%f:%l,%m")`,
	`kernel.statement("%s@%f+%d")`, `kernel.statement("*@%f:%l-%m")`, `kernel.statement("%p*@%f:%l")`, `kernel.statement("%s@%f:%l").nearest`,
	`kernel.function("%s")`, `kernel.function("%s").call`, `kernel.function("%s").return`, `kernel.function("%s").inline`,
	`kernel.function("%s").exported`, `kernel.function("%s@%f")`, `kernel.function("%s@%f").call`, `kernel.statement("%s")`,
	`kernel.function("%p*").call`, `kernel.function("%p*")`, `kernel.function("%p*").inline`,
}

func (d *drawer) draw() (kind, point string) {
	for {
		kind = kinds[d.r.IntN(len(kinds))]
		s := d.functions[d.r.IntN(len(d.functions))]
		at, err := d.f.At(s.Start)
		if err != nil || at.DeclaredIn() == "" {
			continue
		}
		name := at.Outer()
		if inlined := d.inlined(s); strings.HasSuffix(kind, ".inline") && inlined != "" {
			name = inlined
		}
		prefix := name[:min(len(name), 6+d.r.IntN(4))]
		file, declared := at.Declaration()
		line := declared + d.r.IntN(25)
		return kind, strings.NewReplacer("%s", name, "%p", prefix, "%f", file, "%l", strconv.Itoa(line), "%m", strconv.Itoa(line+1+d.r.IntN(10)), "%d", strconv.Itoa(d.r.IntN(25))).Replace(kind)
	}
}

// inlined is a function that is inlined somewhere in another, "" where none was met.
func (d *drawer) inlined(s source.Symbol) string {
	for range 10 {
		at, err := d.f.At(s.Start + d.r.Uint64N(max(s.End-s.Start, 1)))
		if err == nil && at.Inlined {
			return at.Function
		}
	}
	return ""
}

// comparison holds the files and programs to compare with, and counts the outcomes.
type comparison struct {
	image, program, stap, tree string
	found                      map[string]map[string]int // by kind, then by outcome
	variables                  map[string]int            // by outcome
	differences                []string
}

// batch is the number of points that one run of stap gets.
const batch = 20

// run compares the given points, or n drawn points if none are given.
func (c *comparison) run(points []string, n int, seed uint64, show int) (bool, error) {
	for _, point := range points {
		if err := c.compare([]drawn{{"given", point}}); err != nil {
			return false, err
		}
	}
	if len(points) > 0 {
		return c.report(len(points), show), nil
	}
	f, err := source.Open(c.image)
	if err != nil {
		return false, err
	}
	d := drawer{f: f, r: rand.New(rand.NewPCG(seed, 0))}
	end := ^uint64(0)
	if s := f.Symbols("_etext"); len(s) > 0 {
		end = s[0].Start
	}
	for _, s := range f.Symbols("*") {
		if s.Start < end && s.End > s.Start && !strings.Contains(s.Name, ".") {
			d.functions = append(d.functions, s)
		}
	}
	ctx, done := signal.NotifyContext(context.Background(), os.Interrupt)
	defer done()
	for from := 0; from < n; from += batch {
		if ctx.Err() != nil {
			fmt.Printf("interrupted after %d of %d\n", from, n)
			n = from
			break
		}
		var list []drawn
		for range min(batch, n-from) {
			kind, point := d.draw()
			list = append(list, drawn{kind, point})
		}
		var together, alone []drawn
		for _, one := range list {
			if d.mayFail(one.point) {
				alone = append(alone, one)
			} else {
				together = append(together, one)
			}
		}
		if err := c.compare(together); errors.Is(err, errNoCode) {
			alone = append(alone, together...)
		} else if err != nil {
			return false, err
		}
		for _, one := range alone {
			if err := c.compare([]drawn{one}); err != nil {
				return false, err
			}
		}
		fmt.Fprintf(os.Stderr, "%d of %d\n", from+len(list), n)
	}
	return c.report(n, show), nil
}

// oneLinePoint is a point of one line: where that has no code, stap ends with an error, although the point need not
// be there.
var oneLinePoint = regexp.MustCompile(`statement\("([^@"]*)@([^":+]*)([:+])(\d+)"\)(\.nearest)?$`)

const noCode = "no line records"

// errNoCode is stap's error of one of several points.
var errNoCode = errors.New(noCode)

// mayFail reports a point of a line that has no code here.
func (d *drawer) mayFail(point string) bool {
	m := oneLinePoint.FindStringSubmatch(point)
	if m == nil {
		return false
	}
	line, _ := strconv.Atoi(m[4])
	w := source.Statements{Function: m[1], File: m[2], Lines: [][2]int{{line, line}}, Single: true, Relative: m[3] == "+", Nearest: m[5] != "", Most: source.MaxPlaces}
	found := false
	err := d.f.Statements(w, func(*source.Place) error { found = true; return nil })
	return err != nil || !found
}

type drawn struct{ kind, point string }

// place is a resolved probe: where it is, and how it is called.
type place struct{ pc, name string }

func (c *comparison) compare(list []drawn) error {
	var script strings.Builder
	script.WriteString("probe begin { println(0) }\n") // a script has to have a probe
	for i, d := range list {
		fmt.Fprintf(&script, "probe %s ? { println(%d) }\n", d.point, i)
	}
	type answer struct {
		places map[int][]place
		err    error
	}
	here := make(chan answer, 1)
	go func() {
		ours, err := c.ours(list)
		here <- answer{ours, err}
	}()
	theirs, said, err := places(len(list), c.asked(script.String()))
	if err != nil {
		return err
	}
	now := <-here
	ours := now.places
	if now.err != nil {
		return now.err
	}
	names := map[string]bool{}
	for _, m := range leftOut.FindAllStringSubmatch(said, -1) {
		names[m[1]] = true
	}
	if err := c.compareVariables(list, theirs, ours); err != nil {
		return err
	}
	for i, d := range list {
		what := c.outcome(theirs[i], ours[i], names)
		if what == noneThere {
			if what, err = c.respelled(d, what); err != nil {
				return err
			}
		}
		if c.found[d.kind] == nil {
			c.found[d.kind] = map[string]int{}
		}
		if c.found[d.kind][what]++; !settled[what] {
			c.differs("%s: %s\n  stap alone: %s\n  here alone: %s\n", d.point, what, without(theirs[i], ours[i]), without(ours[i], theirs[i]))
		}
	}
	return nil
}

// ours asks this program about each point alone: its -p2 prints no bodies, by which stap's places are told apart.
func (c *comparison) ours(list []drawn) (map[int][]place, error) {
	of := map[int][]place{}
	for i, d := range list {
		one, _, err := places(0, exec.Command(c.program, "stap", "-r", c.image, "-p2", "-e", "probe begin { println(0) }\nprobe "+d.point+" ? { }"))
		if err != nil {
			return nil, err
		}
		of[i] = one[0]
	}
	return of, nil
}

// respelled is the outcome of a point of which stap knows no place, without the folder of its file.
func (c *comparison) respelled(d drawn, what string) (string, error) {
	point := folder.ReplaceAllString(d.point, "@*/")
	if point == d.point {
		return what, nil
	}
	ours, err := c.ours([]drawn{{d.kind, point}})
	if err != nil {
		return "", err
	}
	theirs, _, err := places(1, c.asked("probe begin { println(0) }\nprobe "+point+" ? { println(0) }\n"))
	if len(theirs[0]) > 0 && slices.Equal(theirs[0], ours[0]) {
		what = written
	}
	return what, err
}

var folder = regexp.MustCompile(`@[^":+]*/`)

// asked is stap about a script.
func (c *comparison) asked(script string) *exec.Cmd {
	return exec.Command("sh", "-c", c.stap+` "$@"`, "stap", "-r", c.tree, "-a", "x86_64", "-p2", "-u", "-v", "-e", script)
}

// differs notes a difference without a cause, and tells of it at once.
func (c *comparison) differs(format string, a ...any) {
	text := fmt.Sprintf(format, a...)
	fmt.Fprint(os.Stderr, text)
	c.differences = append(c.differences, text)
}

const same, neither, noneThere = "the same", "nothing in either", "none in stap"

// settled holds the outcomes that need no report: the places agree, or they differ for a known cause.
var settled = map[string]bool{same: true, neither: true, listed: true, oneLine: true, written: true}

const (
	listed = "stap leaves out what a list of its own names"
	// oneLine: it takes the functions of a pattern by the order of a hash.
	oneLine = "of several lines with the same address stap takes any"
	// written: here ./ and // in a file's name count for nothing.
	written = "stap wants the file's name as the compiler wrote it"
)

// leftOut matches stap's message about a function that it does not probe without -g: locks,
// interrupts and their like, and functions of some files. Here only the kernel's own list counts.
var leftOut = regexp.MustCompile(`function (\S+) is (?:blocklisted|in blocklisted file)`)

// outcome compares the places of one point.
func (c *comparison) outcome(theirs, ours []place, listedNames map[string]bool) string {
	a, b := addresses(theirs), addresses(ours)
	if what := compared(theirs, ours, a, b); settled[what] {
		return what
	}
	ours = slices.DeleteFunc(slices.Clone(ours), func(p place) bool { return listedNames[functionOf(p)] && !slices.Contains(theirs, p) })
	if len(theirs)+len(ours) == 0 || slices.Equal(theirs, ours) {
		return listed
	}
	if slices.EqualFunc(theirs, ours, func(a, b place) bool {
		return a.pc == b.pc && lineNumber.ReplaceAllString(a.name, "") == lineNumber.ReplaceAllString(b.name, "")
	}) {
		return oneLine
	}
	return compared(theirs, ours, a, b)
}

func compared(theirs, ours []place, a, b []string) string {
	switch {
	case len(a)+len(b) == 0:
		return neither
	case slices.Equal(theirs, ours):
		return same
	case slices.Equal(a, b):
		return "other names"
	case len(b) == 0:
		return "none here"
	case len(a) == 0:
		return noneThere
	}
	return "other places"
}

func addresses(list []place) (out []string) {
	for _, p := range list {
		out = append(out, p.pc)
	}
	return slices.Compact(out)
}

func without(list, other []place) string {
	var out []string
	for _, p := range list {
		if !slices.Contains(other, p) {
			out = append(out, p.name+" "+p.pc)
		}
	}
	return strings.Join(out[:min(len(out), 6)], ", ")
}

// A path's "./" and "//" are as the compiler has them in stap, and left out here.
var inFile = regexp.MustCompile(`@([^":]+):`)

func cleaned(s string) string {
	return inFile.ReplaceAllStringFunc(s, func(file string) string { return "@" + path.Clean(file[1:len(file)-1]) + ":" })
}

// functionOf is the function of a place's name.
func functionOf(p place) string {
	_, name, _ := strings.Cut(p.name, `("`)
	return name[:strings.IndexAny(name+"@", `@"`)]
}

var lineNumber = regexp.MustCompile(`:\d+"`)

var (
	resolved = regexp.MustCompile(`^(kernel\.\S+?)\?? /\* pc=(\S+) \*/`)
	body     = regexp.MustCompile(`println\((\d+)\)`)
)

// places reads the places that -p2 prints. If points is 0, there is one point, and all places are its. Else the
// body of each place has the number of its point.
func places(points int, cmd *exec.Cmd) (of map[int][]place, said string, err error) {
	var messages strings.Builder
	cmd.Stderr = &messages
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return nil, "", err
	}
	switch none := strings.Contains(messages.String(), noCode); {
	case err != nil && none && points > 1:
		return nil, "", errNoCode
	case err != nil && !none:
		return nil, "", fmt.Errorf("%s: %w\n%.2000s", cmd.Args[0], err, messages.String())
	}
	list := map[int][]place{}
	var now place
	for line := range strings.Lines(string(out)) {
		if m := resolved.FindStringSubmatch(line); m != nil {
			now = place{m[2], cleaned(m[1])}
			if points == 0 {
				list[0] = append(list[0], now)
			}
		}
		if m := body.FindStringSubmatch(line); m != nil {
			n := 0
			fmt.Sscan(m[1], &n)
			list[n] = append(list[n], now)
		}
	}
	for n := range list {
		slices.SortFunc(list[n], func(a, b place) int { return cmp.Or(cmp.Compare(a.pc, b.pc), cmp.Compare(a.name, b.name)) })
		list[n] = slices.Compact(list[n])
	}
	return list, messages.String(), nil
}

func (c *comparison) report(n, show int) bool {
	for _, d := range c.differences[:min(len(c.differences), show)] {
		fmt.Print(d)
	}
	equal, explained := 0, 0
	for _, kind := range slices.Sorted(maps.Keys(c.found)) {
		of := c.found[kind]
		equal += of[same] + of[neither]
		explained += of[listed] + of[oneLine] + of[written]
		fmt.Printf("%-36s", kind)
		for _, what := range slices.Sorted(maps.Keys(of)) {
			fmt.Printf("  %s: %d", what, of[what])
		}
		fmt.Println()
	}
	for _, what := range slices.Sorted(maps.Keys(c.variables)) {
		fmt.Printf("-L, %s: %d\n", what, c.variables[what])
	}
	fmt.Printf("%d points: the same places %d (%.1f %%), another for a known cause %d, without one %d\n",
		n, equal, 100*float64(equal)/float64(n), explained, n-equal-explained)
	return n == equal+explained && c.variables[otherVariables] == 0
}
