package report

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"kprobelab/kprobes/hazard"
	"kprobelab/profile"
)

// HazardRow is a row of the table of hazards, with the kernels that have it.
type HazardRow struct {
	hazard.Hazard
	// Kernels are the releases in words, Mainline whether the newest release that is
	// known has it.
	Kernels  string `json:"kernels"`
	Mainline bool   `json:"mainline"`
	// Here says whether the image's kernel has it; nil if there is no image.
	Here *bool `json:"here,omitempty"`
}

// HazardTable is the table; c, when not nil, is the profile of an image's kernel.
func HazardTable(c *profile.Config) []HazardRow {
	var list []HazardRow
	for _, h := range hazard.All() {
		r := HazardRow{Hazard: h, Kernels: h.Span().String(), Mainline: h.InMainline()}
		if c != nil {
			in := h.In(c)
			r.Here = &in
		}
		list = append(list, r)
	}
	return list
}

// WriteHazardTable writes the table for people.
func WriteHazardTable(out io.Writer) error {
	w := bufio.NewWriter(out)
	for _, r := range HazardTable(nil) {
		fmt.Fprintf(w, "%s  %s\n    %s\n", r.ID, r.Effect, r.Sentence)
		if r.Needs != "" {
			fmt.Fprintf(w, "    needs: %s\n", r.Needs)
		}
		fmt.Fprintf(w, "    kernels: %s\n", r.Kernels)
		if r.Field != "" {
			fmt.Fprintf(w, "    decided by: %s\n", r.Field)
		}
		fmt.Fprintf(w, "    cause: %s\n    evidence: %s\n\n", r.Cause, r.Evidence)
	}
	fmt.Fprintln(w, "kprobelab hazards IMAGE lists the points of a kernel; docs/hazards.md has the results of booted kernels.")
	return w.Flush()
}

// WriteHazardTableTSV writes a header, and a line for each hazard.
func WriteHazardTableTSV(out io.Writer) error {
	w := bufio.NewWriter(out)
	fmt.Fprintln(w, "hazard\teffect\tkernels\tmainline\tfield\tneeds\tsentence")
	for _, r := range HazardTable(nil) {
		mainline := 0
		if r.Mainline {
			mainline = 1
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\t%s\n", r.ID, r.Effect, r.Kernels, mainline, r.Field, r.Needs, r.Sentence)
	}
	return w.Flush()
}

// WriteHazardTableJSON writes an object for each hazard, one a line.
func WriteHazardTableJSON(out io.Writer) error { return eachJSON(out, HazardTable(nil)) }

// WriteHazardsTSV writes a header, and a line for each point and hazard.
func WriteHazardsTSV(out io.Writer, list []HazardPoint) error {
	w := bufio.NewWriter(out)
	fmt.Fprintln(w, "address\tsymbol\toffset\thazard\teffect")
	for i := range list {
		p := &list[i]
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\n", p.Addr, p.Symbol, p.Offset, p.Hazard, p.Effect)
	}
	return w.Flush()
}

// WriteHazardsJSON writes an object for each point and hazard, one a line.
func WriteHazardsJSON(out io.Writer, list []HazardPoint) error { return eachJSON(out, list) }

func eachJSON[T any](out io.Writer, list []T) error {
	w := bufio.NewWriter(out)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for i := range list {
		if err := enc.Encode(&list[i]); err != nil {
			return err
		}
	}
	return w.Flush()
}

// WriteHazards writes the points as text, by function, each with the commands that make
// the hazard happen; and at the end the number of each kind, and the kernel's hazards
// that belong to no point.
func WriteHazards(out io.Writer, list []HazardPoint, c *profile.Config) error {
	w := bufio.NewWriter(out)
	totals := newTotals()
	function := ""
	for i := range list {
		p := &list[i]
		if i == 0 || p.Symbol != function {
			function = p.Symbol
			fmt.Fprintf(w, "%s\n", function)
		}
		totals.Hazards[hazardKey{p.Hazard, p.Effect}]++
		writePoint(w, p)
	}
	if len(list) == 0 {
		fmt.Fprintln(w, "no point of the text has a hazard")
	}
	const width = 6
	totals.writeHazards(w, width, func(n int, what string) { fmt.Fprintf(w, "%*d  %s\n", width, n, what) })
	writeUnpointed(w, c)
	return w.Flush()
}

func writePoint(w io.Writer, p *HazardPoint) {
	fmt.Fprintf(w, "  +%#x  %s  %s  %s\n", p.Offset, p.Addr, p.Hazard, p.Effect)
	fmt.Fprintf(w, "      %s\n", p.Says)
	r := p.Reproducer
	if r == nil {
		return
	}
	if r.Define == "" {
		fmt.Fprintf(w, "      register_kprobe in a module: kprobe_events refuses a function without an ftrace site\n")
	} else {
		fmt.Fprintf(w, "      echo '%s' > /sys/kernel/tracing/kprobe_events\n", r.Define)
		fmt.Fprintf(w, "      echo 1 > /sys/kernel/tracing/events/kprobes/h/enable\n")
	}
	if r.Run == "" {
		fmt.Fprintf(w, "      then code that calls %s; no system call reaches it by direct calls alone\n", p.Symbol)
	} else {
		fmt.Fprintf(w, "      then %s(2): %s\n", r.Run, strings.Join(r.Path, " > "))
	}
}

// writeUnpointed writes the hazards of the kernel that belong to no point.
func writeUnpointed(w io.Writer, c *profile.Config) {
	first := true
	for _, h := range hazard.All() {
		if h.Needs == "" || !h.In(c) {
			continue
		}
		if first {
			fmt.Fprintln(w, "\nof no point by itself")
			first = false
		}
		fmt.Fprintf(w, "  %s, %s: %s\n      needs %s\n", h.ID, h.Effect, h.Sentence, h.Needs)
	}
}
