//go:build linux

package mount

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"sync"
)

// processes knows which processes were seen.
type processes struct {
	mu sync.Mutex
	// began is when the mount was made, as processes count time.
	began uint64
	// seen has the start time of each process seen, by number.
	seen map[int]uint64
}

// maxSeen bounds what is remembered of processes that are long gone.
const maxSeen = 1 << 16

func newProcesses() *processes {
	_, began, _ := stat(os.Getpid())
	return &processes{began: began, seen: map[int]uint64{}}
}

// look reads who the process is, and says whether it is new: started after
// this process was, and not seen before.
func (p *processes) look(pid int) (who Process, isNew bool) {
	comm, start, ok := stat(pid)
	who = Process{PID: pid, Comm: comm}
	if !ok {
		return who, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if last, ok := p.seen[pid]; ok && last == start {
		return who, false
	}
	if len(p.seen) >= maxSeen {
		clear(p.seen)
	}
	p.seen[pid] = start
	return who, start >= p.began
}

// stat reads a process's name and its start time, in clock ticks since boot.
func stat(pid int) (comm string, start uint64, ok bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", 0, false
	}
	// The name is in parentheses, and may have some itself.
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 0 || end < open {
		return "", 0, false
	}
	const startTime = 22 - 3 // field 22, counted from the first behind the name
	fields := bytes.Fields(b[end+1:])
	if len(fields) <= startTime {
		return "", 0, false
	}
	start, err = strconv.ParseUint(string(fields[startTime]), 10, 64)
	return string(b[open+1 : end]), start, err == nil
}
