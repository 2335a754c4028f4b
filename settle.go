package kprobelab

import (
	"errors"
	"fmt"

	"kprobelab/kprobes"
)

// Settle lets the kprobe optimizer's worker run until nothing is queued. Where
// it has to wait for tasks that are inside calls, these run meanwhile, as far
// as it takes. The error is the machine's. An error of a call is its task's, not Settle's.
func (l *Lab) Settle() error {
	if err := l.Machine.Closed(); err != nil {
		return err
	}
	err := l.Kprobes.Settle()
	var waits *kprobes.Unsettled
	if !errors.As(err, &waits) {
		return err
	}
	settled := func() bool {
		err = l.Kprobes.Settle()
		return err == nil
	}
	if ran := l.Machine.RunUntil(settled); ran != nil {
		return fmt.Errorf("settle: %w", ran)
	}
	return err
}

// RunDueWorker lets the optimizer's worker do what the kernel's would have done by now: a
// kernel's starts by a timer, five jiffies after something was queued. It takes the steps for
// which it need not wait; Settle takes them all, whatever the time.
func (l *Lab) RunDueWorker() error {
	if err := l.Machine.Closed(); err != nil {
		return err
	}
	for {
		at, scheduled := l.Kprobes.WorkerDue()
		if !scheduled || !l.Kprobes.WorkerRuns() && l.Machine.Now() < at {
			return nil
		}
		if l.Kprobes.WorkerStep() != kprobes.Advanced {
			return nil
		}
	}
}
