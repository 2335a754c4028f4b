package bench

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
)

// WriteText writes the report for people.
func (r *ProgramReport) WriteText(out io.Writer) error {
	fmt.Fprintf(out, "probes on a program, on %s\n\n", r.Release)
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "way\tns\tquartiles\tguest\tswitches\ttraps\tsteps\tsystem calls\tdoc\tmodel\t")
	for _, p := range r.Ways {
		fmt.Fprintf(w, "%s\t%d\t%d-%d\t%d\t%g\t%g\t%g\t%g\t%s\t%s\t\n", p.Way, wholeNumber(p.NS), wholeNumber(p.Low), wholeNumber(p.High), wholeNumber(p.Instructions),
			p.Switches, p.Traps, p.Steps, p.SystemCalls, optional("%.3g", p.Documented), optional("%.3g", p.Modelled))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	w = tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	for _, p := range r.Ways {
		fmt.Fprintf(w, "  %s\t%s\n", p.Way, p.Describes)
	}
	for _, s := range r.Skipped {
		fmt.Fprintf(w, "  %s\tnot measured: %s\n", s.Path, s.Reason)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	on := DocumentedOn
	_, err := fmt.Fprintf(out, "medians of %d rounds of %d hits; the model is of %s, for the traps and steps\n"+
		"doc is of the first uprobes, which stepped every instruction (%s: a kprobe took %g us there, a return probe %g)\n",
		r.Rounds, r.Hits, r.Hardware.Name, on.Name, on.Kprobe, on.Returns)
	return err
}

// WriteCSV writes a header, and a row for each way.
func (r *ProgramReport) WriteCSV(out io.Writer) error {
	w := csv.NewWriter(out)
	rows := [][]string{{"way", "ns", "low_ns", "high_ns", "instructions", "switches", "traps", "steps", "system_calls", "documented_us", "modelled_us"}}
	for _, p := range r.Ways {
		row := []string{p.Way}
		for _, v := range []float64{p.NS, p.Low, p.High, p.Instructions, p.Switches, p.Traps, p.Steps, p.SystemCalls, p.Documented, p.Modelled} {
			row = append(row, strconv.FormatFloat(v, 'f', -1, 64))
		}
		rows = append(rows, row)
	}
	return w.WriteAll(rows)
}
