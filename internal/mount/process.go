//go:build linux

package mount

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"sync"

	"kprobelab/internal/bounded"
)

// processes counts the processes that the host has made: a process that comes
// to the mount was forked before it came, by a shell for instance.
type processes struct {
	mu sync.Mutex
	// last is the number of the newest process, 0 where the host does not tell.
	last int
	// seen are the processes that have come here, by number.
	seen map[int]bool
}

const (
	// maxForks is the most forks that are reported at once; other programs may be busy on the host.
	maxForks = 4
)

func newProcesses() *processes {
	return &processes{last: newest(), seen: map[int]bool{}}
}

// caller is the process that makes a request.
type caller struct {
	Process
	// parent is its parent's number; isNew is true at its first request.
	parent int
	isNew  bool
}

// forker returns the process that has probably made the newest process: the caller's parent if the
// caller is new, else the caller.
func (c *caller) forker() Process {
	if !c.isNew {
		return c.Process
	}
	comm, _ := stat(c.parent)
	if comm == "" {
		return c.Process
	}
	return Process{PID: c.parent, Comm: comm}
}

// look identifies the caller, and returns the number of forks since the last call.
func (p *processes) look(pid int) (c caller, forks int) {
	c.PID = pid
	c.Comm, c.parent = stat(pid)
	now := newest()
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.isNew = !p.seen[pid]; c.isNew {
		if len(p.seen) >= bounded.MountProcesses {
			clear(p.seen)
		}
		p.seen[pid] = true
	}
	switch {
	case now > p.last:
		forks = min(now-p.last, maxForks)
	case now < p.last: // the numbers began anew
		forks = 1
	}
	p.last = now
	return c, forks
}

// newest is the number of the process that was made last.
func newest() int {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	fields := bytes.Fields(b)
	if len(fields) < 5 {
		return 0
	}
	n, _ := strconv.Atoi(string(fields[4]))
	return n
}

// stat reads a process's name and its parent's number; nothing if the process has gone.
func stat(pid int) (comm string, parent int) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", 0
	}
	// The name is in parentheses, and may have some itself.
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 0 || end < open {
		return "", 0
	}
	fields := bytes.Fields(b[end+1:])
	if len(fields) > 1 { // state, parent
		parent, _ = strconv.Atoi(string(fields[1]))
	}
	return string(b[open+1 : end]), parent
}
