package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"kprobelab"
	"kprobelab/booted"
	"kprobelab/errno"
	"kprobelab/internal/callsyntax"
	"kprobelab/internal/mailbox"
	"kprobelab/internal/session"
	"kprobelab/kimage"
	"kprobelab/run"
	"kprobelab/script"
)

// scriptRun runs a script of any language, and makes happen what it waits for.
type scriptRun struct {
	calls   []string
	command string
	budget  uint64
	wait    time.Duration
	stats   bool
	// anyCode says that the program of -c may end as it likes.
	anyCode bool
}

// options reads the options that every language has.
func (r *scriptRun) options(c *cli.Command, name string, args []string) script.Options {
	return script.Options{Name: name, Args: args, Debuginfo: c.String(debuginfoFlagName), Modules: c.StringSlice("module"), Command: r.command}
}

// unread is the error of a script that cannot be read: what its tool says is printed.
func (t *term) unread(err error) error {
	var refused *script.RefusedError
	if errors.As(err, &refused) {
		fmt.Fprint(t.err, refused.Text)
		return &failure{exitRefused, err}
	}
	return sourceError(err)
}

// start runs the script, on a machine only where it needs one.
func (r *scriptRun) start(t *term, img *kimage.Image, s *script.Script) error {
	if r.wait <= 0 {
		return usagef("--for: %s is no time that can pass", r.wait)
	}
	if r.command == "" && len(r.calls) == 0 && !s.Waits() {
		started, err := s.Start(nil, t.scriptOutput())
		if err != nil {
			return &failure{exitRefused, err}
		}
		started.Wait(r.wait)
		return r.ended(t, started)
	}
	if r.command != "" && img.Core() == nil {
		return &failure{exitImage, fmt.Errorf("%s: -c needs the memory dump of a booted kernel; kprobelab boot makes one", img.Name())}
	}
	return r.execute(t, img, s)
}

// outputTo is the terminal with a file in the place of its output, "" for none. closed closes the file, and adds what went wrong.
func (t *term) outputTo(name string) (to *term, closed func(*error), err error) {
	if name == "" {
		return t, func(*error) {}, nil
	}
	f, err := os.Create(name)
	if err != nil {
		return nil, nil, &failure{exitImage, err}
	}
	w := &latch{w: f, most: t.written.most, over: t.written.over}
	out := *t
	out.out, out.rawFile = w, w
	return &out, func(ferr *error) {
		if w.err = errors.Join(w.err, f.Close()); w.err != nil {
			*ferr = &failure{exitImage, errors.Join(w.err, *ferr)}
		}
	}, nil
}

// scriptOutput takes what a script prints: the bytes go to its -o file, or pass as a program's do.
func (t *term) scriptOutput() *script.Output {
	out := t.rawFile
	if out == nil {
		out = t.rawOut
	}
	return &script.Output{Out: out, Log: func(line string) { fmt.Fprintln(t.err, line) }}
}

// execute runs a script on a machine.
func (r *scriptRun) execute(t *term, img *kimage.Image, s *script.Script) error {
	var calls []*session.Call
	for _, text := range r.calls {
		c, err := session.BindCall(img, text)
		if err != nil {
			return bad(err)
		}
		calls = append(calls, c)
	}
	var command *mailbox.Command
	if r.command != "" {
		c, err := mailbox.Program(mailbox.Exec, r.command, nil)
		if err != nil {
			return usagef("-c: %w", err)
		}
		command = &c
	}
	lab, err := kprobelab.New(img, &kprobelab.Options{Budget: r.budget, Optimize: true})
	if err != nil {
		return run.MachineError(img, err)
	}
	defer lab.Close()
	l := session.New(lab)
	if err := l.Prepare(calls); err != nil {
		return &failure{exitRefused, run.OneLine(err)}
	}
	started, err := s.Start(lab, t.scriptOutput())
	if err != nil {
		return &failure{exitRefused, err}
	}
	if !started.Ended() {
		err = r.happen(t, l, started, calls, command)
	}
	return errors.Join(r.ended(t, started), err)
}

// happen makes the calls and runs the program; without either, time passes.
func (r *scriptRun) happen(t *term, l *session.Session, started *script.Run, calls []*session.Call, command *mailbox.Command) error {
	for _, c := range calls {
		if _, err := l.Make(c); err != nil {
			return &failure{exitRefused, fmt.Errorf("%s: %w", c.Name, run.OneLine(err))}
		}
	}
	if command == nil {
		if len(calls) == 0 {
			started.Wait(r.wait)
		}
		return nil
	}
	code := 0
	k, err := l.Booted()
	if err == nil {
		code, err = k.Exec(&booted.Program{Args: command.Args, Env: command.Env, Stdin: command.Input, Stdout: t.rawOut, Stderr: t.rawErr})
	}
	switch n := errno.Errno(0); {
	case errors.Is(err, booted.ErrNoInit):
		return &failure{exitImage, fmt.Errorf("%s: %w", l.Image.Name(), err)}
	case err != nil && !errors.As(err, &n):
		return &failure{exitRefused, fmt.Errorf("%s: %w", command.Args[0], run.OneLine(err))}
	case err != nil:
		return &failure{exitRefused, run.OneLine(err)}
	case code != 0 && !r.anyCode:
		fmt.Fprintf(t.err, "WARNING: Child process exited with status %d\n", code)
		return &failure{exitRefused, fmt.Errorf("%s ended with exit code %d", strings.TrimSpace(command.Args[0]), code)}
	}
	return nil
}

// ended runs the end probes and says how the script ended.
func (r *scriptRun) ended(t *term, started *script.Run) error {
	err := started.Close()
	if r.stats {
		printCounts(t, started.Counts())
	}
	if err != nil {
		return &failure{exitRefused, err}
	}
	if code := started.Code(); code != 0 {
		return &failure{code, errSaid}
	}
	return nil
}

// printCounts is the table of --stats.
func printCounts(t *term, list []script.Counts) {
	fmt.Fprintf(t.err, "%-12s %8s %8s %-16s %s\n", "planted", "hits", "missed", "statements", "probe")
	for _, c := range list {
		cost, how := "-", "-"
		if c.Hits > 0 {
			cost = fmt.Sprintf("%d/%d/%d", c.Least, c.Sum/int(min(c.Hits, math.MaxInt)), c.Most)
		}
		if c.How != "" {
			how = c.How
		}
		fmt.Fprintf(t.err, "%-12s %8d %8d %-16s %s\n", how, c.Hits, c.Missed, cost, c.Probe)
	}
}

// bad is an error of a call's text.
func bad(err error) error {
	var syntax *callsyntax.Error
	if errors.As(err, &syntax) {
		return fmt.Errorf("--call: %w", err)
	}
	return &failure{exitUsage, fmt.Errorf("--call: %w", err)}
}
