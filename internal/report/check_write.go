package report

import (
	"fmt"
	"io"
	"path/filepath"
	"strconv"
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
			fmt.Fprint(t, "\t"+row.Cells[j].brief(row.Return))
		}
		fmt.Fprintln(t)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	c.explain(w)
	c.explainHazards(w, columnNumbers)
	_, err := fmt.Fprintf(w, "\n%s%s\n", c.total(), c.hazardous())
	return err
}

// Bad says how many probes do not attach, and how many do harm; nothing of what is well.
func (c *Check) Bad() (list []string) {
	switch c.Refused {
	case 0:
	case 1:
		list = append(list, "1 probe does not attach")
	default:
		list = append(list, fmt.Sprintf("%d probes do not attach", c.Refused))
	}
	switch c.Hazardous {
	case 0:
	case 1:
		list = append(list, "1 probe does harm (--allow HAZARD lets it pass)")
	default:
		list = append(list, fmt.Sprintf("%d probes do harm (--allow HAZARD lets them pass)", c.Hazardous))
	}
	return list
}

// total says how many of the probes that were asked about attach.
func (c *Check) total() string {
	asked := c.cells() - c.NotAsked
	text := fmt.Sprintf("%d of %d attach", asked-c.Refused, asked)
	if c.NotAsked > 0 {
		text += fmt.Sprintf(", %d not asked", c.NotAsked)
	}
	return text
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

// explain writes each rule that refuses a probe once, with the probes.
func (c *Check) explain(w io.Writer) {
	type why struct {
		reason rule.ID
		detail string
	}
	var order []why
	who := map[why][]string{}
	for i := range c.Probes {
		on := map[why][]string{} // the kernels' numbers
		var here []why
		for j := range c.Probes[i].Cells {
			cell := &c.Probes[i].Cells[j]
			if cell.Attaches {
				continue
			}
			y := why{cell.Reason, cell.Detail}
			if on[y] == nil {
				here = append(here, y)
			}
			on[y] = append(on[y], strconv.Itoa(j+1))
		}
		for _, y := range here {
			if who[y] == nil {
				order = append(order, y)
			}
			who[y] = append(who[y], fmt.Sprintf("%s [%s]", c.Probes[i].Text, strings.Join(on[y], ",")))
		}
	}
	for _, y := range order {
		fmt.Fprintf(w, "\n%s: %s\n", y.reason, y.detail)
		fmt.Fprintf(w, "    %s\n", strings.Join(who[y], ", "))
	}
}

// columnNumbers names kernels by the numbers of their columns.
func columnNumbers(numbers []int) string {
	var list []string
	for _, n := range numbers {
		list = append(list, strconv.Itoa(n+1))
	}
	return "[" + strings.Join(list, ",") + "]"
}

// checkHeader names the columns of WriteTSV.
const checkHeader = "image\tprobe\tprogram\tvia\tsymbol\tattaches\terrno\truns\tregister_errno\tkretprobe_errno\tkprobe_events_errno\treason\tdetail\thazards\n"

// WriteTSV writes a header, and a line for each cell.
func (c *Check) WriteTSV(w io.Writer) error {
	if _, err := io.WriteString(w, checkHeader); err != nil {
		return err
	}
	for i := range c.Probes {
		row := &c.Probes[i]
		for j := range row.Cells {
			x, attaches := &row.Cells[j], 0
			if x.Attaches {
				attaches = 1
			}
			_, err := fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%d\t%s\t%d\t%d\t%d\t%s\t%s\t%s\n",
				printable(c.Images[j].Name), row.Text, row.Program, row.Via, x.Found, attaches, x.Errno, x.Runs,
				x.Register, x.Kretprobe, x.Events, x.Reason, x.Detail, hazardIDs(x.Hazards))
			if err != nil {
				return err
			}
		}
	}
	return nil
}
