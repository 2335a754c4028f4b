package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"kprobelab/kprobes/rule"
)

// checkRun is a stretch of kernels, in their order, that answer a probe alike.
type checkRun struct{ from, to int }

// runsOf cuts a row into stretches of one answer, as far as a person reads it.
func (c *Check) runsOf(row *CheckRow) (list []checkRun) {
	for i := range row.Cells {
		if n := len(list); n > 0 && row.Cells[i].brief(row.Return) == row.Cells[i-1].brief(row.Return) {
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
			fmt.Fprintf(t, "    %s\t%s\n", c.span(r), row.Cells[r.from].brief(row.Return))
		}
		if r, ok := lost(row); ok {
			fmt.Fprintf(t, "    last attaches on %s, not on %s\n", c.Images[r.from].title(), c.Images[r.to].title())
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	c.explainRules(w)
	c.explainHazards(w)
	_, err := fmt.Fprintf(w, "\n%s, %s: %s%s\n", Counted(len(c.Images), "kernel"), Counted(len(c.Probes), "probe"), c.total(), c.hazardous())
	return err
}

// explainRules writes each rule that refuses a probe once, with the probes.
func (c *Check) explainRules(w io.Writer) {
	var order []rule.ID
	who := map[rule.ID][]string{}
	for i := range c.Probes {
		row := &c.Probes[i]
		for j := range row.Cells {
			cell := &row.Cells[j]
			if cell.Attaches || len(who[cell.Reason]) > 0 && who[cell.Reason][len(who[cell.Reason])-1] == row.Text {
				continue
			}
			if who[cell.Reason] == nil {
				order = append(order, cell.Reason)
			}
			who[cell.Reason] = append(who[cell.Reason], row.Text)
		}
	}
	for _, id := range order {
		fmt.Fprintf(w, "\n%s: %s\n    %s\n", id, id.Why(), strings.Join(who[id], ", "))
	}
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

// tellApart makes titles differ: kernels of one release have the beginnings of their
// build ids, where these differ, and their processors, where those do.
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
