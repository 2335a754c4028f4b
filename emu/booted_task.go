//go:build unicorn && cgo && linux && amd64

package emu

// #include "shim.h"
import "C"

import (
	"fmt"
	"slices"
	"strings"

	"kprobelab/internal/contract"
	"kprobelab/machine"
	"kprobelab/x86"
)

// tasks are the numbers of a booted kernel's tasks, by the address of their task_struct: the first
// task seen has 0. Numbers of dead tasks are used again.
type tasks struct {
	number map[x86.Addr]int
	byNum  []x86.Addr // 0: free
}

func (t *tasks) of(task x86.Addr) int {
	if n, ok := t.number[task]; ok {
		return n
	}
	n := slices.Index(t.byNum, 0)
	if n < 0 {
		n = len(t.byNum)
		t.byNum = append(t.byNum, 0)
	}
	if t.number == nil {
		t.number = map[x86.Addr]int{}
	}
	t.number[task], t.byNum[n] = n, task
	return n
}

// forget frees the number of a task, if it has one.
func (t *tasks) forget(task x86.Addr) (n int, known bool) {
	if n, known = t.number[task]; known {
		delete(t.number, task)
		t.byNum[n] = 0
	}
	return n, known
}

func (t *tasks) clone() tasks {
	c := tasks{byNum: slices.Clone(t.byNum), number: map[x86.Addr]int{}}
	for n, task := range c.byNum {
		if task != 0 {
			c.number[task] = n
		}
	}
	return c
}

// Current is the address of the task that runs.
func (e *engine) Current() x86.Addr { return x86.Addr(e.word(e.cur.gs + e.b.current)) }

// noteTask makes the guest's running task the machine's.
func (e *engine) noteTask() {
	if e.b != nil {
		e.host.SetTask(e.b.tasks.of(e.Current()))
	}
}

// TaskStruct is the address of a booted kernel's task by its number (Task), 0 where
// there is none.
func (e *engine) TaskStruct(task int) x86.Addr {
	if task < 0 || task >= len(e.b.tasks.byNum) {
		return 0
	}
	return e.b.tasks.byNum[task]
}

// TaskNumber returns the number of a task by its address, -1 if it has none.
func (e *engine) TaskNumber(task x86.Addr) int {
	if n, ok := e.b.tasks.number[task]; ok {
		return n
	}
	return -1
}

// flushTask are the functions that the kernel calls with a task that will never run
// again, for its return probes (kernel/kprobes.c, kernel/trace/rethook.c).
var flushTask = []string{"kprobe_flush_task", "rethook_flush_task"}

// watchExits reports the end of a task of the guest to the receiver of traps, and ends a call of
// the host whose task ends: such a call never returns.
func (e *engine) watchExits() {
	for _, name := range flushTask {
		if at := e.variable(name); at != 0 {
			C.kpl_hook_exit(e.cur.c, C.uint64_t(at))
		}
	}
	if at := e.variable(taskDead); at != 0 {
		C.kpl_hook_dead(e.cur.c, C.uint64_t(at))
	}
}

// taskDead is the function in which a task gives up its CPU for ever (kernel/sched/core.c,
// since 4.9).
const taskDead = "do_task_dead"

// panics are the functions that panic() calls when its message is printed
// (kernel/panic.c), to 6.10 and since 6.11.
var panics = []string{"kmsg_dump", "kmsg_dump_desc"}

// watchPanics ends the run of a kernel that panics: after its message a kernel only waits.
func (e *engine) watchPanics() {
	for _, name := range panics {
		if at := e.variable(name); at != 0 {
			C.kpl_hook_dump(e.cur.c, C.uint64_t(at))
		}
	}
}

// panicLine is the beginning of the kernel's line about a panic; the reason follows it.
const panicLine = "Kernel panic - not syncing: "

// panicked is the error of a kernel that has panicked, with the reason from its console.
func (e *engine) panicked() error {
	text := string(e.Console())
	at := strings.LastIndex(text, panicLine)
	if at < 0 {
		return machine.ErrPanicked
	}
	why, _, _ := strings.Cut(text[at+len(panicLine):], "\n")
	return fmt.Errorf("%w: %s", machine.ErrPanicked, strings.TrimSpace(why))
}

//export kplTaskExit
func kplTaskExit(h C.uintptr_t, task C.uint64_t) {
	e := engineOf(h)
	e.host.Call(func() contract.HostAnswer {
		if n, known := e.b.tasks.forget(x86.Addr(task)); known {
			e.host.TaskExit(n)
		}
		return contract.Resume
	})
}

//export kplTaskDead
func kplTaskDead(h C.uintptr_t) C.int {
	e := engineOf(h)
	if e.Current() != e.b.caller {
		return 0
	}
	return 1
}

// Grace waits until every task of the guest has given up its CPU by itself or was in user mode: the
// guest's own grace period. Kernels without such a grace period do not preempt kernel code.
func (e *engine) Grace() bool {
	m := e.host.Machine()
	if e.host.Outside() != nil || e.b.lost != nil {
		return false
	}
	if e.b.graceAt == m.Now() && e.b.graceAt != 0 || e.variable("synchronize_rcu_tasks") == 0 {
		return true
	}
	_, err := m.Call("synchronize_rcu_tasks")
	e.b.graceAt = m.Now()
	return err == nil
}
