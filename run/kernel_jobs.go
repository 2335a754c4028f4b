package run

import (
	"errors"
	"fmt"
	"strings"

	"kprobelab/internal/printk"
	"kprobelab/internal/session"
	"kprobelab/internal/show"
)

// work makes the calls; with tasks, the calls are one task more.
func (r *runner) work(w work) error {
	if len(w.tasks) > 0 {
		return r.tasks(w)
	}
	for _, j := range w.jobs {
		err := r.job(j)
		if r.kernelLog != nil {
			err = errors.Join(err, r.logged(true))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *runner) job(j bound) error {
	if err := r.lab.RunDueWorker(); err != nil {
		return err
	}
	if j.Host != nil {
		return r.host(j)
	}
	if j.Program != nil {
		return r.exec(j)
	}
	res, err := r.lab.Make(j.call)
	r.console()
	if err != nil {
		return r.fail(0, j.call, err)
	}
	r.put(calledOf(0, res))
	return nil
}

// calledOf is a call that has returned.
func calledOf(task int, res *session.Result) Called {
	e := Called{Task: task, Call: res.Call.String(), Value: res.Value, Result: show.Value(res.Value, res.Call.Returns())}
	if arg, off, ok := res.Into(); ok {
		e.Result += fmt.Sprintf(" (argument %d + %d)", arg+1, off)
	}
	for _, b := range res.Shown() {
		e.Buffers = append(e.Buffers, Buffer{b.Arg, fmt.Sprint(res.Call.Args[b.Arg]), b.After})
	}
	return e
}

// console gives what guest code wrote to its console.
func (r *runner) console() {
	if text := strings.TrimRight(string(r.lab.Machine.Console()), "\n"); text != "" {
		for line := range strings.SplitSeq(text, "\n") {
			r.log("console", strings.TrimSuffix(line, "\r")) // a serial line's
		}
	}
}

func (r *runner) fail(task int, c *session.Call, err error) error {
	err = OneLine(err)
	r.put(Failed{Task: task, Call: c.String(), Err: err})
	return refused(fmt.Errorf("%s: %w", c.Name, err))
}

// tasks runs the calls and every task of the plan as a task each.
func (r *runner) tasks(w work) error {
	sequences := w.tasks
	if calls := w.calls(); len(calls) > 0 {
		sequences = append([][]*session.Call{calls}, w.tasks...)
	}
	list, err := r.lab.Run(sequences)
	r.console()
	var failed error
	for _, t := range list {
		for _, res := range t.Results {
			r.put(calledOf(t.Number, res))
		}
		if t.Err != nil {
			failed = errors.Join(failed, r.fail(t.Number, t.Failed, t.Err))
		}
	}
	if err = errors.Join(failed, err); err != nil {
		return refused(OneLine(err))
	}
	return nil
}

// exec runs a program on the booted kernel.
func (r *runner) exec(j bound) error {
	p := *j.Program
	p.Stdout, p.Stderr = stream{r.to, 1}, stream{r.to, 2}
	code := 0
	k, err := r.lab.Booted()
	if err == nil {
		code, err = k.Exec(&p)
	}
	name := p.Args[0]
	if err != nil {
		r.put(Failed{Task: -1, Call: j.Text})
		return programError(r.lab.Image.Name(), name, err)
	}
	r.put(Exited{j.Text, code})
	if code != 0 && r.ended == nil {
		r.ended = &ExitError{Program: name, Code: code}
	}
	return nil
}

// stream is the standard output (1) or standard error (2) of a program; it makes events Wrote.
type stream struct {
	to Sink
	fd int
}

// Write implements io.Writer.
func (s stream) Write(b []byte) (int, error) { return len(b), s.to.Put(Wrote{FD: s.fd, Data: b}) }

// logged takes what the booted kernel has logged since the last time, and gives it where show says so.
func (r *runner) logged(show bool) error {
	if r.kernelLog == nil {
		l, err := printk.Of(r.lab.Image, r.lab.Machine.ReadMem)
		if err != nil {
			return unusable(fmt.Errorf("--dmesg: %w", err))
		}
		r.kernelLog = l
	}
	list, err := r.kernelLog.Since(r.seq)
	for _, m := range list {
		r.seq = m.Seq + 1
		if show {
			r.log("dmesg", m.String())
		}
	}
	return err
}
