package booted

import (
	"errors"
	"fmt"
	"strings"

	"kprobelab/errno"
	"kprobelab/internal/bounded"
	"kprobelab/internal/orc"
	"kprobelab/kimage"
	"kprobelab/x86"
)

// As has calls made as another task of the booted kernel, by its process number or its
// name: it is woken, and its own way out of the scheduler is followed to where it has left
// that. There calls are made on its stack, with its memory and files. It stays so until
// As names another one, a program is run, or the machine is restored. The kernel's own
// scheduler decides when the task runs; if that is not within the budget, As fails, and
// the machine has to be restored.
func (k *Kernel) As(task string) error {
	list, err := k.Tasks()
	if err != nil {
		return err
	}
	t, err := chooseTask(list, task)
	if err != nil {
		return err
	}
	if k.current() == t.Addr {
		return nil
	}
	at, err := k.wayOut(t)
	if err != nil {
		return fmt.Errorf("%s: %w: %w", taskName(t), ErrTask, err)
	}
	if err := k.makeWay(); err != nil {
		return err
	}
	k.user = arena{}
	k.as = t
	if t.State != "R" {
		// Another CPU may run it at once, and it would have come by.
		k.machine.Alone(true)
		err := k.call("wake_up_process", t.Addr)
		k.machine.Alone(false)
		if err != nil {
			return err
		}
	}
	if err := k.follow(t, at); err != nil {
		return fmt.Errorf("%s: %w: %w", taskName(t), ErrTask, err)
	}
	return nil
}

// makeWay ends the real-time priority that init has taken to run a program (exec in
// testdata/init/init.c): with it, a task that is woken would get the CPU after 0.95
// seconds only, when the kernel throttles init.
func (k *Kernel) makeWay() error {
	if !k.hasRun || k.as != nil {
		return nil
	}
	const other = 0 // SCHED_OTHER
	ret, err := k.SystemCall("sched_setscheduler", 0, other, make([]byte, 4))
	if err == nil && ret < 0 {
		err = fmt.Errorf("sched_setscheduler: %w", errno.Errno(-ret))
	}
	k.hasRun = err != nil
	return err
}

// unwinder walks the kernel's stacks.
func (k *Kernel) unwinder() (*orc.Unwinder, error) {
	u := orc.New(k.image.Lookup, k.image.Types(), k.machine.ReadMem)
	if u == nil {
		return nil, errors.New("this kernel has no ORC tables, by which its stacks are walked")
	}
	return u, nil
}

// wayOut is the address at which a task that does not run leaves the scheduler.
func (k *Kernel) wayOut(t *kimage.Task) (x86.Addr, error) {
	switch {
	case t.PID == 0:
		return 0, errors.New("it is the idle task")
	case strings.Contains("XZ", t.State):
		return 0, errors.New("it has ended")
	case strings.Contains("Tt", t.State):
		return 0, errors.New("it is stopped by a signal or a debugger")
	}
	return k.leaves(*t, nil)
}

// follow lets the guest run until the task is at a place, in a state that it can be called
// in.
func (k *Kernel) follow(t *kimage.Task, at x86.Addr) error {
	came, err := comes(func() (bool, error) {
		_, err := k.machine.Resume(at)
		return err == nil && k.current() == t.Addr, err
	})
	switch {
	case err != nil:
		return err
	case came:
		if k.machine.Stopped().Flags&x86.FlagIF == 0 {
			return fmt.Errorf("it goes on at %s with interrupts off, where nothing can be called", k.machine.Symbolize(at))
		}
		return nil
	}
	return fmt.Errorf("it does not come to %s", k.machine.Symbolize(at))
}

// comes waits until next has brought the task, past others.
func comes(next func() (bool, error)) (bool, error) {
	for range bounded.TasksPassing {
		if came, err := next(); came || err != nil {
			return came, err
		}
	}
	return false, nil
}

// hasUser is an error where the task of As makes no system calls.
func (k *Kernel) hasUser() error {
	if k.as == nil || !k.as.Kernel {
		return nil
	}
	return fmt.Errorf("%s: %w: it is the kernel's own, which makes no system calls and has no user memory", taskName(k.as), ErrTask)
}

// home goes back to init, where programs begin.
func (k *Kernel) home(stop x86.Addr) error {
	if k.as == nil {
		return nil
	}
	k.as, k.user = nil, arena{}
	return k.comeBack(stop)
}
