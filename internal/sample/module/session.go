package module

import (
	"kprobelab/machine"
	"kprobelab/x86"
)

// Flags of the clone family, by which the tasks of a session make tasks.
const (
	forkFlags    = 0x1200011 // glibc's fork: CLONE_CHILD_CLEARTID, CLONE_CHILD_SETTID, SIGCHLD
	kthreadFlags = 0x800711  // kthreadd's: CLONE_VM, CLONE_FS, CLONE_FILES, CLONE_UNTRACED, SIGCHLD
)

var sessionTasks = []string{"bash", "make", "cron", "sshd", "systemd", "gcc", "git", "vim"}

// sessionCalls is the number of forks of a task, unless Options.Calls says otherwise.
const sessionCalls = 2

// session returns the tasks that run under the modules of samples/kprobes: a shell, and
// others if asked for, each of which reads a file and forks, several times; and kthreadd,
// which is a kernel thread and forks once.
func (h *host) session(o *Options) []task {
	var list []task
	for i := range or(o.Tasks, 1) {
		t := task{comm: sessionTasks[i%len(sessionTasks)]}
		for range or(o.Calls, sessionCalls) {
			t.calls = append(t.calls,
				machine.Invoke("sys_open", "/etc/passwd", 0, 0),
				machine.Invoke("sys_read", 3+i, make([]byte, 32), 32),
				h.fork(forkFlags, 0),
				machine.Invoke("sys_close", 3+i))
		}
		list = append(list, t)
	}
	// A kernel thread's stack_start is the function that it runs.
	kthread := h.fork(kthreadFlags, h.lookup("worker"))
	return append(list, task{comm: "kthreadd", kernel: true, calls: []machine.Invocation{kthread}})
}

// fork makes a task by the function that the release has for it.
func (h *host) fork(flags uint64, stack x86.Addr) machine.Invocation {
	switch name := h.c.Sample.Function; name {
	case "do_fork", "_do_fork":
		return machine.Invoke(name, flags, stack, 0, 0, 0, 0)
	}
	return machine.Invoke("sys_clone", flags, stack, 0, 0, 0)
}
