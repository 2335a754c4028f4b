package main

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

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

// beginning returns the flags with which the help of every language begins.
func (r *scriptRun) beginning() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "script", Aliases: []string{"e"}, Usage: "the `SCRIPT` itself, not a file's name"},
		&cli.StringFlag{Name: "release", Aliases: []string{"r"}, Usage: "run on this `IMAGE` or dump (default: the guest kernel)"},
		&cli.StringFlag{Name: "command", Aliases: []string{"c"}, Destination: &r.plan.Command, Usage: "on a booted kernel, run the program `'PROGRAM ARGS'` and end when it ends"},
		&cli.StringSliceFlag{Name: "call", Destination: &r.plan.Calls, Usage: "make this `CALL`, as in kprobelab run (repeatable)"},
	}
}

// scriptOutputFlag names the file of a script's output.
func scriptOutputFlag() cli.Flag {
	return &cli.StringFlag{Name: "output", Aliases: []string{"o"}, TakesFile: true, Usage: "write the script's output to this `FILE`"}
}

// end returns the flags with which the help of every language ends, and the options of its tool.
func (r *scriptRun) end(t *term, tool *cmdline.Tool, letters ...string) []cli.Flag {
	return slices.Concat([]cli.Flag{
		&cli.BoolFlag{Name: "stats", Aliases: letters, Destination: &r.stats, Usage: "print, on standard error, how each probe was planted, its hits, misses and statements"},
		&cli.Uint64Flag{Name: "budget", Value: run.ProgramBudget, Destination: &r.plan.Budget, Usage: "stop a call or the program after this many guest `INSTRUCTIONS`"},
		&cli.DurationFlag{Name: "for", Value: time.Minute, Destination: &r.plan.Wait, Usage: "without -c and --call, let this much virtual `TIME` pass at most"},
		decoderFlag("x86asm"), debuginfoFlag(),
		rawFlag(t),
	}, tool.Flags(), imageFlags())
}

// source returns the script and its arguments. Unless given, the first argument is the script's file, - for standard input; its
// name is "" then.
func (r *scriptRun) source(c *cli.Command, given bool) (name, text string, args []string, err error) {
	args = c.Args().Slice()
	switch {
	case given:
		return "", c.String("script"), args, nil
	case len(args) == 0:
		return "", "", nil, usagef("%s takes a script: a file, - for standard input, or -e SCRIPT; try %s --help", c.Name, c.FullName())
	}
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

// openReleased opens the image of --release or --kernel.
func openReleased(t *term, c *cli.Command) (*kimage.Image, error) {
	kernel, err := kernelOf(c, "release")
	if err != nil {
		return nil, err
	}
	return openImage(t, c, kernel)
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
			script.WriteCounts(t.Err, done.Counts)
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

// The options of stap and bpftrace that these commands take, so that a command line of the tool's works here.
//
//go:embed tools/stap.txt
var stapOptions string

//go:embed tools/bpftrace.txt
var bpftraceOptions string

var stapTool, bpftraceTool = cmdline.ReadTool("stap", stapOptions), cmdline.ReadTool("bpftrace", bpftraceOptions)

// asTool answers -V, and refuses options of a tool that cannot be had.
func (t *term) asTool(c *cli.Command, tool *cmdline.Tool) (done bool, err error) {
	if c.Bool("version") {
		fmt.Fprintf(t.Out, "%s, as kprobelab has it\n", tool.Version)
		return true, nil
	}
	return false, tool.Refuses(c)
}
