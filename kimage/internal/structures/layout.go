package structures

import (
	"bytes"
	"encoding/binary"

	"kprobelab/x86"
)

// TaskLayout holds the offsets of a task_struct's members that name a task, in bytes.
type TaskLayout struct{ PID, TGID, Comm int }

// Layout returns the offsets of the members that name a task: from BTF, or found in the tasks
// themselves. It returns false if neither has them. searched reports that BTF does not have them.
func (k *Kernel) Layout() (l TaskLayout, searched, ok bool) {
	if p, err := k.Places("task_struct.pid", "task_struct.tgid", "task_struct.comm"); err == nil {
		return TaskLayout{p["task_struct.pid"], p["task_struct.tgid"], p["task_struct.comm"]}, false, true
	}
	head, ok := k.Image.SymbolAddr("init_task")
	if !ok {
		return l, false, false
	}
	l, _, ok = k.searchLayout(head)
	return l, true, ok
}

// Bounds of the search. A task_struct is smaller, and a list of processes longer only where
// most of it is enough.
const (
	maxTaskStruct = 16 << 10
	maxLeaders    = 256
)

// searchLayout searches the members by known facts: the first task is called swapper
// and has the number 0; the list of processes goes through init_task and leads to
// processes with names; its first two have the numbers 1 and 2, each process is its own
// leader, and no number occurs twice. The list's links are at list.
func (k *Kernel) searchLayout(head x86.Addr) (l TaskLayout, list int, ok bool) {
	first := k.task(head)
	comm, ok := swapperAt(first)
	if !ok {
		return l, 0, false
	}
	found := map[int]TaskLayout{}
	for link := 0; link+16 <= len(first); link += 8 {
		leaders := k.leaders(head, link, comm)
		if leaders == nil {
			continue
		}
		pids := leaderPIDs(first, leaders)
		if len(pids) == 1 {
			found[link] = TaskLayout{pids[0], pids[0] + 4, comm}
		}
	}
	for list, l = range found {
		return l, list, len(found) == 1
	}
	return l, 0, false
}

// task reads a task_struct, whose size is not known: as much as there is.
func (k *Kernel) task(at x86.Addr) []byte {
	for n := maxTaskStruct; n >= 1<<10; n /= 2 {
		if b := k.Read(at, n); len(b) == n {
			return b
		}
	}
	return nil
}

// swapperAt finds the name of the first task: swapper, or with its processor swapper/0.
func swapperAt(task []byte) (at int, ok bool) {
	const name = "swapper"
	at = bytes.Index(task, []byte(name))
	if at < 0 || at+x86.TaskCommLen > len(task) || bytes.Contains(task[at+1:], []byte(name)) {
		return 0, false
	}
	end := task[at+len(name)]
	return at, end == 0 || end == '/'
}

// leaders returns the tasks of a list that goes through the first task at link, if each
// has a name; nil if it is no such list.
func (k *Kernel) leaders(head x86.Addr, link, comm int) (tasks [][]byte) {
	start := head.Add(int64(link))
	last := start
	for at := k.Word(start); at != start; at = k.Word(at) {
		if len(tasks) == maxLeaders {
			break
		}
		if k.Word(at.Add(8)) != last {
			return nil
		}
		task := k.task(at.Add(-int64(link)))
		if comm+x86.TaskCommLen > len(task) || !isComm(task[comm:][:x86.TaskCommLen]) {
			return nil
		}
		tasks, last = append(tasks, task), at
	}
	if len(tasks) < 2 {
		return nil
	}
	return tasks
}

// isComm tells a task's name from other bytes.
func isComm(b []byte) bool {
	name, _, ended := bytes.Cut(b, []byte{0})
	return ended && len(name) > 0 && bytes.IndexFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) < 0
}

// leaderPIDs are the places that can be the one of pid, with tgid after it.
func leaderPIDs(first []byte, leaders [][]byte) (at []int) {
	for p := 0; p+8 <= len(first); p += 4 {
		if binary.LittleEndian.Uint64(first[p:]) == 0 && numbered(leaders, p) {
			at = append(at, p)
		}
	}
	return at
}

func numbered(leaders [][]byte, at int) bool {
	seen := map[uint32]bool{}
	for i, task := range leaders {
		if at+8 > len(task) {
			return false
		}
		pid := binary.LittleEndian.Uint32(task[at:])
		if pid == 0 || pid != binary.LittleEndian.Uint32(task[at+4:]) || seen[pid] || i < 2 && pid != uint32(i+1) {
			return false
		}
		seen[pid] = true
	}
	return true
}
