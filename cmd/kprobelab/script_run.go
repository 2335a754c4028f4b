package main

import (
	"errors"
	"fmt"
	"math"
	"os"

	"github.com/urfave/cli/v3"

	"kprobelab/internal/bounded"
	"kprobelab/internal/cmdline"
	"kprobelab/kimage"
	"kprobelab/run"
	"kprobelab/script"
)

// scriptRun runs a script of any language, and makes happen what it waits for.
type scriptRun struct {
	plan  run.Script
	stats bool
}

// options reads the options that every language has.
func (r *scriptRun) options(c *cli.Command, name string, args []string) script.Options {
	return script.Options{Name: name, Args: args, Debuginfo: c.String(debuginfoFlagName), Modules: c.StringSlice("module"), Command: r.plan.Command}
}

// readScript reads the script that the first argument names, - for standard input; its name is "" then.
func readScript(args []string) (name, text string, rest []string, err error) {
	var b []byte
	if name = args[0]; name == "-" {
		name = ""
		b, err = bounded.ReadAll(os.Stdin, bounded.Script)
	} else {
		b, err = bounded.ReadFile(name, bounded.Script)
	}
	if err != nil {
		err = fail(exitImage, err)
	}
	return name, string(b), args[1:], err
}

// unread returns the error of a script that cannot be read, and prints the tool's messages about it.
func (t *term) unread(err error) error {
	var refused *script.RefusedError
	if errors.As(err, &refused) {
		fmt.Fprint(t.Err, refused.Text)
		return fail(exitRefused, err)
	}
	return run.SourceError(err)
}

// start runs the script and says how it ended.
func (r *scriptRun) start(t *term, img *kimage.Image, s *script.Script) error {
	p := r.plan
	p.Output, p.Stdout, p.Stderr = t.scriptOutput(), t.RawOut, t.RawErr
	return r.ended(t)(p.Run(img, s))
}

// ended prints the counts that are asked for, and gives the script's own exit code.
func (r *scriptRun) ended(t *term) func(done *run.Scripted, err error) error {
	return func(done *run.Scripted, err error) error {
		if done == nil {
			return err
		}
		if r.stats {
			printCounts(t, done.Counts)
		}
		if done.Code != 0 {
			return errors.Join(fail(done.Code, cmdline.ErrSaid), err)
		}
		return err
	}
}

// outputTo is the terminal with a file in the place of its output, "" for none. closed closes the file, and adds what went wrong.
func (t *term) outputTo(name string) (to *term, closed func(*error), err error) {
	out, done, err := t.ToFile(name)
	if err != nil {
		return nil, nil, fail(exitImage, err)
	}
	return &term{Term: out, args: t.args}, func(ferr *error) {
		if err := done(); err != nil {
			*ferr = fail(exitImage, errors.Join(err, *ferr))
		}
	}, nil
}

// scriptOutput takes what a script prints: the bytes go to its -o file, or pass as a program's do.
func (t *term) scriptOutput() *script.Output {
	return &script.Output{Out: t.Bytes(), Log: func(line string) { fmt.Fprintln(t.Err, line) }}
}

// printCounts is the table of --stats.
func printCounts(t *term, list []script.Counts) {
	fmt.Fprintf(t.Err, "%-12s %8s %8s %-16s %s\n", "planted", "hits", "missed", "statements", "probe")
	for _, c := range list {
		cost, how := "-", "-"
		if c.Hits > 0 {
			cost = fmt.Sprintf("%d/%d/%d", c.Least, c.Sum/int(min(c.Hits, math.MaxInt)), c.Most)
		}
		if c.How != "" {
			how = c.How
		}
		fmt.Fprintf(t.Err, "%-12s %8d %8d %-16s %s\n", how, c.Hits, c.Missed, cost, c.Probe)
	}
}
