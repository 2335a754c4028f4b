package tracing

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"kprobelab/internal/bounded"
	"kprobelab/x86"
)

// maxComm is the length in bytes of a task's name without its NUL.
const maxComm = x86.TaskCommLen - 1

// defaultTask names tasks. It keeps the names that it made, because it is called at every hit.
func defaultTask() func(int) (int, string) {
	names := []string{"init"}
	return func(n int) (int, string) {
		for len(names) <= n {
			names = append(names, "task-"+strconv.Itoa(len(names)))
		}
		return n + 1, names[n]
	}
}

// current is the task that runs now.
func (t *Tracing) current() (pid int, comm string) {
	pid, comm = t.o.Task(t.m.Task())
	if len(comm) > maxComm {
		comm = comm[:maxComm]
	}
	return pid, comm
}

// comms remembers the names of the tasks that wrote records (saved_cmdlines): a
// record has only the process ID.
type comms struct{ byPID map[int]string }

func (c *comms) init() { c.byPID = map[int]string{} }

func (c *comms) save(pid int, comm string) {
	old, known := c.byPID[pid]
	if known && old == comm {
		return
	}
	if known || len(c.byPID) < bounded.SavedNames {
		c.byPID[pid] = comm
	}
}

// text returns the content of saved_cmdlines, which has the tasks' names for readers of raw pages.
func (c *comms) text() string {
	var b strings.Builder
	for _, pid := range slices.Sorted(maps.Keys(c.byPID)) {
		fmt.Fprintf(&b, "%d %s\n", pid, c.byPID[pid])
	}
	return b.String()
}

// name returns a task's name in the file trace.
func (c *comms) name(pid int) string {
	if pid == 0 {
		return "<idle>"
	}
	if s, ok := c.byPID[pid]; ok {
		return s
	}
	return "<...>"
}
