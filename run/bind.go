package run

import (
	"cmp"
	"fmt"

	"kprobelab/internal/mailbox"
	"kprobelab/internal/session"
	"kprobelab/internal/tracing/definition"
	"kprobelab/kimage"
	"kprobelab/machine"
)

// work is a plan's jobs and tasks bound to an image.
type work struct {
	jobs  []bound
	tasks [][]*session.Call
}

// bound is a call or a program, the other is nil.
type bound struct {
	text    string
	call    *session.Call
	program *mailbox.Command
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
		b := bound{text: j.Text}
		var err error
		if j.Program {
			b.program, err = p.program(img, j.Text)
		} else if b.call, err = session.BindCall(img, j.Text); err != nil {
			err = fmt.Errorf("--call: %w", err)
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

// program is the command that executes a program on the dump of a booted kernel.
func (p *Kernel) program(img *kimage.Image, text string) (*mailbox.Command, error) {
	c, err := mailbox.Program(mailbox.Exec, text, p.Stdin)
	if err == nil {
		c.Env, c.Dir = append(c.Env, p.Env...), cmp.Or(p.Dir, "/")
		_, err = c.Pieces()
	}
	if err != nil {
		return nil, misused("--exec: %w", err)
	}
	if img.Core() == nil {
		return nil, needsDump(img, "--exec")
	}
	return &c, nil
}

// check refuses what needs a booted kernel, and what a booted kernel decides by itself.
func (p *Kernel) check(img *kimage.Image) error {
	core := img.Core()
	switch {
	case core == nil && p.As != "":
		return needsDump(img, "--as")
	case core == nil && p.Dmesg:
		return needsDump(img, "--dmesg")
	case core == nil:
		return p.Uprobes.check(img)
	case len(p.Tasks) > 0:
		return misused("--task: a booted kernel has tasks of its own; --exec runs programs, --call calls")
	}
	return nil
}

// check refuses uprobes where there are no processes.
func (u *Uprobes) check(img *kimage.Image) error {
	for _, line := range u.Events {
		if kind := definition.ReadLine(line).Other(); kind != "" {
			return unusable(fmt.Errorf("%s: %s: %s are on what a booted kernel traces itself, and need its memory dump; kprobelab boot makes one", img.Name(), line, kind))
		}
	}
	if u.Any() {
		return unusable(fmt.Errorf("%s: uprobes with --call and --exec need the memory dump of a booted kernel; kprobelab boot makes one", img.Name()))
	}
	return nil
}
