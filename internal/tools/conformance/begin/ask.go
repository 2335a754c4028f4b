package begin

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A script without exit() in what runs goes on: after patience it is interrupted as by Ctrl-C, and killed where that does not end it.
const (
	patience = 10 * time.Second
	last     = 30 * time.Second
)

// answer is the exit code and the output of the tool, or of this program, for a script.
type answer struct {
	code      int
	out, said string
	// silent says that there was no answer in time, interrupted that it ended by the interrupt.
	silent, interrupted bool
}

// ask runs a script, which comes on standard input, and interrupts it after some time.
func ask(s script, patience time.Duration, command ...string) (answer, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c := exec.CommandContext(ctx, command[0], append(command[1:], append([]string{"-e", s.text, "--"}, s.args...)...)...)
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = last
	var o, e bytes.Buffer
	c.Stdout, c.Stderr = &o, &e
	// The time begins when the process does, however late a busy machine starts it.
	err := c.Start()
	if err == nil {
		defer time.AfterFunc(patience, cancel).Stop()
		err = c.Wait()
	}
	if c.ProcessState == nil {
		return answer{}, err
	}
	a := answer{code: c.ProcessState.ExitCode(), out: o.String(), said: e.String(), interrupted: ctx.Err() != nil}
	// An interrupt before the script ran, or the kill after it, ends the process by a signal.
	a.silent = a.interrupted && a.code < 0
	return a, nil
}

// ofSystem are lines that each of the two says of the system that it runs on, or of itself.
var ofSystem = regexp.MustCompile(`(?m)^(WARNING: [^\n]*RLIMIT_MEMLOCK[^\n]*|kprobelab: the script is not accepted)\n`)

func (a answer) cleaned() answer {
	a.said, a.interrupted = ofSystem.ReplaceAllString(a.said, ""), false
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
		same := sorted(theirs.out) == sorted(ours.out)
		if top.MatchString(s.text) { // of elements with equal values others are left
			left := func(out string) string {
				return sorted(keyed.ReplaceAllString(buckets.ReplaceAllString(out, "$1"), "$1"))
			}
			same = left(theirs.out) == left(ours.out)
		}
		return same && strings.Contains(s.text, "@") && theirs.code == ours.code && theirs.said == ours.said
	}},
	{"delete() and has_key() of a histogram read past its key, what is on the stack", func(s script, theirs, ours answer) bool {
		for _, m := range histogram.FindAllStringSubmatch(s.text, -1) {
			if strings.Contains(s.text, "delete("+m[1]) || strings.Contains(s.text, "has_key("+m[1]) {
				return theirs.code == ours.code
			}
		}
		return false
	}},
	{"printf() hands what is no directive of the tool's to C's, which then reads what is not there", func(s script, theirs, ours answer) bool {
		return theirs.code == ours.code && theirs.said == ours.said && ofC.MatchString(s.text)
	}},
	{"&& and || of integers below 64 bits are written past a variable of their width", func(s script, theirs, ours answer) bool {
		return theirs.code == ours.code && theirs.said == ours.said && writesPast(s.text)
	}},
	{"the kernel's verifier refuses what the tool makes", func(_ script, theirs, _ answer) bool {
		return strings.Contains(theirs.said, "Error loading BPF program") || strings.Contains(theirs.said, "Error loading program")
	}},
}

// top matches a print() of the largest elements of a map, keyed the line of an element, buckets a histogram's lines.
var (
	top     = regexp.MustCompile(`print\(@\w*, [1-9]`)
	keyed   = regexp.MustCompile(`(?m)^(@\w*)\[[^\n]*\]`)
	buckets = regexp.MustCompile(`(?m)^(@\w*\[[^\n]*\]:\n)(?:[\[(][^\n|]*\|[@ ]{52}\|\n)+`)
)

// histogram matches the map that a histogram goes into.
var histogram = regexp.MustCompile(`(@\w+)(?:\[[^;]*\])? = l?hist\(`)

// ofC matches a directive of C's that the tool has not, before another directive.
var ofC = regexp.MustCompile(`%[-0]*[ +#][-+ #0-9.]*[a-zA-Z][^"]*%`)

// given matches a variable and what it gets, logical the text before && or || in that, below a cast to less than
// 64 bits, local a variable.
var (
	given   = regexp.MustCompile(`(\$\w+) = ([^;]*)`)
	logical = regexp.MustCompile(`^(.*?)(?:&&|\|\|)`)
	below   = regexp.MustCompile(`\(u?int(?:8|16|32)\)`)
	local   = regexp.MustCompile(`\$\w+`)
)

// writesPast says whether a variable gets the result of && or || whose operands before it have less than 64 bits:
// the tool makes the variable as wide as they are, and writes 64 bits into it.
func writesPast(text string) bool {
	short := map[string]bool{}
	isShort := func(expr string) bool {
		return below.MatchString(expr) || slices.ContainsFunc(local.FindAllString(expr, -1), func(name string) bool { return short[name] })
	}
	for _, m := range given.FindAllStringSubmatch(text, -1) {
		if before := logical.FindStringSubmatch(m[2]); before != nil && isShort(before[1]) {
			return true
		}
		short[m[1]] = short[m[1]] || isShort(m[2])
	}
	return false
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
