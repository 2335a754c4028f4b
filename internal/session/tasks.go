package session

import (
	"errors"
	"fmt"

	"kprobelab/machine"
)

// TaskResult is the outcome of a task.
type TaskResult struct {
	// Number is the task's number on the machine.
	Number int
	// Results are the calls that returned, in order.
	Results []*Result
	// Failed is the call that did not return, nil if all returned; Err says why.
	Failed *Call
	Err    error
}

// Run lets every sequence of calls run as a task of its own, interleaved by
// the machine's scheduler, and returns when each has ended. The error is of
// the whole run: nothing can run any more, the budget, a hit that went wrong.
func (l *Session) Run(sequences [][]*Call) ([]TaskResult, error) {
	tasks := make([]*task, 0, len(sequences))
	defer func() {
		for _, t := range tasks {
			t.release()
		}
	}()
	for i, calls := range sequences {
		t, err := l.spawn(i+1, calls)
		tasks = append(tasks, t)
		if err != nil {
			return nil, err
		}
	}
	var worker error
	err := errors.Join(l.Machine.RunUntil(func() bool {
		worker = l.RunDueWorker()
		return worker != nil
	}), worker)
	var list []TaskResult
	failed := false
	for _, t := range tasks {
		r, rerr := t.result()
		failed = failed || r.Err != nil
		list = append(list, r)
		if rerr != nil && err == nil {
			err = rerr
		}
	}
	if failed && !errors.Is(err, machine.ErrBudget) && !errors.Is(err, machine.ErrDeadlock) {
		err = nil // the tasks' own errors, which the results have
	}
	return list, errors.Join(err, l.Kprobes.ClearErr())
}

// task is a sequence of calls on its way through the machine.
type task struct {
	lab   *Session
	task  *machine.Task
	calls []*Call
	// pending are the calls with their buffers.
	pending []*Result
}

func (l *Session) spawn(n int, calls []*Call) (*task, error) {
	t := &task{lab: l, calls: calls}
	list := make([]machine.Invocation, len(calls))
	for i, c := range calls {
		r, args, err := l.marshal(c)
		t.pending = append(t.pending, r)
		if err != nil {
			return t, err
		}
		words := make([]any, len(args))
		for j, w := range args {
			words[j] = w
		}
		list[i] = machine.Invocation{Addr: c.Symbol.Addr, Args: words}
	}
	var err error
	t.task, err = l.Machine.Go(fmt.Sprintf("task %d", n), list...)
	return t, err
}

func (t *task) release() {
	for _, r := range t.pending {
		t.lab.release(r)
	}
}

// result reads what the task came to.
func (t *task) result() (TaskResult, error) {
	out := TaskResult{Number: t.task.Number()}
	for i, got := range t.task.Results() {
		if got.Err != nil {
			out.Failed, out.Err = t.calls[i], got.Err
			break
		}
		r := t.pending[i]
		r.Value = got.Ret
		if err := t.lab.readBack(r); err != nil {
			return out, err
		}
		out.Results = append(out.Results, r)
	}
	return out, nil
}
