// Package aliases compares the probe aliases of this program's library with those of the
// real tapset: the variables that each sets, their types, and which argument of a system
// call a variable is, and how wide.
//
// What the real tool lists (stap -L) decides for aliases of entries. Of return probes it
// lists next to nothing, so the tapset's text decides there, and for arguments. Neither is
// kept: both are read from the tool's package at each run. It ends with 1 where something
// differs that has no cause in causes.go.
package aliases

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"kprobelab/internal/tools/conformance/verb"
)

// Run runs the verb aliases.
func Run(args []string) error {
	f := flag.NewFlagSet("aliases", flag.ExitOnError)
	var c comparison
	f.StringVar(&c.stap, "stap", "stap", "the real tool")
	f.StringVar(&c.tree, "tree", "", "the folder for stap's -r: headers, and vmlinux with its debugging information")
	f.StringVar(&c.tapset, "tapset", "", "the folder of the tool's tapset")
	f.StringVar(&c.program, "program", "", "this program")
	f.StringVar(&c.image, "image", "", "the dump of the same kernel")
	f.StringVar(&c.kept, "kept", "", "a folder for what stap -L has said, which is not asked again")
	if err := f.Parse(args); err != nil {
		return err
	}
	differ, err := c.run()
	return verb.Differ(differ > 0, err)
}

type comparison struct {
	stap, tree, tapset, program, image, kept string

	compared, explained, differ int
}

// families are the patterns of the aliases that this program has.
var families = []string{
	"vfs.*", "scheduler.*", "kprocess.*", "signal.*", "generic.fop.*", "ioblock.*", "ioblock_trace.*", "vm.*", "softirq.*", "irq_handler.*",
	"netdev.*", "tcp.*", "udp.*", "syscall_any", "syscall.*", "nd_syscall.*",
}

// variables holds the variables of an alias, with their types; "" means that the type is not known.
type variables map[string]string

func (c *comparison) run() (int, error) {
	text, err := readTapset(c.tapset)
	if err != nil {
		return 0, err
	}
	for _, family := range families {
		theirs, err := c.listed(family, c.theirs)
		if err != nil {
			return 0, err
		}
		for _, suffix := range []string{"", ".return"} {
			ours, err := c.listed(family+suffix, c.ours)
			if err != nil {
				return 0, err
			}
			for _, name := range slices.Sorted(maps.Keys(ours)) {
				if strings.HasSuffix(name, ".return") != (suffix != "") {
					continue
				}
				want, known := theirs[name]
				if suffix != "" || !known {
					want, known = text.variables(name)
				}
				c.alias(name, ours[name], want, known, text)
			}
		}
	}
	c.arguments(text)
	fmt.Printf("%d variables of aliases and arguments of system calls compared, %d differ for a known cause, %d without one\n", c.compared, c.explained, c.differ)
	return c.differ, nil
}

// alias compares the variables of one.
func (c *comparison) alias(name string, ours, theirs variables, known bool, text *tapset) {
	if !known {
		c.say(name, "", "an alias that the tapset does not have")
		return
	}
	all := maps.Clone(ours)
	maps.Copy(all, theirs)
	written, _ := text.variables(name)
	for _, v := range slices.Sorted(maps.Keys(all)) {
		c.compared++
		mine, ok1 := ours[v]
		want, ok2 := theirs[v]
		_, ok3 := written[v]
		switch {
		case !ok1:
			c.say(name, v, "missing here")
		case !ok2 && !ok3:
			c.say(name, v, "not in the tapset")
		case want != "" && want != "unknown" && mine != want:
			c.say(name, v, mine+" here, "+want+" there")
		}
	}
}

// say counts a difference, and prints it where it has no cause.
func (c *comparison) say(alias, variable, what string) {
	for _, one := range causes {
		if one.fits(alias, variable) {
			c.explained++
			return
		}
	}
	c.differ++
	fmt.Printf("%s %s: %s\n", alias, variable, what)
}

// patience is the time limit for the real tool to list a family: it compiles the headers of
// tracepoints first.
const patience = 30 * time.Minute

func (c *comparison) theirs(pattern string) (string, error) {
	file := filepath.Join(c.kept, strings.ReplaceAll(pattern, "*", "X")+".listed")
	if b, err := os.ReadFile(file); err == nil && c.kept != "" {
		return string(b), nil
	}
	text, err := output(c.stap, "-g", "-r", c.tree, "-L", pattern)
	if err == nil && c.kept != "" {
		err = os.WriteFile(file, []byte(text), 0o600)
	}
	return text, err
}

func (c *comparison) ours(pattern string) (string, error) {
	return output(c.program, "stap", "-g", "-r", c.image, "-L", pattern)
}

// output returns the output of a command that lists probes.
func output(command string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var out, bad bytes.Buffer
	run := exec.CommandContext(ctx, command, args...)
	run.Stdout, run.Stderr = &out, &bad
	err := run.Run()
	if err != nil && (ctx.Err() != nil || !foundNothing(err, out.String(), bad.String())) {
		return "", fmt.Errorf("%s %s: %w: %s", command, strings.Join(args, " "), err, bad.String())
	}
	return out.String(), nil
}

// foundNothing reports whether a command failed because the pattern matches no probe: both then end with 1 and print no
// probe. stap says nothing of it, kprobelab that the point is not resolved or has no match.
func foundNothing(err error, out, bad string) bool {
	var ended *exec.ExitError
	if !errors.As(err, &ended) || ended.ExitCode() != 1 || out != "" || strings.Contains(bad, "ERROR") {
		return false
	}
	return !strings.Contains(bad, " error: ") || strings.HasPrefix(bad, "semantic error: while resolving probe point") ||
		strings.HasPrefix(bad, "semantic error: no match")
}

// typed is a variable in a listing; those with $ are the source's.
var typed = regexp.MustCompile(` ([A-Za-z_]\w*):(long|string|stats|unknown)\b`)

// listed are the variables of the aliases of a family, as a tool lists them.
func (c *comparison) listed(pattern string, ask func(string) (string, error)) (map[string]variables, error) {
	text, err := ask(pattern)
	if err != nil {
		return nil, err
	}
	list := map[string]variables{}
	for line := range strings.Lines(text) {
		name, rest, _ := strings.Cut(strings.TrimRight(line, "\n"), " ")
		set := variables{}
		for _, m := range typed.FindAllStringSubmatch(" "+rest, -1) {
			if !strings.HasPrefix(m[1], "__tracepoint_arg_") && !strings.HasPrefix(m[1], "_entry_tvar_") {
				set[m[1]] = m[2]
			}
		}
		list[strings.TrimSuffix(name, "?")] = set
	}
	return list, nil
}
