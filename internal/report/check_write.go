package report

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"kprobelab/errno"
	"kprobelab/kprobes/rule"
)

// WriteJSON writes one JSON object.
func (c *Check) WriteJSON(w io.Writer) error {
	return writeObject(w, c)
}

// WriteText writes the matrix for people, the images with their numbers, and
// below why each refused probe is refused.
func (c *Check) WriteText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for i := range c.Images {
		fmt.Fprintf(t, "[%d]\t%s\tprofile %s\t%s\tCPU %s\n", i+1, c.Images[i].title(), c.Images[i].Profile, c.Images[i].Standing, c.Images[i].CPU)
	}
	fmt.Fprint(t, "\nprobe")
	for i := range c.Images {
		fmt.Fprintf(t, "\t[%d]", i+1)
	}
	fmt.Fprintln(t)
	for i := range c.Probes {
		row := &c.Probes[i]
		fmt.Fprint(t, row.Text)
		for j := range row.Cells {
			fmt.Fprint(t, "\t"+row.shown(j))
		}
		fmt.Fprintln(t)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	c.explainReasons(w, func(alone bool, on []int) bool { return len(on) < len(c.Images) })
	c.explainHazards(w)
	_, err := fmt.Fprintf(w, "\n%s\n", c.total())
	return err
}

// shown is a cell of the matrix: what the booted kernel said, if it was asked, the computed answer, and why a failure passes.
func (r *CheckRow) shown(j int) string {
	cell := &r.Cells[j]
	text := cell.brief(r.Return)
	if cell.Load != nil {
		text = cell.Load.Word() + "; computed: " + text
	}
	if cell.Passes != "" {
		text += " [" + cell.Passes + "]"
	}
	return text
}

// total says how many of the probes that were asked about attach, and how many programs load.
func (c *Check) total() string {
	asked := c.cells() - c.NotAsked
	text := fmt.Sprintf("%d of %d attach", asked-c.Refused, asked)
	if c.NotAsked > 0 {
		text += fmt.Sprintf(", %d not asked", c.NotAsked)
	}
	text += c.hazardous()
	switch {
	case c.LoadAsked:
		text += fmt.Sprintf(" by what is computed; %d of %d load by the kernels' verifiers", c.loads()-c.NotLoaded, c.loads())
	case slices.ContainsFunc(c.Probes, func(r CheckRow) bool { return r.Program != "" }):
		text += "; this is about attaching alone: --load asks whether the programs load"
	}
	if c.Passed > 0 {
		text += "; " + passing(c.Passed)
	}
	return text
}

// loads counts the cells that have a booted kernel's answer.
func (c *Check) loads() (n int) {
	for i := range c.Probes {
		for j := range c.Probes[i].Cells {
			if c.Probes[i].Cells[j].Load != nil {
				n++
			}
		}
	}
	return n
}

func passing(n int) string {
	if n == 1 {
		return "1 failure passes"
	}
	return fmt.Sprintf("%d failures pass", n)
}

func (c *Check) cells() int { return len(c.Images) * len(c.Probes) }

// title returns the image's release, or its file if it has none, and the words that
// tell it apart from another one of that release.
func (i *CheckImage) title() string {
	if i.Release != "" {
		return i.Release + i.apart
	}
	return filepath.Base(i.Name)
}

// brief returns a cell of the matrix: how the probe runs, or why it does not; and the
// other interfaces that would refuse it.
func (c *CheckCell) brief(ret bool) string {
	switch {
	case c.accepted():
	case c.NotAsked:
		return "not asked"
	case c.Errno == 0:
		return "waits for a module"
	default:
		return errno.Errno(-c.Errno).Name() + " " + c.what()
	}
	text := c.Runs
	switch {
	case c.Found == FoundPattern && c.Attached < c.Matches:
		text += fmt.Sprintf(", %d of %d functions", c.Attached, c.Matches)
	case c.Found == FoundPattern:
		text += ", " + Counted(c.Matches, "function")
	case c.Found == FoundSeveral:
		text += fmt.Sprintf(", first of %d", len(c.Others))
	case c.Found == FoundModule:
		text += " in " + strings.Join(c.Others, ", ")
	case c.Found == FoundPackage:
		text += " once " + strings.Join(c.Others, " or ") + " is loaded"
	}
	if c.Chosen != "" {
		text = c.Chosen + ": " + text
	}
	if c.Events != 0 {
		text += ", not by kprobe_events"
	}
	if !ret && c.Kretprobe == 0 && c.Found != FoundPattern && c.kprobe() {
		text += ", return too"
	}
	return text + c.harm()
}

// kprobe: it is one, in contrast to a program at a trampoline, a tracepoint or an iterator.
func (c *CheckCell) kprobe() bool {
	return c.Runs != RunsTrampoline && c.Runs != RunsTracepoint && c.Runs != RunsIterator
}

// what says in a word or two why a probe does not attach.
func (c *CheckCell) what() string {
	switch {
	case c.Found == FoundClone:
		return "only " + strings.Join(c.Others, " ")
	case c.Found == FoundAbsent && c.Reason != rule.Line && c.Reason != rule.Definition:
		return string(FoundAbsent) + c.Absent.brief()
	}
	return c.Reason.String()
}

// oneLine joins the lines of a reason.
func oneLine(text string) string {
	return strings.Join(strings.Fields(text), " ")
}

// checkHeader names the columns of WriteTSV.
const checkHeader = "image\tprobe\tprogram\tvia\tsymbol\tattaches\terrno\truns\tregister_errno\tkretprobe_errno\tkprobe_events_errno\treason\tdetail\thazards\tload\tload_error\tpasses\n"

// WriteTSV writes a header, and a line for each cell.
func (c *Check) WriteTSV(w io.Writer) error {
	if _, err := io.WriteString(w, checkHeader); err != nil {
		return err
	}
	for i := range c.Probes {
		row := &c.Probes[i]
		for j := range row.Cells {
			x, attaches := &row.Cells[j], "0"
			switch {
			case x.NotAsked:
				attaches = ""
			case x.Attaches:
				attaches = "1"
			}
			load, why := "", ""
			if x.Load != nil {
				load, why = x.Load.Word(), oneLine(x.Load.Why())
			}
			_, err := fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\t%d\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t%s\n",
				printable(c.Images[j].Name), row.Text, row.Program, row.Via, x.Found, attaches, x.Errno, x.Runs,
				x.Register, x.Kretprobe, x.Events, x.Reason, x.Detail, hazardIDs(x.Hazards), load, why, x.Passes)
			if err != nil {
				return err
			}
		}
	}
	return nil
}
