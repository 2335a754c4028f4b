// Command load compares the answers of kprobelab bpf about the programs of many objects with those of veristat, which loads
// them by libbpf on the same kernel (make conformance-load).
//
// It must not know how veristat was run.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"kprobelab"
	"kprobelab/bpf"
	"kprobelab/bpf/answer"
	"kprobelab/machine"
)

func main() {
	dump := flag.String("dump", "", "the booted kernel's dump")
	theirs := flag.String("theirs", "", "veristat's output (-v -l 1)")
	loader := flag.String("loader", "", "the loader of BPF programs (go build ./internal/bpfloader)")
	flag.Parse()
	different, err := run(os.Stdout, *dump, *theirs, *loader, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(2)
	}
	if different {
		os.Exit(1)
	}
}

// run asks the kernel about each object, and prints what differs and the sums.
func run(w io.Writer, dump, theirs, loader string, objects []string) (different bool, err error) {
	program, err := os.ReadFile(loader)
	if err != nil {
		return false, err
	}
	text, err := os.ReadFile(theirs)
	if err != nil {
		return false, err
	}
	answers := parse(string(text))
	if len(answers) == 0 {
		return false, fmt.Errorf("%s has no answers", theirs)
	}
	l, err := kprobelab.Open(dump, &kprobelab.Options{Budget: bpf.Budget})
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	fresh, err := l.Machine.Snapshot()
	if err != nil {
		return false, err
	}
	sums := &sums{}
	for _, object := range objects {
		list, err := ask(l, fresh, object, program)
		if err != nil {
			fmt.Fprintf(w, "%s: %v\n", filepath.Base(object), err)
		}
		sums.compare(w, filepath.Base(object), answers[filepath.Base(object)], list)
	}
	sums.print(w)
	return sums.differ > 0, nil
}

// ask asks a kernel about an object, and puts the kernel back.
func ask(l *kprobelab.Lab, fresh *machine.Snapshot, object string, loader []byte) ([]answer.Program, error) {
	data, err := os.ReadFile(object)
	if err != nil {
		return nil, err
	}
	k, err := l.Booted()
	if err != nil {
		return nil, err
	}
	answers, err := bpf.Load(k, data, &bpf.Options{Loader: loader})
	err = errors.Join(err, l.Renew(fresh, nil))
	if answers == nil {
		return nil, err
	}
	return answers.Programs, err
}

// sums counts programs by how the two answers compare.
type sums struct {
	loads, refused, same, byCause, differ int
	causes                                map[string]int
}

// compare prints each program of an object whose answers differ.
func (s *sums) compare(w io.Writer, object string, theirs map[string]*verdict, ours []answer.Program) {
	for name, their := range theirs {
		i := slices.IndexFunc(ours, func(p answer.Program) bool { return p.Name == name })
		if i < 0 {
			s.differ++
			fmt.Fprintf(w, "%s/%s DIFFERS: no answer here\n", object, name)
			continue
		}
		our := verdictOf(&ours[i])
		if their.loads {
			s.loads++
		} else {
			s.refused++
		}
		what := their.differs(our)
		switch cause := their.cause(our); {
		case what == "":
			s.same++
		case cause != "":
			s.byCause++
			if s.causes == nil {
				s.causes = map[string]int{}
			}
			s.causes[cause]++
		default:
			s.differ++
			fmt.Fprintf(w, "%s/%s (%s) DIFFERS: %s\n", object, name, ours[i].Section, what)
		}
	}
}

func (s *sums) print(w io.Writer) {
	fmt.Fprintf(w, "%d programs, %d load, %d refused: %d the same, %d by causes, %d differ\n",
		s.loads+s.refused, s.loads, s.refused, s.same, s.byCause, s.differ)
	var names []string
	for name := range s.causes {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(w, "  %3d: %s\n", s.causes[name], name)
	}
}

// short is the end of a text, on one line.
func short(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-3):], " | ")
}
