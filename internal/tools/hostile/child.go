//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// tryOut is one case.
type tryOut struct {
	*attacker
	rng    *rand.Rand
	dir    string
	kind   string
	number int
	bad    bool
	// guest: the exit code and the output come from a program in the sandbox.
	guest bool
	// env is added to the program's environment.
	env []string
	// ends are exit codes of the program beside the usual ones.
	ends []int
	// says is set if what the program has to say of its exit code is on standard output, as a verdict is.
	says bool
}

// exits is the case with one more exit code that is right.
func (c *tryOut) exits(code int) *tryOut {
	c.ends = append(c.ends, code)
	return c
}

// file writes a file of the case.
func (c *tryOut) file(name string, b []byte) string {
	path := filepath.Join(c.dir, name)
	if err := os.WriteFile(path, b, 0o600); err != nil {
		c.found("", err.Error())
	}
	return path
}

func (c *tryOut) found(command, what string) {
	c.bad = true
	_ = os.WriteFile(filepath.Join(c.dir, "finding"), []byte(command+"\n"+what+"\n"), 0o600)
	c.tally.found(c.number, c.kind, what+"\n    "+command)
}

// keep holds the beginning of what is written to it, and looks at all of it.
type keep struct {
	b    bytes.Buffer
	n    int64
	seen []byte // control characters
}

const kept = 64 << 10

func (k *keep) Write(b []byte) (int, error) {
	k.n += int64(len(b))
	k.b.Write(b[:min(len(b), kept-min(kept, k.b.Len()))])
	for _, x := range b {
		if (x < ' ' && x != '\n' && x != '\t' || x == 0x7f) && len(k.seen) < 8 {
			k.seen = append(k.seen, x)
		}
	}
	return len(b), nil
}

var crashed = regexp.MustCompile(`(?m)^(panic:|fatal error:|goroutine \d+|SIG[A-Z]+:|runtime:)|BUG:|runtime error|nil pointer|handler panicked`)

// run runs the program, and judges how it ended.
func (c *tryOut) run(stdin io.Reader, args ...string) { c.runProgram(c.program, stdin, args...) }

// runProgram is run for any program, and returns what it printed.
func (c *tryOut) runProgram(program string, stdin io.Reader, args ...string) string {
	ctx, cancel := context.WithTimeout(context.Background(), c.o.patience())
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = c.dir
	cmd.Env = append(append(os.Environ(), "KPROBELAB_CACHE=off"), c.env...)
	cmd.Stdin = stdin
	var out, errs keep
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.WaitDelay = time.Second
	began := time.Now()
	err := cmd.Run()
	took := time.Since(began)
	command := strings.Join(append(slices.Clone(c.env), filepath.Base(program)), " ") + " " + quoted(args)
	c.tally.ran(c.kind, took, busy(cmd), usage(cmd), command)
	if what := c.judge(cmd, err, took, &out, &errs); what != "" {
		c.found(command, what)
	}
	return out.b.String()
}

func (c *tryOut) judge(cmd *exec.Cmd, err error, took time.Duration, out, errs *keep) string {
	text := errs.b.String()
	var exit *exec.ExitError
	switch {
	case took >= c.o.patience():
		return fmt.Sprintf("still running after %s, %s of processor time", c.o.patience(), busy(cmd))
	case busy(cmd) >= c.o.limit:
		return fmt.Sprintf("took %s of processor time", busy(cmd))
	case err != nil && !errors.As(err, &exit):
		return err.Error()
	case (cmd.ProcessState.ExitCode() < 0 || cmd.ProcessState.ExitCode() > 5 && !c.guest) && !slices.Contains(c.ends, cmd.ProcessState.ExitCode()):
		return fmt.Sprintf("%s: %s", cmd.ProcessState, first(text))
	case crashed.MatchString(text):
		return "crashed: " + first(text)
	case exit != nil && strings.TrimSpace(text) == "" && !c.guest && !(c.says && out.n > 0):
		return fmt.Sprintf("exit code %d without a word", exit.ExitCode())
	case len(out.seen)+len(errs.seen) > 0 && !c.guest: // to a pipe, a program's bytes are written as they are
		return fmt.Sprintf("control characters on the terminal: %q%q", out.seen, errs.seen)
	case usage(cmd) > c.o.memory:
		return fmt.Sprintf("took %d MiB", usage(cmd)>>20)
	}
	return ""
}

// usage is the most memory that the program had, in bytes.
func usage(cmd *exec.Cmd) int64 {
	if r, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		return r.Maxrss << 10
	}
	return 0
}

// busy returns the time that the program spent on a processor. Other work of the host
// changes it less than the real time.
func busy(cmd *exec.Cmd) time.Duration {
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}

func first(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}

func quoted(args []string) string {
	list := make([]string, len(args))
	for i, a := range args {
		list[i] = fmt.Sprintf("%q", a)
	}
	return strings.Join(list, " ")
}
