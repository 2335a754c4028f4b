package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v3"

	"kprobelab/internal/bench"
	"kprobelab/internal/bounded"
)

const againstHelp = `
--against FILE compares with what real kernels took under QEMU's software emulation on the
same machine (make bench-qemu writes the file), each path with that kernel's release:

   ns         as above; handler says where the handlers of that figure were
   kernel     the real kernel, and what was probed there (form)
   real       nanoseconds per hit there, and the quartiles of its rounds
   times      real to ns; "2 x" says whether that is at least 2

--report FILE measures nothing, and shows what --json wrote before.
`

// benchFiles are the file that a run is compared with, and the one that is
// shown in place of a run.
type benchFiles struct {
	against, report string
	// real is what is in the first.
	real *bench.RealKernels
}

func (f *benchFiles) flags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "against", Destination: &f.against, Usage: "compare with the real kernels of `FILE`, which make bench-qemu writes"},
		&cli.StringFlag{Name: "report", Destination: &f.report, Usage: "measure nothing: show the report in `FILE`, which --json wrote"},
	}
}

// open checks the flags and reads the file of --against.
func (f *benchFiles) open(c *cli.Command) error {
	for _, other := range []string{"path", "rounds", "hits", "others", "handler", "hardware", "symbol", "image", "call", "programs"} {
		if err := oneOf(c, "report", other); err != nil {
			return err
		}
	}
	if err := errors.Join(oneOf(c, "csv", "against"), oneOf(c, "symbol", "against")); err != nil || f.against == "" {
		return err
	}
	text, err := bounded.ReadFile(f.against, bounded.BenchFile)
	if err != nil {
		return err
	}
	if f.real, err = bench.ParseReal(string(text)); err != nil {
		return &failure{exitImage, fmt.Errorf("%s: %w", f.against, err)}
	}
	return nil
}

// read is the report of --report.
func (f *benchFiles) read() (*bench.Report, error) {
	text, err := bounded.ReadFile(f.report, bounded.BenchFile)
	if err != nil {
		return nil, err
	}
	rep := &bench.Report{}
	if err = json.Unmarshal(text, rep); err == nil && (len(rep.Paths)+len(rep.Skipped) == 0 || rep.Rounds == 0) {
		err = errors.New("no path was measured")
	}
	if err != nil {
		return nil, &failure{exitImage, fmt.Errorf("%s: not what bench --json writes: %w", f.report, err)}
	}
	if rep.Target != nil && f.real != nil {
		return nil, usagef("--against: %s is of %s, which the real kernels did not measure", f.report, rep.Target.Place)
	}
	return rep, nil
}

// showJSON writes the report, with the comparison in it where there is one.
func (f *benchFiles) showJSON(out io.Writer, rep *bench.Report) error {
	whole := struct {
		*bench.Report
		Against []bench.Compared `json:"against,omitempty"`
		Noise   *bench.Noise     `json:"noise,omitempty"`
	}{Report: rep, Noise: rep.Noise()}
	if f.real != nil {
		whole.Against = rep.Against(f.real)
	}
	return json.NewEncoder(out).Encode(whole)
}

// againstTable is the comparison for people.
func againstTable(out io.Writer, rep *bench.Report, real *bench.RealKernels) error {
	list := rep.Against(real)
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "path\tprofile\thandler\tns\treal\tquartiles\ttimes\t2 x\tform\tkernel")
	var slower []string
	compared := 0
	for _, c := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", c.Path, word(c.Profile), word(c.Handler), hereNS(&c), realNS(&c), quartilesOf(&c),
			optional("%.2f", c.Times), verdict(&c), word(c.Form), word(c.Kernel))
		if c.Times == 0 {
			continue
		}
		compared++
		if !c.Twice() {
			slower = append(slower, fmt.Sprintf("%s (%s) %.2f", c.Path, c.Form, c.Times))
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%d can be compared, %d of them at least twice as fast as on the real kernel\n", compared, compared-len(slower))
	if len(slower) > 0 {
		fmt.Fprintln(out, "not twice as fast:", strings.Join(slower, ", "))
	}
	for _, m := range real.Machines {
		fmt.Fprintln(out, "the real kernels' machine:", m)
	}
	return benchNoise(out, rep)
}

// word stands for what is not there.
func word(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func hereNS(c *bench.Compared) string {
	if c.Profile == "" {
		return "not measured"
	}
	return fmt.Sprint(whole(c.NS))
}

func realNS(c *bench.Compared) string {
	switch {
	case c.RealError != "":
		return c.RealError
	case c.Kernel == "":
		return "not measured"
	}
	return fmt.Sprint(whole(c.RealNS))
}

func quartilesOf(c *bench.Compared) string {
	if c.Kernel == "" || c.RealError != "" {
		return "-"
	}
	return fmt.Sprintf("%d-%d", whole(c.RealLow), whole(c.RealHigh))
}

func verdict(c *bench.Compared) string {
	switch {
	case c.Times == 0:
		return "-"
	case c.Twice():
		return "yes"
	}
	return "no"
}
