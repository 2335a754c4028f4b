package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"

	"kprobelab/internal/outfile"
)

// Form chooses JSON, CSV or text for a report.
type Form struct {
	JSON, CSV bool
	// Real are the real kernels that text and JSON compare with, nil for none.
	Real *RealKernels
	// Plot is the file of a plot beside it, "" for none; CanPlot says which.
	Plot string
}

// plotForms maps the extension of a plot's file to the function that writes the plot.
var plotForms = map[string]func(*Report, io.Writer) error{".svg": (*Report).WriteSVG, ".png": (*Report).WritePNG}

// CanPlot reports whether the name of a file is that of a plot: it ends in .svg or .png.
func CanPlot(file string) bool { return plotForms[filepath.Ext(file)] != nil }

// Write writes a report, and its plot.
func (f *Form) Write(w io.Writer, r *Report) (err error) {
	switch {
	case f.JSON:
		err = r.WriteJSON(w, f.Real)
	case f.CSV:
		err = r.WriteCSV(w)
	case f.Real != nil:
		err = r.WriteAgainst(w, f.Real)
	default:
		err = r.WriteText(w)
	}
	if f.Plot == "" {
		return err
	}
	var b bytes.Buffer
	if drawn := plotForms[filepath.Ext(f.Plot)](r, &b); drawn != nil {
		return errors.Join(err, drawn)
	}
	return errors.Join(err, outfile.Write(f.Plot, b.Bytes()))
}

// WritePrograms writes the report of programs.
func (f *Form) WritePrograms(w io.Writer, r *ProgramReport) error {
	switch {
	case f.JSON:
		return json.NewEncoder(w).Encode(r)
	case f.CSV:
		return r.WriteCSV(w)
	}
	return r.WriteText(w)
}
