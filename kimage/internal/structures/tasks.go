package structures

import (
	"errors"
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

// Task states (include/linux/sched.h).
const (
	stateIdle   = 0x402 // TASK_IDLE
	stateReport = 0x7f
)

// stateLetters are by the highest bit that is set (task_index_to_char).
const stateLetters = "RSDTtXZP"

// Tasks reads the list of processes, and for each the list of its threads. A broken list
// gives the tasks before the break. p has the offsets of the members (TaskPlaces).
func (k *Kernel) Tasks(p map[string]int) (tasks []Task, err error) {
	head, ok := k.Image.SymbolAddr("init_task")
	if !ok {
		return nil, errors.New("there is no init_task")
	}
	read := func(at x86.Addr) Task {
		member := func(name string) x86.Addr { return at.Add(int64(p["task_struct."+name])) }
		return Task{
			PID: int(k.Half(member("pid"))), TGID: int(k.Half(member("tgid"))), Comm: k.Text(member("comm"), x86.TaskCommLen),
			State:  stateLetter(k.Half(member("__state")), k.Half(member("exit_state"))),
			Kernel: k.Word(member("mm")) == 0,
			Addr:   at, SP: uint64(k.Word(member("thread.sp"))),
			Switches: uint64(k.Word(member("nvcsw")) + k.Word(member("nivcsw"))),
		}
	}
	first := head.Add(int64(p["task_struct.tasks"]))
	err = k.List(first, p["task_struct.tasks"], func(leader x86.Addr) bool {
		tasks = append(tasks, read(leader))
		threads := k.Word(leader.Add(int64(p["task_struct.signal"]))).Add(int64(p["signal_struct.thread_head"]))
		// A process that ends has no threads any more.
		_ = k.List(threads, p["task_struct.thread_node"], func(thread x86.Addr) bool {
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

// Uptime reads the clock of seconds since boot, without time in suspend.
func (k *Kernel) Uptime() (time.Duration, bool) {
	core, ok := k.Image.SymbolAddr("tk_core")
	seconds, known := k.Place("timekeeper.ktime_sec")
	if !ok || !known {
		return 0, false
	}
	keeper, named := k.Place("tk_data.timekeeper") // from 6.13 on the structure has a name
	if !named {
		keeper = 8 // after a sequence counter
	}
	return time.Duration(k.Word(core.Add(int64(keeper+seconds)))&0xffffffff) * time.Second, true
}
