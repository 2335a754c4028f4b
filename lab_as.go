package kprobelab

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"kprobelab/errno"
	"kprobelab/internal/bounded"
	"kprobelab/internal/orc"
	"kprobelab/kimage"
	"kprobelab/x86"
)

// ErrTask is a task in which calls cannot be made; what it wraps says why.
var ErrTask = errors.New("no calls can be made as this task")

// Tasks are the tasks of the booted kernel, as they are now.
func (l *Lab) Tasks() ([]kimage.Task, error) {
	if l.Image.Core() == nil {
		return nil, ErrNotBooted
	}
	return l.Image.TasksIn(l.Machine.ReadMem)
}

// As has calls made as another task of the booted kernel, by its process number or its
// name: it is woken, and its own way out of the scheduler is followed to where it has left
// that. There calls are made on its stack, with its memory and files. It stays so until
// As names another one, a program is run, or the machine is restored. The kernel's own
// scheduler decides when the task runs; if that is not within the budget, As fails, and
// the machine has to be restored.
func (l *Lab) As(task string) error {
	list, err := l.Tasks()
	if err != nil {
		return err
	}
	t, err := chooseTask(list, task)
	if err != nil {
		return err
	}
	if l.current() == t.Addr {
		return nil
	}
	at, err := l.wayOut(t)
	if err != nil {
		return fmt.Errorf("%s: %w: %w", taskName(t), ErrTask, err)
	}
	if err := l.makeWay(); err != nil {
		return err
	}
	l.user = arena{}
	l.as = t
	if t.State != "R" {
		// Another CPU may run it at once, and it would have come by.
		l.Machine.Alone(true)
		_, err := l.Call("wake_up_process", t.Addr)
		l.Machine.Alone(false)
		if err != nil {
			return err
		}
	}
	if err := l.follow(t, at); err != nil {
		return fmt.Errorf("%s: %w: %w", taskName(t), ErrTask, err)
	}
	return nil
}

// makeWay ends the real-time priority that init has taken to run a program (exec in
// testdata/init/init.c): with it, a task that is woken would get the CPU after 0.95
// seconds only, when the kernel throttles init.
func (l *Lab) makeWay() error {
	if !l.hasRun || l.as != nil {
		return nil
	}
	const other = 0 // SCHED_OTHER
	ret, err := l.SystemCall("sched_setscheduler", 0, other, make([]byte, 4))
	if err == nil && ret < 0 {
		err = fmt.Errorf("sched_setscheduler: %w", errno.Errno(-ret))
	}
	l.hasRun = err != nil
	return err
}

// chooseTask finds a task by its number, or by its name.
func chooseTask(list []kimage.Task, text string) (*kimage.Task, error) {
	pid, err := strconv.Atoi(text)
	byNumber := err == nil
	var found []*kimage.Task
	for i := range list {
		if t := &list[i]; byNumber && t.PID == pid || !byNumber && t.Comm == text {
			found = append(found, t)
		}
	}
	switch len(found) {
	case 0:
		if byNumber {
			return nil, fmt.Errorf("%w: there is no task %d", ErrTask, pid)
		}
		return nil, fmt.Errorf("%w: there is no task of the name %q", ErrTask, text)
	case 1:
		return found[0], nil
	}
	var pids []string
	for _, t := range found {
		pids = append(pids, strconv.Itoa(t.PID))
	}
	return nil, fmt.Errorf("%w: %d tasks have the name %q; name one by its number: %s", ErrTask, len(found), text, strings.Join(pids, ", "))
}

func taskName(t *kimage.Task) string { return fmt.Sprintf("task %d (%s)", t.PID, t.Comm) }

// current is the task that the machine stands in.
func (l *Lab) current() x86.Addr {
	at, ok := kimage.CurrentTask(l.Image.Lookup)
	if !ok {
		return 0
	}
	return l.pointer(l.Machine.GSBase(l.Machine.CPU()) + at)
}

func (l *Lab) pointer(at x86.Addr) x86.Addr {
	var b [8]byte
	if l.Machine.ReadMem(at, b[:]) != nil {
		return 0
	}
	return x86.Addr(binary.LittleEndian.Uint64(b[:]))
}

// unwinder walks the kernel's stacks.
func (l *Lab) unwinder() (*orc.Unwinder, error) {
	u := orc.New(l.Image.Lookup, l.Image.Types(), l.Machine.ReadMem)
	if u == nil {
		return nil, errors.New("this kernel has no ORC tables, by which its stacks are walked")
	}
	return u, nil
}

// wayOut is where a task that does not run goes on after the scheduler.
func (l *Lab) wayOut(t *kimage.Task) (x86.Addr, error) {
	switch {
	case t.PID == 0:
		return 0, errors.New("it is what a CPU does that has nothing to do")
	case strings.Contains("XZ", t.State):
		return 0, errors.New("it has ended")
	case strings.Contains("Tt", t.State):
		return 0, errors.New("it is stopped by a signal or a debugger")
	}
	return l.leaves(*t, nil)
}

// follow lets the guest run until the task is at a place, in a state that it can be called
// in.
func (l *Lab) follow(t *kimage.Task, at x86.Addr) error {
	came, err := comes(func() (bool, error) {
		_, err := l.Machine.Resume(at)
		return err == nil && l.current() == t.Addr, err
	})
	switch {
	case err != nil:
		return err
	case came:
		if l.Machine.Stopped().Flags&x86.FlagIF == 0 {
			return fmt.Errorf("it goes on at %s with interrupts off, where nothing can be called", l.Machine.Symbolize(at))
		}
		return nil
	}
	return fmt.Errorf("it does not come to %s", l.Machine.Symbolize(at))
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
func (l *Lab) hasUser() error {
	if l.as == nil || !l.as.Kernel {
		return nil
	}
	return fmt.Errorf("%s: %w: it is the kernel's own, which makes no system calls and has no user memory", taskName(l.as), ErrTask)
}

// home goes back to init, where programs begin.
func (l *Lab) home(stop x86.Addr) error {
	if l.as == nil {
		return nil
	}
	l.as, l.user = nil, arena{}
	return l.comeBack(stop)
}
