package main

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"

	"kprobelab/internal/bench"
)

// show writes a report in the form that was asked for.
func (r *benchRun) show(w io.Writer, rep *bench.Report) error {
	err := r.table(w, rep)
	if r.plot != "" {
		err = errors.Join(err, writePlot(r.plot, rep))
	}
	return err
}

func (r *benchRun) table(w io.Writer, rep *bench.Report) error {
	switch {
	case r.json:
		return r.showJSON(w, rep)
	case r.csv:
		return benchCSV(w, rep)
	case r.real != nil:
		return againstTable(w, rep, r.real)
	}
	return benchTable(w, rep)
}

// plotForms are what a plot can be, by the end of the file's name.
var plotForms = map[string]func(*bench.Report, io.Writer) error{
	".svg": (*bench.Report).WriteSVG,
	".png": (*bench.Report).WritePNG,
}

func writePlot(path string, rep *bench.Report) error {
	var b bytes.Buffer
	if err := plotForms[filepath.Ext(path)](rep, &b); err != nil {
		return err
	}
	return writeOutput(path, b.Bytes())
}

// benchTable is the report for people.
func benchTable(out io.Writer, rep *bench.Report) error {
	if m := rep.Target; m != nil {
		fmt.Fprintf(out, "%s of %s: %sprofile %s, by calls of %s, each of which makes %s\n",
			m.Place, m.Image, release(m), m.Profile, m.Call, hits(m.HitsPerCall))
	}
	if len(rep.Paths) > 0 {
		if rep.Target != nil {
			fmt.Fprintln(out)
		}
		if err := benchFigures(out, rep); err != nil {
			return err
		}
	}
	if rep.Target == nil || len(rep.Skipped) == 0 {
		return nil
	}
	return benchSkipped(out, rep)
}

// benchSkipped lists each reason once.
func benchSkipped(out io.Writer, rep *bench.Report) error {
	var reasons []string
	paths := map[string][]string{}
	for _, s := range rep.Skipped {
		if paths[s.Reason] == nil {
			reasons = append(reasons, s.Reason)
		}
		paths[s.Reason] = append(paths[s.Reason], s.Path)
	}
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintf(w, "\npaths that a hit at %s does not take:\n", rep.Target.Place)
	for _, why := range reasons {
		fmt.Fprintf(w, "  %s\t%s\n", strings.Join(paths[why], ", "), why)
	}
	return w.Flush()
}

func release(m *bench.Measured) string {
	if m.Release == "" {
		return ""
	}
	return m.Release + ", "
}

func hits(n int) string {
	if n == 1 {
		return "1 hit"
	}
	return fmt.Sprintf("%d hits", n)
}

// benchFigures are the table of the paths, and what they are held against.
func benchFigures(out io.Writer, rep *bench.Report) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "path\thandler\tothers\tns\tquartiles\tfloor\tx\ttraps\tsteps\tguest\tgo\tallocs\tdoc\tmodel\tprofile\t")
	for _, p := range rep.Paths {
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d-%d\t%s\t%s\t%g\t%g\t%g\t%g\t%g\t%s\t%s\t%s\t\n", p.Path, p.Handler, p.Others, whole(p.NS), whole(p.Low), whole(p.High),
			optional("%.0f", p.Floor), optional("%.2f", p.Ratio), p.Traps, p.Steps, p.Instructions, p.Crossings, p.Allocs,
			optional("%.2f", p.Documented), optional("%.3g", p.Modelled), p.Profile)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	w = tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "\nthe floor, in ns:")
	for _, f := range rep.Floor {
		fmt.Fprintf(w, "  %.0f\t%s\n", f.NS, f.Describes)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if have, doc, ok := rep.Ratios(); ok {
		fmt.Fprintf(out, "\nk : b : o is %.1f : %.1f : %.0f here, %.1f : %.1f : %.0f in the documentation\n",
			have[0], have[1], have[2], doc[0], doc[1], doc[2])
	}
	fmt.Fprintf(out, "medians of %d rounds of %d hits; the model is of %s\n", rep.Rounds, rep.Hits, rep.Hardware.Name)
	return benchNoise(out, rep)
}

// benchNoise warns of figures that cannot be compared.
func benchNoise(out io.Writer, rep *bench.Report) (err error) {
	if n := rep.Noise(); n != nil {
		_, err = fmt.Fprintln(out, n)
	}
	return err
}

// whole is a number without decimals, and so without a zero below zero.
func whole(v float64) int { return int(math.Round(v)) }

// optional leaves out what is not there.
func optional(format string, v float64) string {
	if v == 0 {
		return "-"
	}
	return fmt.Sprintf(format, v)
}

func benchCSV(out io.Writer, rep *bench.Report) error {
	w := csv.NewWriter(out)
	rows := [][]string{{"path", "profile", "handler", "others", "ns", "low_ns", "high_ns", "floor_ns", "ratio", "traps", "steps",
		"detours", "tracers", "trampolines", "instructions", "crossings", "allocs", "documented_us", "modelled_us"}}
	for _, p := range rep.Paths {
		row := []string{p.Path, p.Profile, p.Handler, strconv.Itoa(p.Others)}
		for _, v := range []float64{p.NS, p.Low, p.High, p.Floor, p.Ratio, p.Traps, p.Steps,
			p.Detours, p.Tracers, p.Trampolines, p.Instructions, p.Crossings, p.Allocs, p.Documented, p.Modelled} {
			row = append(row, strconv.FormatFloat(v, 'f', -1, 64))
		}
		rows = append(rows, row)
	}
	return w.WriteAll(rows)
}
