package booted

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"kprobelab/kimage"
	"kprobelab/kprobes"
	"kprobelab/machine"
	"kprobelab/x86"
)

// ErrAsleep: the call or the programs of a run sleep, and nothing that can still happen would wake them.
var ErrAsleep = errors.New("asleep")

// AsleepError is a run of a booted kernel that has ended because a task sleeps.
type AsleepError struct {
	// Sleepers holds the sleeping tasks, the newest first. After a call it is the task of
	// the call. After a program it is the tasks that do not wait for another task.
	Sleepers []Sleeper
	// Err is the machine's error that ended the run, such as an exhausted budget. nil means
	// that the tasks sleep for ever.
	Err error
}

// Sleeper is a task that sleeps.
type Sleeper struct {
	Task kimage.Task
	// Place is the address at which the task called the scheduler, as symbol+offset.
	// Callers names the functions on the stack above it, the nearest first.
	Place   string
	Callers []string
}

// Error is one line.
func (e *AsleepError) Error() string {
	const most = 3 // tasks that are named
	var list []string
	for _, s := range e.Sleepers[:min(most, len(e.Sleepers))] {
		list = append(list, s.String())
	}
	if more := len(e.Sleepers) - most; more > 0 {
		list = append(list, fmt.Sprintf("and %d more", more))
	}
	text := strings.Join(list, "; ")
	if e.Err != nil {
		return fmt.Sprintf("%v; %s", e.Err, text)
	}
	return strings.Replace(text, " sleeps in ", " sleeps for ever in ", 1)
}

// String is the task and its place.
func (s Sleeper) String() string {
	text := fmt.Sprintf("pid %d (%s) sleeps in %s", s.Task.PID, s.Task.Comm, s.Place)
	if len(s.Callers) > 0 {
		text += ", called from " + strings.Join(s.Callers, ", ")
	}
	return text
}

// Is makes it an ErrAsleep.
func (e *AsleepError) Is(target error) bool { return target == ErrAsleep }

// Unwrap returns Err: nil if the tasks sleep for ever.
func (e *AsleepError) Unwrap() error { return e.Err }

// scheduling lists the functions by which a task gives up its CPU; their callers go on with interrupts on.
var scheduling = map[string]bool{
	"__switch_to_asm": true, "__schedule": true, "schedule": true, "preempt_schedule_irq": true,
	"preempt_schedule_common": true, "schedule_idle": true, "schedule_rtlock": true,
}

func (k *Kernel) inScheduler(addr uint64) bool {
	s, ok := k.image.SymbolAt(x86.Addr(addr - 1)) // of the call
	return ok && scheduling[s.Name]
}

// forTasks are functions in which a task waits for one that it has made.
var forTasks = []string{"do_wait", "wait_for_vfork_done"}

// forTime are functions of timers that end a sleep, on the stack of the task that sleeps
// (kernel/time/timer.c).
const forTime = "process_timeout"

// housekeeping are the high-resolution timers that the kernel keeps for itself
// (kernel/time/tick-sched.c, to 6.8 and since; kernel/time/sched_clock.c,
// kernel/watchdog.c, kernel/sched/rt.c and deadline.c, whose tasks can run).
var housekeeping = []string{"tick_sched_timer", "tick_nohz_handler", "sched_clock_poll", "watchdog_timer_fn", "sched_rt_period_timer", "dl_task_timer", "inactive_task_timer"}

// waits is the state of watchSleep during a run.
type waits struct {
	start    uint64
	switches uint64
	// program: the run's task is init, which waits for a program.
	program bool
	// open: the host will have something for the programs, sooner or later.
	open bool
}

// watchSleep ends a run that would wait for ever: the task of the run sleeps, no task of
// a program has run for a minute of virtual time, and no task of a program waits for a
// timer.
func (k *Kernel) watchSleep() {
	k.machine.OnWait(func(w machine.Wait) error {
		out := w.Err != nil && (errors.Is(w.Err, machine.ErrBudget) || errors.Is(w.Err, machine.ErrHalted))
		if w.Err != nil && !out {
			return w.Err
		}
		tasks, err := k.Tasks()
		if err != nil {
			return w.Err
		}
		e := k.asleep(w, tasks)
		if e == nil {
			return w.Err
		}
		if errors.Is(w.Err, machine.ErrHalted) {
			e.Err = nil
		}
		if w.Err == nil && !k.forEver(w, tasks) {
			return nil
		}
		return e
	})
}

// asleep returns the tasks that a run waits for. It returns nil if one of them does not
// sleep, or if the place of the run's own task cannot be found.
func (k *Kernel) asleep(w machine.Wait, tasks []kimage.Task) *AsleepError {
	own := slices.IndexFunc(tasks, func(t kimage.Task) bool { return t.Addr == w.Task })
	if own < 0 || !sleeps(tasks[own]) {
		return nil
	}
	first, ok := k.sleeper(tasks[own])
	if !ok {
		return nil
	}
	e := &AsleepError{Err: w.Err}
	if k.waits.program || waitsForTask(first) {
		for _, t := range slices.Backward(tasks) {
			if t.Kernel || t.Addr == w.Task || t.Addr == k.super || t.PID < tasks[own].PID || strings.Contains("XZ", t.State) {
				continue
			}
			if !sleeps(t) {
				return nil
			}
			if s, ok := k.sleeper(t); ok && !waitsForTask(s) {
				e.Sleepers = append(e.Sleepers, s)
			}
		}
	}
	if len(e.Sleepers) == 0 {
		e.Sleepers = []Sleeper{first}
	}
	return e
}

func sleeps(t kimage.Task) bool { return strings.Contains("SDITt", t.State) }

func waitsForTask(s Sleeper) bool {
	return slices.ContainsFunc(forTasks, func(name string) bool {
		return strings.HasPrefix(s.Place, name+"+") || slices.Contains(s.Callers, name)
	})
}

// forEver reports whether nothing will wake a program's task: none has run since the
// question before, and none waits for a time.
func (k *Kernel) forEver(w machine.Wait, tasks []kimage.Task) bool {
	if k.waits.open {
		return false
	}
	now := waits{start: w.Start, program: k.waits.program}
	var super kimage.Task
	for _, t := range tasks {
		if k.super != 0 && t.Addr == k.super {
			super = t
			continue
		}
		if t.Kernel && t.Addr != w.Task {
			continue
		}
		now.switches += t.Switches
		if !strings.Contains("XZ", t.State) && (!sleeps(t) || k.hasTimer(t)) {
			return false
		}
	}
	before := k.waits
	k.waits = now
	return now == before && k.onlyHousekeeping(super)
}

// hasTimer reports whether a task sleeps until a time at the latest: the timer is on its
// stack.
func (k *Kernel) hasTimer(t kimage.Task) bool {
	s := k.image.Lookup(forTime)
	stack := make([]byte, x86.ThreadSize-t.SP&(x86.ThreadSize-1))
	if len(s) == 0 || k.machine.ReadMem(x86.Addr(t.SP), stack) != nil {
		return true // it is not known
	}
	for ; len(stack) >= 8; stack = stack[8:] {
		if binary.LittleEndian.Uint64(stack) == uint64(s[0].Addr) {
			return true
		}
	}
	return false
}

// onlyHousekeeping reports whether no high-resolution timer is set but the kernel's own and the
// supervisor's, which asks the host now and then: its timer is on its stack.
func (k *Kernel) onlyHousekeeping(super kimage.Task) bool {
	var bases []x86.Addr
	for n := range k.machine.NumCPU() {
		bases = append(bases, k.machine.GSBase(n))
	}
	set, err := k.image.TimersIn(k.machine.ReadMem, bases)
	return err == nil && !slices.ContainsFunc(set, func(t kimage.Timer) bool {
		s, ok := k.image.SymbolAt(t.Function)
		return !(ok && slices.Contains(housekeeping, s.Name)) && (super.Addr == 0 || uint64(t.At)&^(x86.ThreadSize-1) != super.SP&^(x86.ThreadSize-1))
	})
}

// sleeper returns the place at which a task sleeps; ok is false if the place
// cannot be found.
func (k *Kernel) sleeper(t kimage.Task) (s Sleeper, ok bool) {
	const callers = 3 // that are said
	s.Task = t
	at, err := k.leaves(t, func(addr uint64) bool {
		sym, ok := k.image.SymbolAt(x86.Addr(addr - 1))
		if !ok || strings.HasPrefix(sym.Name, "do_syscall_64") || len(s.Callers) == callers {
			return false
		}
		s.Callers = append(s.Callers, sym.Name)
		return true
	})
	if err != nil {
		return s, false
	}
	sym, ok := k.image.SymbolAt(at - 1)
	s.Place = fmt.Sprintf("%s+%#x", sym.Name, at.Sub(sym.Addr))
	return s, ok
}

// leaves returns the address at which a sleeping task called the scheduler. Then it passes
// the return addresses above it to callers, until callers returns false. A nil callers is
// not called.
func (k *Kernel) leaves(t kimage.Task, callers func(addr uint64) bool) (x86.Addr, error) {
	u, err := k.unwinder()
	if err != nil {
		return 0, err
	}
	f, ok := u.Asleep(t.SP)
	if !ok || !u.Kernel(f.IP) {
		return 0, errors.New("it runs on another CPU, or its stack cannot be read")
	}
	at, out := f.IP, !k.inScheduler(f.IP)
	u.Walk(f, k.returns(t), func(addr, _ uint64) bool {
		switch {
		case !out:
			at, out = addr, !k.inScheduler(addr)
			return !out || callers != nil
		case callers != nil:
			return callers(addr)
		}
		return false
	})
	if !out {
		return 0, fmt.Errorf("how it has come to %s cannot be told from its stack", k.machine.Symbolize(x86.Addr(f.IP)))
	}
	return x86.Addr(at), nil
}

// returns returns a function for a task's stack: for a return address that a return probe
// replaced by the trampoline, it returns the original address.
func (k *Kernel) returns(t kimage.Task) func(addr, at uint64) uint64 {
	cursor := kprobes.Cursor{}
	return func(addr, at uint64) uint64 {
		if n := k.machine.TaskNumber(t.Addr); n >= 0 && addr != 0 && addr == uint64(k.kprobes.Trampoline()) {
			return uint64(k.kprobes.FindReturnAddress(n, x86.Addr(at), &cursor))
		}
		return addr
	}
}
