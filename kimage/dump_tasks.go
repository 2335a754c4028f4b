package kimage

import (
	"errors"
	"fmt"
	"math/bits"
	"time"

	"kprobelab/internal/bounded"
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

// Tasks are the tasks of a running kernel, each process followed by its threads; none for
// another image, or where neither BTF nor the kernel's code tells where a task has its members.
func (img *Image) Tasks() []Task { return img.tasks }

// Task states (include/linux/sched.h).
const (
	stateIdle   = 0x402 // TASK_IDLE
	stateReport = 0x7f
)

// stateLetters are by the highest bit that is set (task_index_to_char).
const stateLetters = "RSDTtXZP"

// ErrTasks is a kernel whose lists of tasks cannot be read: what it wraps says why.
var ErrTasks = errors.New("the kernel's tasks are not known")

// TasksIn are the tasks that memory of this kernel has, as it is now. Where its members are not known, the error is ErrTasks.
func (img *Image) TasksIn(read func(at x86.Addr, b []byte) error) ([]Task, error) {
	list, err := (&dump{img: img, live: read}).tasks()
	if list == nil && err != nil {
		err = fmt.Errorf("%w: %w", ErrTasks, err)
	}
	return list, err
}

// findTasks reads the list of processes.
func (d *dump) findTasks() error {
	if _, ok := d.img.symbolAddr("init_task"); !ok {
		return nil
	}
	list, err := d.tasks()
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

// tasks reads the list of processes, and for each the list of its threads. A broken list
// gives the tasks before the break.
func (d *dump) tasks() (tasks []Task, err error) {
	head, ok := d.img.symbolAddr("init_task")
	if !ok {
		return nil, errors.New("there is no init_task")
	}
	p := d.img.taskPlaces
	if p == nil {
		return nil, fmt.Errorf("%w (a kernel that is built with CONFIG_DEBUG_INFO_BTF tells it; --exec does not need it)", d.img.taskUnknown)
	}
	read := func(at x86.Addr) Task {
		member := func(name string) x86.Addr { return at.Add(int64(p["task_struct."+name])) }
		return Task{
			PID: int(d.half(member("pid"))), TGID: int(d.half(member("tgid"))), Comm: d.text(member("comm"), x86.TaskCommLen),
			State:  stateLetter(d.half(member("__state")), d.half(member("exit_state"))),
			Kernel: d.word(member("mm")) == 0,
			Addr:   at, SP: uint64(d.word(member("thread.sp"))),
			Switches: uint64(d.word(member("nvcsw")) + d.word(member("nivcsw"))),
		}
	}
	first := head.Add(int64(p["task_struct.tasks"]))
	err = d.list(first, p["task_struct.tasks"], func(leader x86.Addr) bool {
		tasks = append(tasks, read(leader))
		threads := d.word(leader.Add(int64(p["task_struct.signal"]))).Add(int64(p["signal_struct.thread_head"]))
		// A process that ends has no threads any more.
		_ = d.list(threads, p["task_struct.thread_node"], func(thread x86.Addr) bool {
			if thread != leader {
				tasks = append(tasks, read(thread))
			}
			return len(tasks) < bounded.DumpTasks
		})
		return len(tasks) < bounded.DumpTasks
	})
	return tasks, err
}

func stateLetter(state, exit uint32) string {
	if state == stateIdle {
		return "I"
	}
	return stateLetters[bits.Len32((state|exit)&stateReport):][:1]
}

// findUptime reads the clock of seconds since boot, without time in suspend.
func (d *dump) findUptime() error {
	core, ok := d.img.symbolAddr("tk_core")
	seconds, known := d.place("timekeeper.ktime_sec")
	if !ok || !known {
		return nil
	}
	keeper, named := d.place("tk_data.timekeeper") // from 6.13 on the structure has a name
	if !named {
		keeper = 8 // after a sequence counter
	}
	v := d.word(core.Add(int64(keeper + seconds)))
	d.fact("uptime", (time.Duration(v&0xffffffff) * time.Second).String(), "tk_core")
	return nil
}
