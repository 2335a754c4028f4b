package bench

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"
)

// WriteText writes the report for people.
func (r *Report) WriteText(out io.Writer) error {
	if m := r.Target; m != nil {
		fmt.Fprintf(out, "%s of %s: %sprofile %s, by calls of %s, each of which makes %s\n",
			m.Place, m.Image, releaseOf(m), m.Profile, m.Call, countedHits(m.HitsPerCall))
	}
	if len(r.Paths) > 0 {
		if r.Target != nil {
			fmt.Fprintln(out)
		}
		if err := r.writeFigures(out); err != nil {
			return err
		}
	}
	if r.Target == nil || len(r.Skipped) == 0 {
		return nil
	}
	return r.writeSkipped(out)
}

// writeSkipped lists each reason once.
func (r *Report) writeSkipped(out io.Writer) error {
	var reasons []string
	paths := map[string][]string{}
	for _, s := range r.Skipped {
		if paths[s.Reason] == nil {
			reasons = append(reasons, s.Reason)
		}
		paths[s.Reason] = append(paths[s.Reason], s.Path)
	}
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintf(w, "\npaths that a hit at %s does not take:\n", r.Target.Place)
	for _, why := range reasons {
		fmt.Fprintf(w, "  %s\t%s\n", strings.Join(paths[why], ", "), why)
	}
	return w.Flush()
}

func releaseOf(m *Measured) string {
	if m.Release == "" {
		return ""
	}
	return m.Release + ", "
}

func countedHits(n int) string {
	if n == 1 {
		return "1 hit"
	}
	return fmt.Sprintf("%d hits", n)
}

// writeFigures writes the table of the paths, with the documented and modelled figures.
func (r *Report) writeFigures(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "path\thandler\tothers\tns\tquartiles\tfloor\tx\ttraps\tsteps\tguest\tgo\tallocs\tdoc\tmodel\tprofile\t")
	for _, p := range r.Paths {
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d-%d\t%s\t%s\t%g\t%g\t%g\t%g\t%g\t%s\t%s\t%s\t\n", p.Path, p.Handler, p.Others, wholeNumber(p.NS), wholeNumber(p.Low), wholeNumber(p.High),
			optional("%.0f", p.Floor), optional("%.2f", p.Ratio), p.Traps, p.Steps, p.Instructions, p.Crossings, p.Allocs,
			optional("%.2f", p.Documented), optional("%.3g", p.Modelled), p.Profile)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	w = tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "\nthe floor, in ns:")
	for _, f := range r.Floor {
		fmt.Fprintf(w, "  %.0f\t%s\n", f.NS, f.Describes)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if have, doc, ok := r.Ratios(); ok {
		fmt.Fprintf(out, "\nk : b : o is %.1f : %.1f : %.0f here, %.1f : %.1f : %.0f in the documentation\n",
			have[0], have[1], have[2], doc[0], doc[1], doc[2])
	}
	fmt.Fprintf(out, "medians of %d rounds of %d hits; the model is of %s\n", r.Rounds, r.Hits, r.Hardware.Name)
	return r.writeNoise(out)
}

// writeNoise warns of figures that cannot be compared.
func (r *Report) writeNoise(out io.Writer) (err error) {
	if n := r.Noise(); n != nil {
		_, err = fmt.Fprintln(out, n)
	}
	return err
}

// wholeNumber is a number without decimals, and so without a zero below zero.
func wholeNumber(v float64) int { return int(math.Round(v)) }

// optional replaces a missing figure by a dash.
func optional(format string, v float64) string {
	if v == 0 {
		return "-"
	}
	return fmt.Sprintf(format, v)
}

// WriteCSV writes a header, and a row for each path.
func (r *Report) WriteCSV(out io.Writer) error {
	w := csv.NewWriter(out)
	rows := [][]string{{"path", "profile", "handler", "others", "ns", "low_ns", "high_ns", "floor_ns", "ratio", "traps", "steps",
		"detours", "tracers", "trampolines", "instructions", "crossings", "allocs", "documented_us", "modelled_us"}}
	for _, p := range r.Paths {
		row := []string{p.Path, p.Profile, p.Handler, strconv.Itoa(p.Others)}
		for _, v := range []float64{p.NS, p.Low, p.High, p.Floor, p.Ratio, p.Traps, p.Steps,
			p.Detours, p.Tracers, p.Trampolines, p.Instructions, p.Crossings, p.Allocs, p.Documented, p.Modelled} {
			row = append(row, strconv.FormatFloat(v, 'f', -1, 64))
		}
		rows = append(rows, row)
	}
	return w.WriteAll(rows)
}
