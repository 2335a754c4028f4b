package main

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"

	"github.com/urfave/cli/v3"

	"kprobelab/internal/bench"
	"kprobelab/kimage"
)

// programs measures probes on a program.
func (r *benchRun) programs(t *term, c *cli.Command) error {
	for _, other := range []string{"path", "others", "handler", "plot", "against", "symbol", "image", "call"} {
		if err := oneOf(c, "programs", other); err != nil {
			return err
		}
	}
	o := &bench.ProgramOptions{
		Open: func() (*kimage.Image, error) { return openImage(t, c, c.String("programs")) },
		Hits: r.o.Hits, Hardware: r.o.Hardware,
		Progress: func(stage string, done, total int64) { t.count(stage, "rounds", done, total) },
	}
	if c.IsSet("rounds") {
		o.Rounds = r.o.Rounds
	}
	rep, err := bench.Programs(o)
	t.progressDone()
	if err != nil {
		return benchFailure(err)
	}
	w := bufio.NewWriter(t.out)
	switch {
	case r.json:
		err = json.NewEncoder(w).Encode(rep)
	case r.csv:
		err = programsCSV(w, rep)
	default:
		err = programsTable(w, rep)
	}
	return errors.Join(err, w.Flush())
}

func programsTable(out io.Writer, rep *bench.ProgramReport) error {
	fmt.Fprintf(out, "probes on a program, on %s\n\n", rep.Release)
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "way\tns\tquartiles\tguest\tswitches\ttraps\tsteps\tsystem calls\tdoc\tmodel\t")
	for _, p := range rep.Ways {
		fmt.Fprintf(w, "%s\t%d\t%d-%d\t%d\t%g\t%g\t%g\t%g\t%s\t%s\t\n", p.Way, whole(p.NS), whole(p.Low), whole(p.High), whole(p.Instructions),
			p.Switches, p.Traps, p.Steps, p.SystemCalls, optional("%.3g", p.Documented), optional("%.3g", p.Modelled))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	w = tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	for _, p := range rep.Ways {
		fmt.Fprintf(w, "  %s\t%s\n", p.Way, p.Describes)
	}
	for _, s := range rep.Skipped {
		fmt.Fprintf(w, "  %s\tnot measured: %s\n", s.Path, s.Reason)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	on := bench.DocumentedOn
	_, err := fmt.Fprintf(out, "medians of %d rounds of %d hits; the model is of %s, for the traps and steps\n"+
		"doc is of the first uprobes, which stepped every instruction (%s: a kprobe took %g us there, a return probe %g)\n",
		rep.Rounds, rep.Hits, rep.Hardware.Name, on.Name, on.Kprobe, on.Returns)
	return err
}

func programsCSV(out io.Writer, rep *bench.ProgramReport) error {
	w := csv.NewWriter(out)
	rows := [][]string{{"way", "ns", "low_ns", "high_ns", "instructions", "switches", "traps", "steps", "system_calls", "documented_us", "modelled_us"}}
	for _, p := range rep.Ways {
		row := []string{p.Way}
		for _, v := range []float64{p.NS, p.Low, p.High, p.Instructions, p.Switches, p.Traps, p.Steps, p.SystemCalls, p.Documented, p.Modelled} {
			row = append(row, strconv.FormatFloat(v, 'f', -1, 64))
		}
		rows = append(rows, row)
	}
	return w.WriteAll(rows)
}
