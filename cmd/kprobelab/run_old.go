package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"kprobelab/internal/cmdline"
	"kprobelab/internal/mailbox"
	"kprobelab/profile"
	"kprobelab/run"
)

// For one release, run still takes what exec and uprobe are for, and prints their command line.

// oldFlags are the flags of exec and uprobe that run had, with the names that uprobe has for them.
var oldFlags = map[string]string{"uprobe-pid": "pid"}

// oldRun is run with the flags that it had.
func oldRun(c *cli.Command) *cli.Command {
	flags := slices.Clone(c.Flags)
	for _, name := range []string{"exec", "env", "cwd", "stdin", "uprobe", "uretprobe", "uprobe-pid", "file"} {
		flags = append(flags, &cli.StringFlag{Name: name})
	}
	for _, name := range []string{"program", "stats"} {
		flags = append(flags, &cli.BoolFlag{Name: name})
	}
	return &cli.Command{Name: c.Name, Flags: flags}
}

// reworded returns the command line of exec or uprobe that has the meaning of an old command line of run, and a message about
// it. Other command lines are returned as they are.
func reworded(app *cmdline.App, args []string) (now []string, said string, err error) {
	if len(args) < 3 || args[1] != "run" {
		return args, "", nil
	}
	list := cmdline.Arguments(oldRun(app.Command.Command("run")), args[2:], false)
	has := func(names ...string) bool {
		return slices.ContainsFunc(list, func(a cmdline.Argument) bool { return slices.Contains(names, a.Flag) })
	}
	events := func(is func(string) bool) bool {
		return slices.ContainsFunc(list, func(a cmdline.Argument) bool { return (a.Flag == "e" || a.Flag == "event") && is(a.Value) })
	}
	jobs := has("exec", "call")
	switch {
	case has("help", "h"):
		return args, "", nil
	case has("exec"), jobs && has("uprobe", "uretprobe"):
		now, err = asExec(list)
	case has("program"), !jobs && (has("uprobe", "uretprobe") || events(run.IsUserEvent)):
		now = asUprobe(list)
	default:
		ofProgram, err := meansProgram(list, has, jobs || has("task"))
		if err != nil || !ofProgram {
			return args, "", err
		}
		now = asUprobe(list)
	}
	if err != nil {
		return args, "", err
	}
	said = fmt.Sprintf("kprobelab: this command line is now: kprobelab %s", mailbox.Line(now))
	if now[0] == "exec" {
		now = slices.Insert(now, 1, "--exits")
	}
	return append(args[:1:1], now...), said, nil
}

// meansProgram reports whether probes without calls are meant for a program: IMAGE is one then.
func meansProgram(list []cmdline.Argument, has func(...string) bool, jobs bool) (bool, error) {
	at := slices.IndexFunc(list, func(a cmdline.Argument) bool { return a.Flag == "" })
	if jobs || at < 0 || !has("kprobe", "kretprobe", "watch", "e", "event") {
		return false, nil
	}
	program := list[at].Value
	rules, _ := profile.Named(profile.Default)
	if _, err := run.OpenSource(program, rules); err != nil {
		return false, nil // a kernel's image, or the reader of images says what it is
	}
	for _, a := range list {
		if a.Flag == "kprobe" || a.Flag == "kretprobe" {
			if !strings.Contains(program, "/") {
				program = "./" + program
			}
			return false, usagef("--kprobe and --kretprobe are for kernels, and %s is a program: kprobelab uprobe --uprobe or --uretprobe %s:%s", program, program, a.Value)
		}
	}
	if !has("e", "event") {
		return false, usagef("%s is a program: kprobelab uprobe runs it", program)
	}
	return true, nil
}

// asUprobe is the command line of uprobe.
func asUprobe(list []cmdline.Argument) []string {
	now, operands := []string{"uprobe"}, []string(nil)
	for _, a := range list {
		name, old := oldFlags[a.Flag]
		switch {
		case a.Flag == "":
			operands = append(operands, a.Value)
		case a.Flag == "program":
		case old:
			now = append(now, "--"+name, a.Value)
		default:
			now = append(now, a.Words...)
		}
	}
	return withProgram(now, operands)
}

// withProgram adds the program, after two dashes where it would be taken for a flag.
func withProgram(now, operands []string) []string {
	if len(operands) > 0 && strings.HasPrefix(operands[0], "-") {
		now = append(now, "--")
	}
	return append(now, operands...)
}

// asExec is the command line of exec: the last program is PROGRAM, what comes before it and after it are jobs.
func asExec(list []cmdline.Argument) ([]string, error) {
	now, program := []string{"exec"}, []string(nil)
	last := -1
	for i, a := range list {
		if a.Flag == "exec" {
			last = i
		}
	}
	for i, a := range list {
		switch {
		case a.Flag == "cpus": // a dump has those it was booted with
		case a.Flag == "":
			now = append(now, "--kernel", a.Value)
		case i == last:
			c, err := mailbox.Program(mailbox.Exec, a.Value, nil)
			if err != nil {
				return nil, usagef("--exec: %w", err)
			}
			program = c.Args
		case a.Flag == "exec" || a.Flag == "call":
			job := "--before"
			if last >= 0 && i > last {
				job = "--after"
			}
			now = append(now, job, a.Value)
		default:
			now = append(now, a.Words...)
		}
	}
	if !slices.ContainsFunc(list, func(a cmdline.Argument) bool { return a.Flag == "" || a.Flag == "kernel" }) {
		now = append(now, "--kernel", "-")
	}
	return withProgram(now, program), nil
}
