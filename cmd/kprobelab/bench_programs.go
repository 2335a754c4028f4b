package main

import (
	"bufio"
	"encoding/json"
	"errors"

	"github.com/urfave/cli/v3"

	"kprobelab/internal/bench"
	"kprobelab/internal/cmdline"
	"kprobelab/kimage"
)

// programs measures probes on a program.
func (r *benchRun) programs(t *term, c *cli.Command) error {
	for _, other := range []string{"path", "others", "handler", "plot", "against", "symbol", "image", "call"} {
		if err := cmdline.OneOf(c, "programs", other); err != nil {
			return err
		}
	}
	o := &bench.ProgramOptions{
		Open: func() (*kimage.Image, error) { return openImage(t, c, c.String("programs")) },
		Hits: r.o.Hits, Hardware: r.o.Hardware,
		Progress: func(stage string, done, total int64) { t.Count(stage, "rounds", done, total) },
	}
	if c.IsSet("rounds") {
		o.Rounds = r.o.Rounds
	}
	rep, err := bench.Programs(o)
	t.ProgressDone()
	if err != nil {
		return benchFailure(err)
	}
	w := bufio.NewWriter(t.Out)
	switch {
	case r.json:
		err = json.NewEncoder(w).Encode(rep)
	case r.csv:
		err = rep.WriteCSV(w)
	default:
		err = rep.WriteText(w)
	}
	return errors.Join(err, w.Flush())
}
