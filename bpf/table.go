package bpf

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"kprobelab/bpf/answer"
	"kprobelab/bpf/losses"
	"kprobelab/internal/printable"
)

// Column has the answers of one kernel.
type Column struct {
	// Kernel is its name as the user wrote it, Release its release.
	Kernel  string `json:"kernel"`
	Release string `json:"release,omitempty"`
	// Dump is the file of the booted kernel, "" if there is none.
	Dump string `json:"-"`
	// Err says why it did not answer, "" if it did.
	Err      string           `json:"error,omitempty"`
	Programs []answer.Program `json:"programs"`
	Fields   []answer.Field   `json:"fields,omitempty"`
	Run      *answer.Run      `json:"run,omitempty"`
	// Losses is the ledger of the run. Costs names the programs that took more instructions than allowed, "" if none did.
	Losses *losses.Ledger `json:"losses,omitempty"`
	Costs  string         `json:"max_cost,omitempty"`
}

// Table is an object's programs on several kernels.
type Table struct {
	Object  string   `json:"object"`
	Columns []Column `json:"kernels"`
}

// Code is the exit code: 1 if a kernel refused or did not attach a program, or one took more instructions than allowed, else 0.
func (t *Table) Code() int {
	for _, c := range t.Columns {
		if c.Costs != "" || c.Run != nil && (c.Run.Error != "" || c.Run.Exit != 0) {
			return 1
		}
		for _, p := range c.Programs {
			if p.Bad() {
				return 1
			}
		}
	}
	return 0
}

// JSON writes the table as one object.
func (t *Table) JSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(t)
}

// word is a program's cell.
func word(p *answer.Program) string {
	if p == nil {
		return "-"
	}
	return p.Word()
}

func (c *Column) program(name string) *answer.Program {
	for i := range c.Programs {
		if c.Programs[i].Name == name {
			return &c.Programs[i]
		}
	}
	return nil
}

// names are the programs of all kernels.
func (t *Table) names() (names []string) {
	for _, c := range t.Columns {
		for _, p := range c.Programs {
			if !slices.Contains(names, p.Name) {
				names = append(names, p.Name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// Text writes a row for each program and a column for each kernel. The reasons come after, equal ones once.
func (t *Table) Text(w io.Writer, verbose bool) error {
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprint(tw, "program\tsection")
	for _, c := range t.Columns {
		fmt.Fprint(tw, "\t", printable.Name(c.Kernel))
	}
	fmt.Fprintln(tw)
	names := t.names()
	for _, name := range names {
		section, cells := "", ""
		for i := range t.Columns {
			p := t.Columns[i].program(name)
			if p != nil {
				section = p.Section
			}
			cells += "\t" + word(p)
		}
		fmt.Fprintln(tw, printable.Name(name)+"\t"+printable.Name(section)+cells)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	var b strings.Builder
	for _, c := range t.Columns {
		if c.Err != "" {
			fmt.Fprintf(&b, "\n%s\n  %s\n", printable.Name(c.Kernel), printable.Name(c.Err))
		}
	}
	for _, name := range names {
		t.reasons(&b, name, verbose)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return err
	}
	if err := t.fields(w); err != nil {
		return err
	}
	b.Reset()
	for _, c := range t.Columns {
		if c.Run != nil {
			writeRun(&b, c.Kernel, c.Run)
		}
		c.lost(&b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// reasons writes the kernels' reasons about a program.
func (t *Table) reasons(b *strings.Builder, name string, verbose bool) {
	kernels := map[string][]string{}
	var said []string
	for i := range t.Columns {
		c := &t.Columns[i]
		p := c.program(name)
		if p == nil {
			continue
		}
		text := p.Why()
		if verbose {
			text += "\n" + logOf(p)
		}
		if strings.TrimSpace(text) == "" {
			continue
		}
		if kernels[text] == nil {
			said = append(said, text)
		}
		kernels[text] = append(kernels[text], printable.Name(c.Kernel))
	}
	if len(said) > 0 {
		fmt.Fprintf(b, "\n%s\n", printable.Name(name))
	}
	for _, text := range said {
		fmt.Fprintf(b, "  %s: %s\n", strings.Join(kernels[text], ", "), text)
	}
}

// logOf is the verifier's log of a program.
func logOf(p *answer.Program) string {
	var lines []string
	if p.Verified > 0 {
		lines = append(lines, fmt.Sprintf("      %d instructions, %d verified, %d states", p.Instructions, p.Verified, p.States))
	}
	for line := range strings.Lines(p.Log) {
		lines = append(lines, "      "+printable.Name(strings.TrimRight(line, "\n")))
	}
	return strings.Join(lines, "\n")
}
