package debuginfo

import (
	"fmt"
	"io"

	"kprobelab/internal/perfprobe"
	"kprobelab/internal/source"
	"kprobelab/internal/tracing/definition"
)

// WriteVariables lists the variables of a place as perf probe -V does, with where each is, and with externs the global
// ones, too.
func WriteVariables(w io.Writer, f *source.File, text string, externs bool) error {
	p, err := perfprobe.ParsePlace(text)
	if err != nil {
		return err
	}
	n := 0
	err = f.Places(p.Where, func(at *source.Place) error {
		if !at.Described() {
			return fmt.Errorf("%w says what variables %s has; rebuild with -g, or give --debuginfo FILE", source.ErrNone, at.Function)
		}
		if n++; n == 1 {
			fmt.Fprintf(w, "Variables at %s\n", text)
		}
		fmt.Fprintf(w, "\t@<%s+%d>\n", at.Symbol, at.Offset)
		vars, err := at.Variables()
		if err != nil {
			return err
		}
		if externs {
			global, err := at.Globals()
			if err != nil {
				return err
			}
			vars = append(vars, global...)
		}
		for _, v := range vars {
			where := v.Location.String()
			if v.Location.Kind == source.Dropped && len(v.Readable) > 0 {
				where = "dropped here, kept at " + v.Ranges()
			}
			fmt.Fprintf(w, "\t\t%s\t%s\t%s\n", v.Type, v.Name, where)
		}
		if len(vars) == 0 {
			fmt.Fprintln(w, "\t\t(no variables)")
		}
		return nil
	})
	if err == nil && n == 0 {
		err = &source.NotFound{What: "the debugging information has no " + p.Where.String()}
	}
	return err
}

// WriteDefinitions writes what kprobe_events takes for a probe in perf's notation.
func WriteDefinitions(w io.Writer, by *perfprobe.Writer, text string) error {
	p, err := perfprobe.Parse(definition.ReadLine(text))
	if err != nil {
		return err
	}
	list, err := by.Define(p)
	if err != nil {
		return err
	}
	for _, d := range list {
		fmt.Fprintln(w, d.Line().Text)
	}
	return nil
}
