package skeletons

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"kprobelab/bpf"
	"kprobelab/bpf/answer"
	"kprobelab/internal/tools/conformance/verb"
)

// compare prints what differs of bpftool's results and the answers here, and the sums.
func compare(args []string) error {
	f := flag.NewFlagSet("bpftool", flag.ContinueOnError)
	theirs := f.String("theirs", "", "the output: of each object a line === NAME, bpftool's words, a line \"ended with CODE\"")
	q := &questions{}
	q.flags(f)
	if err := f.Parse(args); err != nil {
		return err
	}
	text, err := os.ReadFile(*theirs)
	if err != nil {
		return err
	}
	results := results(string(text))
	tables, err := q.asked(f.Args())
	if err != nil {
		return err
	}
	return verb.Differ(sums(os.Stdout, results, tables) > 0, nil)
}

// result is that of bpftool prog loadall … autoattach: a whole object is loaded, or none of its programs.
type result struct {
	// loaded: the object was. If not, program was refused or map could not be made, "" for neither.
	loaded        bool
	program, made string
	// pinned are programs that were loaded and not attached.
	pinned []string
	said   string
}

var (
	failedLoad = regexp.MustCompile(`libbpf: prog '([^']+)': failed to load: (.*)`)
	failedMap  = regexp.MustCompile(`libbpf: map '([^']+)': failed to create: (.*)`)
	fallsBack  = regexp.MustCompile(`Program (\S+) does not support autoattach`)
)

func results(text string) map[string]*result {
	all := map[string]*result{}
	for _, part := range strings.Split("\n"+text, "\n=== ")[1:] {
		name, said, _ := strings.Cut(part, "\n")
		r := &result{said: said, loaded: strings.Contains(said, "\nended with 0") || strings.HasPrefix(said, "ended with 0")}
		for _, m := range fallsBack.FindAllStringSubmatch(said, -1) {
			r.pinned = append(r.pinned, m[1])
		}
		if m := failedLoad.FindStringSubmatch(said); m != nil {
			r.program = m[1]
		}
		if m := failedMap.FindStringSubmatch(said); m != nil {
			r.made = m[1]
		}
		all[filepath.Base(name)] = r
	}
	return all
}

// sums prints each program with another result, and how many have none.
func sums(w io.Writer, results map[string]*result, tables []*bpf.Table) (differ int) {
	same, causes := 0, map[string]int{}
	for _, t := range tables {
		name := filepath.Base(t.Object)
		r := results[name]
		if r == nil || t.Columns[0].Err != "" {
			differ++
			fmt.Fprintf(w, "%s DIFFERS: no answer on a side: %s\n", name, t.Columns[0].Err)
			continue
		}
		for i := range t.Columns[0].Programs {
			p := &t.Columns[0].Programs[i]
			switch what, cause := r.differs(p); {
			case cause != "":
				causes[cause]++
			case what == "":
				same++
			default:
				differ++
				fmt.Fprintf(w, "%s/%s (%s) DIFFERS: %s\n", name, p.Name, p.Section, what)
			}
		}
	}
	n := 0
	for _, count := range causes {
		n += count
	}
	fmt.Fprintf(w, "%d objects, %d programs: %d the same, %d by causes, %d differ\n", len(tables), same+n+differ, same, n, differ)
	var names []string
	for name := range causes {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(w, "  %3d: %s\n", causes[name], name)
	}
	return differ
}

// differs says what differs of a program's two results, "" if nothing does, or why they cannot be compared.
func (r *result) differs(p *answer.Program) (what, cause string) {
	switch {
	case strings.HasPrefix(p.Section, "?"):
		return "", "? in its section: bpftool does not load it"
	case !r.loaded && r.made != "":
		return "", "bpftool loads no program of an object with a map that its tool completes"
	case !r.loaded && r.program == p.Name && !p.Loads:
		return "", ""
	case !r.loaded && r.program == p.Name:
		return "refused there, loads here", ""
	case !r.loaded && r.program != "":
		return "", "bpftool loads no program of an object with one that is refused"
	case !r.loaded && p.Loads && strings.Contains(r.said, "failed to pin all programs"):
		return "", "all of the object load, and bpftool ends at one that it cannot attach"
	case p.Loads && p.Section == "perf_event":
		return "", "libbpf attaches no perf_event by its section"
	case !r.loaded:
		said := strings.Split(strings.TrimSpace(r.said), "\n")
		return "not loaded there: " + strings.Join(said[max(0, len(said)-4):], " | "), ""
	case !p.Loads:
		return "loads there, refused here: " + p.Error, ""
	}
	there := !slices.Contains(r.pinned, p.Name)
	here := p.Attaches != nil && *p.Attaches
	if there != here {
		return fmt.Sprintf("attaches: %t there, %t here: %s", there, here, p.AttachError), ""
	}
	return "", ""
}
