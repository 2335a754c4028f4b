package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v3"

	"kprobelab/internal/bounded"
	"kprobelab/internal/mailbox"
	"kprobelab/internal/report"
	"kprobelab/kimage"
)

const exitOfExec = `The exit code of a program of --exec is the command's where nothing else went wrong: the
first that is not 0. A program that a signal ended has 128 and the signal's number.`

// execBudget is how many instructions a program may execute where --budget does not say.
const execBudget = 2_000_000_000

// programs checks what --exec and its flags say, as far as no file is needed for it.
func (p *plan) programs(c *cli.Command) error {
	if c.IsSet("as") {
		switch calls := func(j job) bool { return !j.program }; {
		case p.as == "":
			return usagef("--as: want a task's process number or its name")
		case !slices.ContainsFunc(p.jobs, calls):
			return usagef("--as goes with --call: programs of --exec are init's")
		case slices.ContainsFunc(p.jobs, func(j job) bool { return j.program }):
			return usagef("--as and --exec exclude each other: programs are init's")
		}
	}
	if !slices.ContainsFunc(p.jobs, func(j job) bool { return j.program }) {
		for _, name := range []string{"env", "cwd", "stdin"} {
			if c.IsSet(name) {
				return usagef("--%s goes with --exec", name)
			}
		}
		return nil
	}
	if err := programPlace(p.env, p.cwd); err != nil {
		return err
	}
	if len(p.tasks) > 0 {
		return usagef("--exec and --task exclude each other: a booted kernel has tasks of its own")
	}
	if !c.IsSet("budget") {
		p.budget = execBudget
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

// input is what programs read.
func (p *plan) input() ([]byte, error) { return programInput(p.stdin) }

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

// program is the command of --exec, for the dump of a booted kernel.
func (p *plan) program(img *kimage.Image, text string, input []byte) (*mailbox.Command, error) {
	c, err := mailbox.Program(mailbox.Exec, text, input)
	if err == nil {
		c.Env, c.Dir = append(c.Env, p.env...), p.cwd
		_, err = c.Pieces()
	}
	if err != nil {
		return nil, usagef("--exec: %w", err)
	}
	if img.Core() == nil {
		return nil, &failure{exitImage, fmt.Errorf("%s: --exec needs the memory dump of a booted kernel; kprobelab boot makes one", img.Name())}
	}
	return &c, nil
}

// ofDump refuses what a booted kernel decides by itself.
func (p *plan) ofDump(c *cli.Command, img *kimage.Image) error {
	core := img.Core()
	switch {
	case core == nil && (p.dmesg || p.as != ""):
		flag := "--dmesg"
		if p.as != "" {
			flag = "--as"
		}
		return &failure{exitImage, fmt.Errorf("%s: %s needs the memory dump of a booted kernel; kprobelab boot makes one", img.Name(), flag)}
	case core == nil:
		return nil
	case len(p.tasks) > 0:
		return usagef("--task: a booted kernel has tasks of its own; --exec runs programs, --call calls")
	case c.IsSet("cpus") && p.cpus != len(core.CPUs()):
		return usagef("--cpus %s: the dump has %s", strconv.Itoa(p.cpus), report.Counted(len(core.CPUs()), "CPU"))
	}
	return nil
}
