// Command points draws probe points on a vmlinux at random, has stap -p2 and this project resolve
// them, and compares where they are (make conformance-stap, with the kernel's debugging
// information).
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"kprobelab/internal/source"
)

func main() {
	c := comparison{found: map[string]map[string]int{}}
	flag.StringVar(&c.image, "image", "", "the vmlinux with debugging information")
	flag.StringVar(&c.program, "program", "", "the program that is compared")
	flag.StringVar(&c.stap, "stap", "stap", "the command of stap")
	flag.StringVar(&c.tree, "tree", "", "a folder that stap takes for the kernel's, with its vmlinux")
	n := flag.Int("n", 300, "how many points")
	seed := flag.Uint64("seed", 1, "what decides them")
	show := flag.Int("show", 10, "how many differences are printed")
	flag.Parse()
	ok, err := c.run(*n, *seed, *show)
	if err != nil {
		fmt.Fprintln(os.Stderr, "points:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

// drawer draws points.
type drawer struct {
	f         *source.File
	r         *rand.Rand
	functions []source.Symbol
}

// kinds are the kinds of points; %s is a function, %f its file.
var kinds = []string{
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
		return kind, strings.NewReplacer("%s", name, "%p", prefix, "%f", filepath.ToSlash(at.DeclaredIn())).Replace(kind)
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

// comparison is what came out so far.
type comparison struct {
	image, program, stap, tree string
	found                      map[string]map[string]int // by kind, then by outcome
	differences                []string
}

// batch is how many points one run gets: most of what it costs is its start.
const batch = 40

func (c *comparison) run(n int, seed uint64, show int) (bool, error) {
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
	for from := 0; from < n; from += batch {
		var list []drawn
		for range min(batch, n-from) {
			kind, point := d.draw()
			list = append(list, drawn{kind, point})
		}
		if err := c.compare(list); err != nil {
			return false, err
		}
		fmt.Fprintf(os.Stderr, "%d of %d\n", from+len(list), n)
	}
	return c.report(n, show), nil
}

type drawn struct{ kind, point string }

// place is a resolved probe: where it is, and how it is called.
type place struct{ pc, name string }

func (c *comparison) compare(list []drawn) error {
	var script strings.Builder
	for i, d := range list {
		fmt.Fprintf(&script, "probe %s ? { println(%d) }\n", d.point, i)
	}
	theirs, err := places(list, exec.Command("sh", "-c", c.stap+` "$@"`, "stap", "-r", c.tree, "-a", "x86_64", "-p2", "-u", "-v", "-e", script.String()))
	if err != nil {
		return err
	}
	ours, err := places(list, exec.Command(c.program, "stap", "-r", c.image, "-p2", "-e", script.String()))
	if err != nil {
		return err
	}
	for i, d := range list {
		what := outcome(d.point, theirs[i], ours[i])
		if c.found[d.kind] == nil {
			c.found[d.kind] = map[string]int{}
		}
		if c.found[d.kind][what]++; !settled[what] {
			c.differences = append(c.differences, fmt.Sprintf("%s: %s\n  stap alone: %s\n  here alone: %s\n", d.point, what, without(theirs[i], ours[i]), without(ours[i], theirs[i])))
		}
	}
	return nil
}

const same, neither = "the same", "nothing in either"

// settled are the outcomes that are as they should be, with the causes of those that differ.
var settled = map[string]bool{same: true, neither: true, parts: true, listed: true}

const (
	parts  = "stap takes the parts of a function (.cold, .part.N) for functions"
	listed = "stap leaves out what a list of its own names"
)

// list is of stap's list of functions that it does not probe without -g (locks, interrupts and
// their like), as far as names that were drawn have met it. Here the kernel's own list counts.
var list = regexp.MustCompile(`raw_.*lock|(?:read|write|spin)_(?:un|try)?lock|write_seq(?:un)?lock|spin_is_locked|rwsem_.*lock|mutex_.*lock|"atomic(?:64)?_|"(?:get|put)_bh\W|apic|APIC|softirq|IRQ|_intr|kernel_text|"(?:get_)?current\W|"current_|exception_tables|setup_rt_frame|preempt_count|_pte_|"hash_(?:64|ptr)|"special_mapping_|xen_irq_|"native_set_pte|"test_ti_thread_flag|include/asm/|paravirt\.[ch]|fs/seq_file\.c`)

// outcome compares the places of one point.
func outcome(point string, theirs, ours []place) string {
	a, b := addresses(theirs), addresses(ours)
	if what := compared(theirs, ours, a, b); settled[what] {
		return what
	}
	isPart := func(p place) bool { return strings.Contains(p.name, ".cold") || strings.Contains(p.name, ".part.") }
	cause := parts
	theirs = slices.DeleteFunc(slices.Clone(theirs), isPart)
	if left := slices.DeleteFunc(slices.Clone(ours), func(p place) bool { return list.MatchString(p.name) && !slices.Contains(theirs, p) }); len(left) < len(ours) {
		ours, cause = left, listed
	}
	if len(theirs)+len(ours) == 0 || slices.Equal(theirs, ours) {
		return cause
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
		return "none in stap"
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

var (
	resolved = regexp.MustCompile(`^(kernel\.\S+?)\?? /\* pc=(\S+) \*/ /\* <- (\S+) \*/`)
	body     = regexp.MustCompile(`println\((\d+)\)`)
)

// places reads what -p2 prints: each place with the point as it was written or, of stap, with a
// body that has the point's number.
func places(points []drawn, cmd *exec.Cmd) (map[int][]place, error) {
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%.2000s", cmd.Args[0], err, said.String())
	}
	list := map[int][]place{}
	var now place
	for line := range strings.Lines(string(out)) {
		if m := resolved.FindStringSubmatch(line); m != nil {
			now = place{m[2], m[1]}
			for n, d := range points {
				if m[3] == d.point+"?" {
					list[n] = append(list[n], now)
				}
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
	return list, nil
}

func (c *comparison) report(n, show int) bool {
	for _, d := range c.differences[:min(len(c.differences), show)] {
		fmt.Print(d)
	}
	equal, explained := 0, 0
	for _, kind := range slices.Sorted(maps.Keys(c.found)) {
		of := c.found[kind]
		equal += of[same] + of[neither]
		explained += of[parts] + of[listed]
		fmt.Printf("%-36s", kind)
		for _, what := range slices.Sorted(maps.Keys(of)) {
			fmt.Printf("  %s: %d", what, of[what])
		}
		fmt.Println()
	}
	fmt.Printf("%d points: the same places %d (%.1f %%), another for a known cause %d, without one %d\n",
		n, equal, 100*float64(equal)/float64(n), explained, n-equal-explained)
	return 100*(n-equal-explained) <= 5*n
}
