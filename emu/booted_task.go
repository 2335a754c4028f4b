//go:build unicorn && cgo && linux && amd64

package emu

// #include "shim.h"
import "C"

import (
	"kprobelab/internal/contract"
	"kprobelab/internal/fromdump"
	"kprobelab/x86"
)

// Current is the address of the task that runs.
func (e *engine) Current() x86.Addr { return x86.Addr(e.word(e.cur.gs + e.b.current)) }

// noteTask makes the guest's running task the machine's.
func (e *engine) noteTask() {
	if e.b != nil {
		e.host.SetTask(e.b.tasks.Of(e.Current()))
	}
}

// TaskStruct is the address of a booted kernel's task by its number (Task), 0 where
// there is none.
func (e *engine) TaskStruct(task int) x86.Addr {
	return e.b.tasks.Struct(task)
}

// TaskNumber returns the number of a task by its address, -1 if it has none.
func (e *engine) TaskNumber(task x86.Addr) int {
	return e.b.tasks.Number(task)
}

// watchExits reports the end of a task of the guest to the receiver of traps, and ends a call of
// the host whose task ends: such a call never returns.
func (e *engine) watchExits() {
	for _, name := range fromdump.FlushTask {
		if at := e.variable(name); at != 0 {
			C.kpl_hook_exit(e.cur.c, C.uint64_t(at))
		}
	}
	if at := e.variable(fromdump.TaskDead); at != 0 {
		C.kpl_hook_dead(e.cur.c, C.uint64_t(at))
	}
}

// watchPanics ends the run of a kernel that panics: after its message a kernel only waits.
func (e *engine) watchPanics() {
	for _, name := range fromdump.Panics {
		if at := e.variable(name); at != 0 {
			C.kpl_hook_dump(e.cur.c, C.uint64_t(at))
		}
	}
}

//export kplTaskExit
func kplTaskExit(h C.uintptr_t, task C.uint64_t) {
	e := engineOf(h)
	e.host.Call(func() contract.HostAnswer {
		if n, known := e.b.tasks.Forget(x86.Addr(task)); known {
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
