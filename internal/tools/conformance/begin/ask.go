package main

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"
)

// patience is how long a script may take.
const patience = 30 * time.Second

// answer is what one of the two makes of a script.
type answer struct {
	code      int
	out, said string
	// silent says that there was no answer in time.
	silent bool
}

// ask runs a script, which comes on standard input.
func ask(s script, command ...string) (answer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c := exec.CommandContext(ctx, command[0], append(command[1:], append([]string{"-e", s.text, "--"}, s.args...)...)...)
	c.WaitDelay = time.Second
	var o, e bytes.Buffer
	c.Stdout, c.Stderr = &o, &e
	err := c.Run()
	a := answer{out: o.String(), said: e.String(), silent: ctx.Err() != nil}
	var ended *exec.ExitError
	if errors.As(err, &ended) || a.silent {
		a.code, err = c.ProcessState.ExitCode(), nil
	}
	return a, err
}

// ofSystem are lines that each of the two says of the system that it runs on, or of itself.
var ofSystem = regexp.MustCompile(`(?m)^(WARNING: [^\n]*RLIMIT_MEMLOCK[^\n]*|kprobelab: the script is not accepted)\n`)

func (a answer) cleaned() answer {
	a.said = ofSystem.ReplaceAllString(a.said, "")
	return a
}

// causes are reasons for which the two may differ.
var causes = []struct {
	cause string
	is    func(s script, theirs, ours answer) bool
}{
	{"the tool ends with a fault", func(_ script, theirs, _ answer) bool {
		return theirs.code < 0 || theirs.code > 128 || strings.Contains(theirs.said, "PLEASE submit a bug report")
	}},
	{"the kernel lacks what the tool needs", func(_ script, theirs, _ answer) bool {
		return strings.Contains(theirs.said, "available for your kernel version") || strings.Contains(theirs.said, "(is tracefs mounted?)")
	}},
	{"it asks for what is refused by name", func(_ script, _, ours answer) bool {
		return strings.Contains(ours.said, "cat(): there are no files") || strings.Contains(ours.said, "unwatch(): a watchpoint stays")
	}},
	{"elements with equal values come in the order of the tool's hashes", func(s script, theirs, ours answer) bool {
		return strings.Contains(s.text, "@") && theirs.code == ours.code && theirs.said == ours.said && sorted(theirs.out) == sorted(ours.out)
	}},
	{"the kernel's verifier refuses what the tool makes", func(_ script, theirs, _ answer) bool {
		return strings.Contains(theirs.said, "Error loading BPF program") || strings.Contains(theirs.said, "Error loading program")
	}},
}

// sorted are the lines of an output in their order as texts.
func sorted(out string) string {
	lines := strings.Split(out, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func causeOf(s script, theirs, ours answer) string {
	for _, c := range causes {
		if c.is(s, theirs, ours) {
			return c.cause
		}
	}
	return ""
}
