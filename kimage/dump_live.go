package kimage

import (
	"errors"
	"fmt"
	"slices"

	"kprobelab/kimage/internal/structures"
	"kprobelab/kimage/vmcore"
	"kprobelab/x86"
)

// Task is a task of a running kernel.
type Task struct {
	// PID is the task's own number, TGID the number of its process.
	PID, TGID int
	// Comm is its name.
	Comm string
	// State is the letter that ps shows: R runs or can run, S sleeps, D sleeps and
	// cannot be woken by a signal, I idles, Z is a zombie.
	State string
	// Kernel: it has no memory of a program.
	Kernel bool
	// Addr is its task_struct. SP is its saved stack pointer, of a task that does not run.
	Addr x86.Addr
	SP   uint64
	// Switches counts the times that it has given up its CPU.
	Switches uint64
}

// TaskLayout holds the offsets of a task_struct's members that name a task, in bytes.
type TaskLayout struct{ PID, TGID, Comm int }

// Timer is a high-resolution timer that is set.
type Timer struct {
	// At is the address of its struct hrtimer, Function the address of the function that it calls.
	At, Function x86.Addr
}

// UnknownPID and UnknownComm stand for a task that nothing is known of; the name is as
// the file trace has it.
const (
	UnknownPID  = -1
	UnknownComm = "<...>"
)

// ErrTasks is a kernel whose lists of tasks cannot be read: what it wraps says why.
var ErrTasks = errors.New("the kernel's tasks are not known")

// Tasks are the tasks of a running kernel, each process followed by its threads; none for
// another image, or where neither BTF nor the kernel's code tells where a task has its members.
func (img *Image) Tasks() []Task { return img.tasks }

// TaskLayout returns the offsets of a task's numbers and name in the kernel of a
// dump: from BTF, or found in the tasks themselves. It returns false if neither has
// them.
func (img *Image) TaskLayout() (TaskLayout, bool) {
	return img.taskLayout, img.taskLayout != TaskLayout{}
}

// Processors returns the processors of a booted kernel, with the control registers that
// the dump notes or, without notes, with the ones that its memory holds. The error says
// why they are not known. The caller must not change them.
func (img *Image) Processors() ([]vmcore.CPU, error) { return img.processors, img.unknown }

// inMemory is the kernel of a dump, with its memory as it is now.
func (img *Image) inMemory(read func(at x86.Addr, b []byte) error) *structures.Kernel {
	return &structures.Kernel{Image: inside{img}, Types: img.Types, Memory: read}
}

// TasksIn are the tasks that memory of this kernel has, as it is now. Where its members are not known, the error is ErrTasks.
func (img *Image) TasksIn(read func(at x86.Addr, b []byte) error) ([]Task, error) {
	list, err := img.tasksOf(img.inMemory(read))
	if list == nil && err != nil {
		err = fmt.Errorf("%w: %w", ErrTasks, err)
	}
	return list, err
}

// TimersIn returns the high-resolution timers that are set in this kernel's present memory: the
// timers of nanosleep, alarms, timerfd and of code that waits until a time. bases are the bases of
// the per-CPU variables of each CPU.
func (img *Image) TimersIn(read func(at x86.Addr, b []byte) error, bases []x86.Addr) ([]Timer, error) {
	found, err := img.inMemory(read).Timers(bases)
	var list []Timer
	for _, t := range found {
		list = append(list, Timer(t))
	}
	return list, err
}

func (img *Image) tasksOf(k *structures.Kernel) ([]Task, error) {
	if _, ok := img.symbolAddr("init_task"); !ok {
		return nil, errors.New("there is no init_task")
	}
	if img.taskPlaces == nil {
		return nil, fmt.Errorf("%w (a kernel that is built with CONFIG_DEBUG_INFO_BTF tells it; --exec does not need it)", img.taskUnknown)
	}
	found, err := k.Tasks(img.taskPlaces)
	var list []Task
	for _, t := range found {
		list = append(list, Task(t))
	}
	return list, err
}

// findTaskLayout notes the layout; if BTF does not have it, a fact says where it is from.
func (d *dump) findTaskLayout() error {
	l, searched, ok := d.Layout()
	if ok {
		d.img.taskLayout = TaskLayout(l)
	}
	switch {
	case searched && ok:
		d.fact("task_struct", fmt.Sprintf("pid at %d, tgid at %d, comm at %d", l.PID, l.TGID, l.Comm), "common values of the tasks")
	case searched:
		d.fact("task_struct", "not known", "no type information, and the tasks do not tell")
	}
	return nil
}

// findTaskPlaces notes the offsets of the members.
func (d *dump) findTaskPlaces() error {
	var searched bool
	if d.img.taskPlaces, searched, d.img.taskUnknown = d.TaskPlaces(); searched {
		d.fact("members of tasks", "found", "the code of "+structures.TaskCode+", and common values of the tasks")
	}
	return nil
}

// findTasks reads the list of processes.
func (d *dump) findTasks() error {
	if _, ok := d.img.symbolAddr("init_task"); !ok {
		return nil
	}
	list, err := d.img.tasksOf(&d.Kernel)
	if list == nil && err != nil {
		d.fact("tasks", "not known", err.Error())
		return nil
	}
	d.img.tasks = list
	programs := 0
	for _, t := range list {
		if !t.Kernel {
			programs++
		}
	}
	why := "the kernel's list"
	if err != nil {
		why = err.Error()
	}
	d.fact("tasks", fmt.Sprintf("%d, %d of them the kernel's own", len(list), len(list)-programs), why)
	return nil
}

// findUptime reads the time since boot.
func (d *dump) findUptime() error {
	if up, ok := d.Uptime(); ok {
		d.fact("uptime", up.String(), "tk_core")
	}
	return nil
}

// findRegisters finds the control registers that the dump has no note of.
func (d *dump) findRegisters() error {
	d.img.processors = slices.Clone(d.core.CPUs())
	separated := d.img.cpu != nil && d.img.cpu.Flags["pti"]
	found := 0
	for n := range d.img.processors {
		c := &d.img.processors[n]
		if c.Control != nil {
			continue
		}
		if err := d.FindControl(n, c, d.physical, separated); err != nil {
			d.img.unknown = fmt.Errorf("the dump notes no control registers of CPU %d, and its memory does not tell them: %w", n, err)
			d.fact("control registers", "not known", d.img.unknown.Error())
			return nil
		}
		found++
	}
	switch {
	case len(d.img.processors) == 0:
		d.img.unknown = fmt.Errorf("the dump has no registers of its processors")
	case found > 0:
		d.fact("control registers", "found", "the dump notes none; they were found in the kernel's memory")
	}
	return nil
}

// physical returns the physical address of memory of the kernel.
func (d *dump) physical(at x86.Addr) (uint64, error) {
	t, err := d.space.Translate(at)
	return t.Phys, err
}
