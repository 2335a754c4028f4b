package main

import (
	"errors"
	"fmt"
	"strings"

	"kprobelab"
	"kprobelab/errno"
	"kprobelab/internal/mailbox"
	"kprobelab/internal/script/attach"
	"kprobelab/internal/script/stap"
	"kprobelab/internal/session"
	"kprobelab/kimage"
	"kprobelab/x86"
)

// execute runs a script on a machine.
func (r *stapRun) execute(t *term, img *kimage.Image, s *stap.Script) error {
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
		return machineError(img, err)
	}
	defer lab.Close()
	l := session.New(lab)
	if err := l.Prepare(calls); err != nil {
		return &failure{exitRefused, oneLine(err)}
	}
	o := r.options(t, img)
	o.Machine, o.Kprobes = lab.Machine, lab.Kprobes
	o.Tracepoint = func(name string, hit func(*x86.PtRegs)) (func(), error) {
		remove, err := lab.Tracepoint(name, hit)
		return func() {
			if err := remove(); err != nil {
				o.Log("WARNING: " + err.Error())
			}
		}, err
	}
	run, err := attach.New(stapScript(s), o)
	if err != nil {
		return &failure{exitRefused, err}
	}
	run.Begin()
	err = lab.Settle()
	if err == nil && !run.Ended() {
		err = r.happen(t, l, run, calls, command)
	}
	run.Late()
	return errors.Join(r.ended(t, run), err)
}

// happen makes the calls and runs the program; without either, time passes.
func (r *stapRun) happen(t *term, l *session.Session, run *attach.Runner, calls []*session.Call, command *mailbox.Command) error {
	for _, c := range calls {
		if _, err := l.Make(c); err != nil {
			return &failure{exitRefused, fmt.Errorf("%s: %w", c.Name, oneLine(err))}
		}
	}
	if command == nil {
		if len(calls) == 0 {
			run.Wait(uint64(r.wait))
		}
		return nil
	}
	code, err := l.Exec(&kprobelab.Program{Args: command.Args, Env: command.Env, Stdin: command.Input, Stdout: t.out, Stderr: t.err})
	switch n := errno.Errno(0); {
	case errors.Is(err, kprobelab.ErrNoInit):
		return &failure{exitImage, fmt.Errorf("%s: %w", l.Image.Name(), err)}
	case err != nil && !errors.As(err, &n):
		return &failure{exitRefused, fmt.Errorf("%s: %w", command.Args[0], oneLine(err))}
	case err != nil:
		return &failure{exitRefused, oneLine(err)}
	case code != 0:
		fmt.Fprintf(t.err, "WARNING: Child process exited with status %d\n", code)
		return &failure{exitRefused, fmt.Errorf("%s ended with exit code %d", strings.TrimSpace(command.Args[0]), code)}
	}
	return nil
}
