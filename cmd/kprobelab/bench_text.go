package main

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"

	"kprobelab/internal/bench"
	"kprobelab/internal/outfile"
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
		return rep.WriteJSON(w, r.real)
	case r.csv:
		return rep.WriteCSV(w)
	case r.real != nil:
		return rep.WriteAgainst(w, r.real)
	}
	return rep.WriteText(w)
}

// plotForms maps the extension of a plot's file to the function that writes the plot.
var plotForms = map[string]func(*bench.Report, io.Writer) error{
	".svg": (*bench.Report).WriteSVG,
	".png": (*bench.Report).WritePNG,
}

func writePlot(path string, rep *bench.Report) error {
	var b bytes.Buffer
	if err := plotForms[filepath.Ext(path)](rep, &b); err != nil {
		return err
	}
	return outfile.Write(path, b.Bytes())
}
