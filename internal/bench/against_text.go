package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// WriteJSON writes the report, with the comparison in it where there are real kernels to compare with.
func (r *Report) WriteJSON(out io.Writer, real *RealKernels) error {
	line := struct {
		*Report
		Against []Compared `json:"against,omitempty"`
		Noise   *Noise     `json:"noise,omitempty"`
	}{Report: r, Noise: r.Noise()}
	if real != nil {
		line.Against = r.Against(real)
	}
	return json.NewEncoder(out).Encode(line)
}

// ParseReport reads the output of WriteJSON.
func ParseReport(text []byte) (*Report, error) {
	r := &Report{}
	err := json.Unmarshal(text, r)
	if err == nil && (len(r.Paths)+len(r.Skipped) == 0 || r.Rounds == 0) {
		err = errors.New("no path was measured")
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// WriteAgainst writes the comparison with real kernels for people.
func (r *Report) WriteAgainst(out io.Writer, real *RealKernels) error {
	list := r.Against(real)
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "path\tprofile\thandler\tns\treal\tquartiles\ttimes\t2 x\tform\tkernel")
	var slower []string
	compared := 0
	for _, c := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", c.Path, orDash(c.Profile), orDash(c.Handler), hereNS(&c), realNS(&c), quartilesOf(&c),
			optional("%.2f", c.Times), verdict(&c), orDash(c.Form), orDash(c.Kernel))
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
	return r.writeNoise(out)
}

// orDash replaces an empty text by a dash.
func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func hereNS(c *Compared) string {
	if c.Profile == "" {
		return "not measured"
	}
	return fmt.Sprint(wholeNumber(c.NS))
}

func realNS(c *Compared) string {
	switch {
	case c.RealError != "":
		return c.RealError
	case c.Kernel == "":
		return "not measured"
	}
	return fmt.Sprint(wholeNumber(c.RealNS))
}

func quartilesOf(c *Compared) string {
	if c.Kernel == "" || c.RealError != "" {
		return "-"
	}
	return fmt.Sprintf("%d-%d", wholeNumber(c.RealLow), wholeNumber(c.RealHigh))
}

func verdict(c *Compared) string {
	switch {
	case c.Times == 0:
		return "-"
	case c.Twice():
		return "yes"
	}
	return "no"
}
