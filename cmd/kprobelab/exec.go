package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"kprobelab/internal/bounded"
	"kprobelab/internal/mailbox"
	"kprobelab/run"
)

// execBudget is how many instructions a program may execute where --budget does not say.
const execBudget = 2_000_000_000

// programs checks what --exec and its flags say, as far as no file is needed for it.
func (p *plan) programs(c *cli.Command) error {
	if c.IsSet("as") {
		switch calls := func(j run.Job) bool { return !j.Program }; {
		case p.As == "":
			return usagef("--as: want a task's process number or its name")
		case !slices.ContainsFunc(p.Jobs, calls):
			return usagef("--as goes with --call: programs of --exec are init's")
		case slices.ContainsFunc(p.Jobs, func(j run.Job) bool { return j.Program }):
			return usagef("--as and --exec exclude each other: programs are init's")
		}
	}
	if !slices.ContainsFunc(p.Jobs, func(j run.Job) bool { return j.Program }) {
		for _, name := range []string{"env", "cwd", "stdin"} {
			if c.IsSet(name) {
				return usagef("--%s goes with --exec", name)
			}
		}
		return nil
	}
	if err := programPlace(p.Env, p.Dir); err != nil {
		return err
	}
	if len(p.Tasks) > 0 {
		return usagef("--exec and --task exclude each other: a booted kernel has tasks of its own")
	}
	if !c.IsSet("budget") {
		p.Budget = execBudget
	}
	return nil
}

// programPlace checks --env and --cwd.
func programPlace(env []string, cwd string) error {
	for _, v := range env {
		if name, _, ok := strings.Cut(v, "="); !ok || name == "" {
			return usagef("--env %q: want NAME=VALUE", v)
		}
	}
	if !strings.HasPrefix(cwd, "/") {
		return usagef("--cwd %q: want an absolute path of the guest", cwd)
	}
	return nil
}

// programInput is the value of --stdin, read.
func programInput(file string) ([]byte, error) {
	switch file {
	case "":
		return nil, nil
	case "-":
		b, err := bounded.ReadAll(os.Stdin, mailbox.Size)
		if err != nil {
			err = &failure{exitImage, fmt.Errorf("standard input: %w", err)}
		}
		return b, err
	}
	return bounded.ReadFile(file, mailbox.Size)
}
