package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// checkRun is a stretch of kernels, in their order, that answer a probe alike.
type checkRun struct{ from, to int }

// runsOf cuts a row into stretches of one answer, as far as a person reads it.
func (c *Check) runsOf(row *CheckRow) (list []checkRun) {
	for i := range row.Cells {
		if n := len(list); n > 0 && row.shown(i) == row.shown(i-1) {
			list[n-1].to = i
			continue
		}
		list = append(list, checkRun{i, i})
	}
	return list
}

// WriteRuns writes for each probe which kernels answer what, the kernels being in
// the order of their releases; and where a probe has ceased to attach, since when. It is
// for more kernels than a matrix has room for. With changed, probes that all kernels
// answer alike are left out.
func (c *Check) WriteRuns(w io.Writer, changed bool) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for i := range c.Probes {
		row := &c.Probes[i]
		runs := c.runsOf(row)
		if changed && len(runs) < 2 {
			continue
		}
		fmt.Fprintln(t, row.Text)
		for _, r := range runs {
			fmt.Fprintf(t, "    %s\t%s\n", c.span(r), row.shown(r.from))
		}
		if r, ok := lost(row); ok {
			fmt.Fprintf(t, "    last attaches on %s, not on %s\n", c.Images[r.from].title(), c.Images[r.to].title())
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	c.explainReasons(w, func(alone bool, _ []int) bool { return !alone })
	c.explainHazards(w)
	_, err := fmt.Fprintf(w, "\n%s, %s: %s\n", Counted(len(c.Images), "kernel"), Counted(len(c.Probes), "probe"), c.total())
	return err
}

// why is a reason for which a probe fails, or a failure passes.
type why struct{ reason, detail string }

// whys are the reasons in a cell.
func (c *CheckCell) whys() (list []why) {
	if !c.Attaches {
		list = append(list, why{c.Reason.String(), c.Detail})
	}
	if c.Load != nil && c.Load.Bad() {
		list = append(list, why{c.Load.Word() + " by the kernel", c.Load.Why()})
	}
	if c.Why != "" {
		list = append(list, why{c.Passes, c.Why})
	}
	return list
}

// explainReasons writes each reason once, with the probes. named decides whether the kernels are named after a probe; alone: it is
// the probe's only reason.
func (c *Check) explainReasons(w io.Writer, named func(alone bool, on []int) bool) {
	var order []why
	who := map[why][]string{}
	for i := range c.Probes {
		row := &c.Probes[i]
		on := map[why][]int{}
		var here []why
		for j := range row.Cells {
			for _, y := range row.Cells[j].whys() {
				if on[y] == nil {
					here = append(here, y)
				}
				on[y] = append(on[y], j)
			}
		}
		for _, y := range here {
			if who[y] == nil {
				order = append(order, y)
			}
			text := row.Text
			if named(len(here) == 1, on[y]) {
				text += " (" + c.spans(on[y]) + ")"
			}
			who[y] = append(who[y], text)
		}
	}
	for _, y := range order {
		fmt.Fprintf(w, "\n%s: %s\n    %s\n", y.reason, y.detail, strings.Join(who[y], ", "))
	}
}

// spans names kernels by their numbers, which ascend.
func (c *Check) spans(numbers []int) string {
	var list []string
	for i := 0; i < len(numbers); {
		j := i
		for j+1 < len(numbers) && numbers[j+1] == numbers[j]+1 {
			j++
		}
		list = append(list, c.span(checkRun{numbers[i], numbers[j]}))
		i = j + 1
	}
	return strings.Join(list, ", ")
}

// span names a stretch of kernels.
func (c *Check) span(r checkRun) string {
	if r.from == r.to {
		return c.Images[r.from].named()
	}
	return fmt.Sprintf("%s to %s (%d)", c.Images[r.from].named(), c.Images[r.to].title(), r.to-r.from+1)
}

// named is the title with the distribution before it.
func (i *CheckImage) named() string {
	if i.Distribution == "" {
		return i.title()
	}
	return i.Distribution + " " + i.title()
}

// tellApart makes titles differ: kernels of one release get the beginnings of their
// build ids, if these differ, and their processors, if those differ.
func (c *Check) tellApart() {
	for _, what := range []func(*CheckImage) string{(*CheckImage).shortID, func(i *CheckImage) string { return i.CPU }} {
		said := map[string]map[string]bool{}
		for i := range c.Images {
			name := c.Images[i].named()
			if said[name] == nil {
				said[name] = map[string]bool{}
			}
			if w := what(&c.Images[i]); w != "" {
				said[name][w] = true
			}
		}
		for i := range c.Images {
			image := &c.Images[i]
			if w := what(image); w != "" && len(said[image.named()]) > 1 {
				image.apart += " " + w
			}
		}
	}
}

// lost is the last kernel on which a probe attaches and the one after it, if the newest
// kernel refuses it.
func lost(row *CheckRow) (checkRun, bool) {
	n := len(row.Cells)
	if n == 0 || row.Cells[n-1].Attaches {
		return checkRun{}, false
	}
	for i := n - 2; i >= 0; i-- {
		if row.Cells[i].Attaches {
			return checkRun{i, i + 1}, true
		}
	}
	return checkRun{}, false
}
