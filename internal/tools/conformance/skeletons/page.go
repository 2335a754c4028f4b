package skeletons

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"kprobelab/bpf"
	"kprobelab/bpf/answer"
)

// table writes a row for each tool and a column for each kernel, and the reasons below.
func table(args []string) error {
	f := flag.NewFlagSet("table", flag.ContinueOnError)
	q := &questions{}
	q.flags(f)
	if err := f.Parse(args); err != nil {
		return err
	}
	tables, err := q.asked(f.Args())
	if len(tables) > 0 {
		page(os.Stdout, tables)
	}
	return err
}

// tool is an object's name.
func tool(t *bpf.Table) string { return strings.TrimSuffix(filepath.Base(t.Object), ".bpf.o") }

// page writes the table and the reasons in Markdown.
func page(w io.Writer, tables []*bpf.Table) {
	fmt.Fprint(w, "| tool | programs |")
	for _, c := range tables[0].Columns {
		fmt.Fprintf(w, " %s |", c.Kernel)
	}
	fmt.Fprintf(w, "\n|---|---|%s\n", strings.Repeat("---|", len(tables[0].Columns)))
	for _, t := range tables {
		n := 0
		for _, c := range t.Columns {
			n = max(n, len(c.Programs))
		}
		fmt.Fprintf(w, "| %s | %d |", tool(t), n)
		for _, c := range t.Columns {
			fmt.Fprintf(w, " %s |", cell(&c))
		}
		fmt.Fprintln(w)
	}
	totals(w, tables)
	for _, t := range tables {
		reasons(w, t)
	}
}

// words name the states of programs that do not attach, in the order of a cell.
var words = []string{"refused", "not attached", "loads", "not asked"}

// cell says how many programs of a kernel attach, and of the others what became of them.
func cell(c *bpf.Column) string {
	if c.Err != "" {
		return "cannot be asked"
	}
	count := map[string]int{}
	for i := range c.Programs {
		word, _, _ := strings.Cut(c.Programs[i].Word(), ",")
		count[word]++
	}
	if count["attaches"] == len(c.Programs) {
		return "all"
	}
	said := []string{fmt.Sprint(count["attaches"])}
	for _, word := range words {
		if count[word] > 0 {
			said = append(said, fmt.Sprint(count[word], " ", word))
		}
	}
	return strings.Join(said, ", ")
}

func totals(w io.Writer, tables []*bpf.Table) {
	fmt.Fprintln(w, "\n| | programs | attach | load only | refused | not attached | not asked |\n|---|---|---|---|---|---|---|")
	for i, c := range tables[0].Columns {
		n, count := 0, map[string]int{}
		for _, t := range tables {
			for j := range t.Columns[i].Programs {
				word, _, _ := strings.Cut(t.Columns[i].Programs[j].Word(), ",")
				count[word]++
				n++
			}
		}
		fmt.Fprintf(w, "| %s, %s | %d | %d | %d | %d | %d | %d |\n", c.Kernel, c.Release, n, count["attaches"], count["loads"], count["refused"], count["not attached"], count["not asked"])
	}
}

// said is why programs do not attach, and on which kernels.
type said struct {
	programs, kernels []string
	why               string
}

// reasons writes what is not attached of a tool: programs, kernels, the reason, the line of C.
func reasons(w io.Writer, t *bpf.Table) {
	var all []*said
	for _, c := range t.Columns {
		if c.Err != "" {
			all = append(all, &said{[]string{"-"}, []string{c.Kernel}, c.Err})
		}
		for i := range c.Programs {
			p := &c.Programs[i]
			if p.Word() == "attaches" {
				continue
			}
			why := reason(p)
			at := slices.IndexFunc(all, func(s *said) bool { return s.programs[0] == p.Name && s.why == why })
			if at < 0 {
				all = append(all, &said{programs: []string{p.Name}, why: why})
				at = len(all) - 1
			}
			all[at].kernels = append(all[at].kernels, c.Kernel)
		}
	}
	if len(all) == 0 {
		return
	}
	fmt.Fprintf(w, "\n## %s\n\n", tool(t))
	slices.SortStableFunc(all, func(a, b *said) int { return strings.Compare(a.programs[0], b.programs[0]) })
	for _, s := range together(all) {
		fmt.Fprintf(w, "- `%s` on %s: %s\n", strings.Join(s.programs, "`, `"), strings.Join(s.kernels, ", "), s.why)
	}
}

// together puts programs with one reason on the same kernels into one line.
func together(all []*said) (lines []*said) {
	for _, s := range all {
		at := slices.IndexFunc(lines, func(l *said) bool { return l.why == s.why && slices.Equal(l.kernels, s.kernels) })
		if at < 0 {
			lines = append(lines, s)
		} else {
			lines[at].programs = append(lines[at].programs, s.programs...)
		}
	}
	return lines
}

// reason is a program's, with the line to blame.
func reason(p *answer.Program) string {
	word, _, _ := strings.Cut(p.Word(), ",")
	text := word + ": " + quoted(p.Error)
	if p.Error == "" {
		text = word + ": " + quoted(p.AttachError)
	}
	switch b := p.Blame; {
	case b == nil:
	case b.File == "":
		text += fmt.Sprintf("; at instruction %d", b.Instruction)
	default:
		text += fmt.Sprintf("; %s:%d, `%s`", filepath.Base(b.File), b.Line, strings.ReplaceAll(strings.TrimSpace(b.Text), "`", "'"))
	}
	return text
}

// quoted makes a kernel's words plain text of Markdown.
func quoted(text string) string {
	return strings.NewReplacer("|", `\|`, "<", `\<`, "*", `\*`, "_", `\_`, "\n", " ").Replace(text)
}
