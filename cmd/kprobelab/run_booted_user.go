package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"kprobelab/internal/session"
	"kprobelab/internal/tracing/definition"
	"kprobelab/kimage"
)

// ofKernel takes the events that are a booted kernel's own out of the plan's: uprobes of its processes, and
// what is neither a kprobe nor a uprobe. Where no others are left, so is what --tracefs writes.
func (u *userPlan) ofKernel(p *plan, c *cli.Command) error {
	for _, line := range p.events {
		if isKernelsEvent(line) {
			u.events = append(u.events, line)
		}
	}
	p.events = slices.DeleteFunc(p.events, isKernelsEvent)
	if u.onKernel() && len(p.events) == 0 {
		u.tracefs, p.tracefs = p.tracefs, nil
	}
	if !u.onKernel() {
		return nil
	}
	if !c.IsSet("budget") {
		p.budget = execBudget // what defines an event may wait for the kernel's other work
	}
	for _, name := range []string{"as", "file", "trace-output", "uprobe-pid"} {
		if c.IsSet(name) {
			return usagef("--%s does not go with uprobes of a booted kernel", name)
		}
	}
	if len(p.probes)+len(p.watches)+len(p.events) > 0 {
		return nil
	}
	for _, name := range []string{"steps", "perfetto"} {
		if c.IsSet(name) {
			return usagef("--%s shows hits of our own probes, and a booted kernel's uprobes are its own: "+
				"add a --kprobe on what it does there, as uprobe_notify_resume or arch_uprobe_pre_xol, or run the program without a kernel", name)
		}
	}
	return nil
}

// isKernelsEvent reports a definition that a booted kernel's own dynamic_events has.
func isKernelsEvent(line string) bool {
	return isUserEvent(line) || definition.Other(definition.Words(line)) != ""
}

func (u *userPlan) onKernel() bool { return len(u.probes)+len(u.events) > 0 }

// ofDump refuses uprobes where there are no processes.
func (u *userPlan) ofDump(img *kimage.Image) error {
	for _, line := range u.events {
		if kind := definition.Other(definition.Words(line)); kind != "" && img.Core() == nil {
			return &failure{exitImage, fmt.Errorf("%s: %s: %s are on what a booted kernel traces itself, and need its memory dump; kprobelab boot makes one", img.Name(), line, kind)}
		}
	}
	if u.onKernel() && img.Core() == nil {
		return &failure{exitImage, fmt.Errorf("%s: uprobes with --call and --exec need the memory dump of a booted kernel; kprobelab boot makes one", img.Name())}
	}
	return nil
}

// defineUser defines the events in the kernel's own uprobe_events, those of --uprobe first, and enables them.
func (r *runner) defineUser(u *userPlan) error {
	if !u.onKernel() {
		return nil
	}
	events, err := r.lab.Uprobes()
	if err != nil {
		return &failure{exitRefused, oneLine(err)}
	}
	taken := map[string]int{}
	var lines []string
	for _, p := range u.probes {
		line, err := p.definition(p.file, func(symbol string) (uint64, error) { return events.Offset(p.file, symbol) }, taken)
		if err != nil {
			return userRefusal(err)
		}
		lines = append(lines, line)
	}
	for _, line := range append(lines, u.events...) {
		if err := events.Define(line); err != nil {
			return r.userRefused(err)
		}
	}
	writes, err := tracefsWrites(u.tracefs)
	if err != nil {
		return err
	}
	for _, w := range writes {
		if err := events.Write(w.File, w.Text); err != nil {
			return r.userRefused(err)
		}
	}
	if err := events.Enable(); err != nil {
		return r.userRefused(err)
	}
	r.user = events
	return nil
}

// userRefusal is a *failure for what the kernel refuses; wrong use stays that.
func userRefusal(err error) error {
	if f := (*failure)(nil); errors.As(err, &f) {
		return err
	}
	return &failure{exitRefused, oneLine(err)}
}

func (r *runner) userRefused(err error) error {
	var e *session.UprobeRefused
	if errors.As(err, &e) {
		for line := range strings.Lines(e.Log) {
			r.out.log("kernel", strings.TrimSuffix(line, "\n"))
		}
	}
	return userRefusal(err)
}

// tracedUser prints the kernel's own file trace, with stats uprobe_profile, and removes the events.
func (r *runner) tracedUser(stats bool) error {
	if r.user == nil {
		return nil
	}
	text, err := r.user.Trace()
	if err == nil {
		r.out.traced(text)
	}
	if err == nil && stats {
		if text, err = r.user.Profile(); err == nil {
			r.out.traced(text)
		}
	}
	return errors.Join(err, r.user.Close())
}
