package main

import (
	"errors"
	"fmt"

	"kprobelab"
	"kprobelab/errno"
	"kprobelab/internal/printk"
)

// exec runs a program on the booted kernel.
func (r *runner) exec(j bound) error {
	c := j.program
	code, err := r.lab.Exec(&kprobelab.Program{
		Args: c.Args, Env: c.Env, Dir: c.Dir, Stdin: c.Input,
		Stdout: stream{r.out, 1}, Stderr: stream{r.out, 2},
	})
	name := c.Args[0]
	switch {
	case errors.Is(err, kprobelab.ErrNoInit):
		return &failure{exitImage, fmt.Errorf("%s: %w", r.lab.Image.Name(), err)}
	case err != nil:
		r.out.exited(j.text, -1)
		if n := errno.Errno(0); !errors.As(err, &n) {
			err = fmt.Errorf("%s: %w", name, err)
		}
		return &failure{exitRefused, oneLine(err)}
	}
	r.out.exited(j.text, code)
	if code != 0 && r.ended == nil {
		r.ended = &failure{code, fmt.Errorf("%s ended with exit code %d", name, code)}
	}
	return nil
}

// stream is what a program writes to.
type stream struct {
	out output
	fd  int
}

// Write implements io.Writer.
func (s stream) Write(b []byte) (int, error) { return len(b), s.out.wrote(s.fd, b) }

// logged takes what the booted kernel has logged since the last time, and shows it.
func (r *runner) logged(show bool) error {
	if r.kernelLog == nil {
		l, err := printk.Of(r.lab.Image, r.lab.Machine.ReadMem)
		if err != nil {
			return &failure{exitImage, fmt.Errorf("--dmesg: %w", err)}
		}
		r.kernelLog = l
	}
	list, err := r.kernelLog.Since(r.seq)
	for _, m := range list {
		r.seq = m.Seq + 1
		if show {
			r.out.log("dmesg", m.String())
		}
	}
	return err
}
