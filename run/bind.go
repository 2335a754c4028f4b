package run

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"kprobelab/internal/mailbox"
	"kprobelab/internal/report"
	"kprobelab/internal/session"
	"kprobelab/internal/tracing/definition"
	"kprobelab/kimage"
	"kprobelab/machine"
)

// work is a plan's jobs and tasks bound to an image, and its events of a booted kernel's own.
type work struct {
	jobs  []bound
	tasks [][]*session.Call
	own   ownEvents
}

// bound is a job; call is nil of a program.
type bound struct {
	Job
	call *session.Call
}

// calls are the jobs that are calls.
func (w work) calls() []*session.Call {
	var list []*session.Call
	for _, j := range w.jobs {
		if j.call != nil {
			list = append(list, j.call)
		}
	}
	return list
}

func (p *Kernel) bind(img *kimage.Image) (work, error) {
	var w work
	for _, j := range p.Jobs {
		b := bound{Job: j}
		var err error
		switch {
		case j.Program == nil:
			if b.call, err = session.BindCall(img, j.Text); err != nil {
				err = fmt.Errorf("--call: %w", err)
			}
		case img.Core() == nil:
			err = needsDump(img, "a program")
		}
		if err != nil {
			return w, err
		}
		w.jobs = append(w.jobs, b)
	}
	for _, text := range p.Tasks {
		calls, err := session.BindTask(img, text)
		if err != nil {
			return w, fmt.Errorf("--task: %w", err)
		}
		w.tasks = append(w.tasks, calls)
	}
	if n := len(w.tasks); n >= machine.MaxTasks { // the first makes the calls of jobs
		return w, misused("--task: there can be %d tasks, not %d", machine.MaxTasks-1, n)
	}
	return w, nil
}

// check looks whether a program can be run on the dump of a booted kernel.
func (j *Job) check() error {
	if j.Program == nil {
		return nil
	}
	p := j.Program
	if len(p.Args) == 0 || !path.IsAbs(p.Args[0]) {
		return misused("%s: want the absolute path of a program, such as /bin/true", j.Text)
	}
	for _, v := range p.Env {
		if name, _, ok := strings.Cut(v, "="); !ok || name == "" {
			return misused("--env %q: want NAME=VALUE", v)
		}
	}
	if p.Dir != "" && !path.IsAbs(p.Dir) {
		return misused("--cwd %q: want an absolute path of the guest", p.Dir)
	}
	if _, err := (mailbox.Command{Kind: mailbox.Exec, Args: p.Args, Env: p.Env, Dir: p.Dir, Input: p.Stdin}).Pieces(); err != nil {
		return misused("%s: %w", j.Text, err)
	}
	return nil
}

// onImage refuses what needs a booted kernel, and what a booted kernel decides by itself.
func (p *Kernel) onImage(img *kimage.Image, own *ownEvents) error {
	core := img.Core()
	switch {
	case core == nil && p.As != "":
		return needsDump(img, "--as")
	case core == nil && p.Dmesg:
		return needsDump(img, "--dmesg")
	case core == nil:
		return own.check(img)
	case len(p.Tasks) > 0:
		return misused("--task: a booted kernel has tasks of its own; kprobelab exec runs programs, --call calls")
	case p.CPUs != 0 && p.CPUs != len(core.CPUs()):
		return misused("--cpus %s: the dump has %s", strconv.Itoa(p.CPUs), report.Counted(len(core.CPUs()), "CPU"))
	}
	return nil
}

// check refuses uprobes where there are no processes.
func (u *ownEvents) check(img *kimage.Image) error {
	for _, line := range u.events {
		if kind := definition.ReadLine(line).Other(); kind != "" {
			return unusable(fmt.Errorf("%s: %s: %s are on what a booted kernel traces itself, and need its memory dump; kprobelab boot makes one", img.Name(), line, kind))
		}
	}
	if u.any() {
		return unusable(fmt.Errorf("%s: a kernel's own uprobes need the memory dump of a booted kernel; kprobelab boot makes one", img.Name()))
	}
	return nil
}
