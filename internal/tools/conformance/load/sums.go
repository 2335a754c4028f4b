package load

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"kprobelab/bpf"
	"kprobelab/bpf/answer"
)

// sums counts programs by how two answers compare.
type sums struct {
	loads, refused, same, differ int
	causes                       map[string]int
}

// count counts a program by its difference, "" if there is none, and the cause, "" if it is unknown.
func (s *sums) count(w io.Writer, program, what, cause string) {
	switch {
	case what == "":
		s.same++
	case cause != "":
		if s.causes == nil {
			s.causes = map[string]int{}
		}
		s.causes[cause]++
	default:
		s.differ++
		fmt.Fprintf(w, "%s DIFFERS: %s\n", program, what)
	}
}

func (s *sums) verdict(loads bool) {
	if loads {
		s.loads++
	} else {
		s.refused++
	}
}

// compare prints each program of an object whose answers differ.
func (s *sums) compare(w io.Writer, object string, theirs map[string]*verdict, ours []answer.Program) {
	for _, name := range slices.Sorted(maps.Keys(theirs)) {
		their := theirs[name]
		s.verdict(their.loads)
		p := program(ours, name)
		if p == nil {
			s.count(w, object+"/"+name, "no answer here", "")
			continue
		}
		our := verdictOf(p)
		s.count(w, fmt.Sprintf("%s/%s (%s)", object, name, p.Section), their.differs(our), their.cause(our))
	}
}

// annotations asks again about the programs that have a verdict of their own in the object, each with its flags and level of log, and prints those
// whose answer is another.
func (s *sums) annotations(w io.Writer, object string, data []byte, theirs map[string]*verdict, plain []answer.Program, ask func(*bpf.Options) ([]answer.Program, error)) error {
	all, err := expectations(data)
	if err != nil || len(all) == 0 {
		return err
	}
	got := map[string]*answer.Program{}
	for _, verbose := range []bool{false, true} {
		c := contractOf(all, verbose, plain)
		if c == nil {
			continue
		}
		list, err := ask(&bpf.Options{Contract: c, Verbose: verbose})
		if err != nil {
			fmt.Fprintf(w, "%s: %v\n", object, err)
		}
		for i := range list {
			got[list[i].Name] = &list[i]
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		e := all[name]
		if theirs[name] == nil && program(plain, name) == nil && e.skipped == "" { // a function that is no program, or an object that neither reads
			e.skipped = "has no answer on either side"
		}
		if e.skipped == "" {
			s.verdict(!e.fails)
		}
		what, cause := e.judge(got[name], theirs[name])
		s.count(w, object+"/"+name, what, cause)
	}
	return nil
}

func (s *sums) print(w io.Writer, title string) {
	n := 0
	for _, count := range s.causes {
		n += count
	}
	fmt.Fprintf(w, "%s: %d programs, %d load, %d refused: %d the same, %d by causes, %d differ\n", title, s.loads+s.refused, s.loads, s.refused, s.same, n, s.differ)
	for _, name := range slices.Sorted(maps.Keys(s.causes)) {
		fmt.Fprintf(w, "  %3d: %s\n", s.causes[name], name)
	}
}

func program(list []answer.Program, name string) *answer.Program {
	i := slices.IndexFunc(list, func(p answer.Program) bool { return p.Name == name })
	if i < 0 {
		return nil
	}
	return &list[i]
}

// short is the end of a text, on one line.
func short(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-3):], " | ")
}
