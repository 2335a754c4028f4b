package structures

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"kprobelab/decoder"
	"kprobelab/kimage/internal/opened"
	"kprobelab/x86"
)

// taskMembers are the members that listing the tasks needs. Of __state there is the older name state, to 5.13.
var taskMembers = []string{
	"task_struct.tasks", "task_struct.pid", "task_struct.tgid", "task_struct.comm", "task_struct.mm", "task_struct.__state",
	"task_struct.exit_state", "task_struct.signal", "task_struct.thread_node", "signal_struct.thread_head", "task_struct.thread.sp",
	"task_struct.nvcsw", "task_struct.nivcsw",
}

// TaskPlaces returns the offsets of the members that Tasks reads: by BTF, or by the kernel's code and the
// tasks themselves, which searched reports.
func (k *Kernel) TaskPlaces() (places map[string]int, searched bool, err error) {
	places, err = k.describedTaskPlaces()
	head, ok := k.Image.SymbolAddr("init_task")
	if err == nil || !ok {
		return places, false, err
	}
	s, search := k.searchTasks(head)
	if search != nil {
		return nil, false, fmt.Errorf("%w, and its offset cannot be found: %w", err, search)
	}
	return s.places, true, nil
}

func (k *Kernel) describedTaskPlaces() (map[string]int, error) {
	p := map[string]int{}
	for _, name := range taskMembers {
		at, ok := k.Place(name)
		if !ok && name == "task_struct.__state" {
			at, ok = k.Place("task_struct.state")
		}
		if !ok {
			return nil, fmt.Errorf("no type information about %s", name)
		}
		p[name] = at
	}
	return p, nil
}

// TaskCode are the functions whose code is read.
const TaskCode = "try_to_wake_up, get_task_mm, thread_group_cputime, do_exit and __schedule"

// taskSearch finds members by the kernel's code that uses them and by the values that the tasks
// then have in common. A member is found only if exactly one offset fits both.
type taskSearch struct {
	*Kernel
	head   x86.Addr
	first  []byte
	tasks  []searchedTask
	places map[string]int
}

// searchedTask is a process of the list, as much of it as can be read.
type searchedTask struct {
	at x86.Addr
	b  []byte
}

func (k *Kernel) searchTasks(head x86.Addr) (*taskSearch, error) {
	l, link, ok := k.searchLayout(head)
	if !ok {
		return nil, errors.New("the tasks do not tell their numbers and names")
	}
	s := &taskSearch{Kernel: k, head: head, first: k.task(head), places: map[string]int{
		"task_struct.tasks": link, "task_struct.pid": l.PID, "task_struct.tgid": l.TGID, "task_struct.comm": l.Comm,
	}}
	start := head.Add(int64(link))
	for at := k.Word(start); at != start && len(s.tasks) < maxLeaders; at = k.Word(at) {
		task := at.Add(-int64(link))
		s.tasks = append(s.tasks, searchedTask{task, k.task(task)})
	}
	for _, find := range []func() error{s.findState, s.findSP, s.findMM, s.findThreads, s.findExitState, s.findSwitches} {
		if err := find(); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// found notes a member's place, if there is one alone.
func (s *taskSearch) found(member string, list []int) error {
	list = slices.Compact(slices.Sorted(slices.Values(list)))
	if len(list) != 1 {
		return fmt.Errorf("%d places fit %s", len(list), member)
	}
	s.places[member] = list[0]
	return nil
}

// fitting returns the offsets among the given ones, of a width in bytes, at which each task has a
// value that fits.
func (s *taskSearch) fitting(among map[int]bool, width int, fits func(i int, b []byte) bool) (list []int) {
	for _, at := range slices.Sorted(maps.Keys(among)) {
		ok := at >= 0
		for i, t := range s.tasks {
			ok = ok && at+width <= len(t.b) && fits(i, t.b[at:][:width])
		}
		if ok {
			list = append(list, at)
		}
	}
	return list
}

// anywhere returns all offsets of a width.
func (s *taskSearch) anywhere(width int) map[int]bool {
	m := map[int]bool{}
	for at := 0; at+width <= len(s.first); at += width {
		m[at] = true
	}
	return m
}

// touched are the displacements of the memory operands of functions: the places of members that they read or write, among others.
func (k *Kernel) touched(functions ...string) map[int]bool {
	m := map[int]bool{}
	for _, f := range functions {
		opened.Walk(k.Image, f, func(_ x86.Addr, i *decoder.Inst) bool {
			if i.HasModRM && i.ModRM>>6 != 3 && !i.RIPRelative {
				m[int(i.Disp)] = true
			}
			return true
		})
	}
	return m
}

// findState: what wakes a task compares its state. The states of tasks are few, and tasks of the kernel's own that have nothing to do are in
// TASK_IDLE, others in TASK_INTERRUPTIBLE.
func (s *taskSearch) findState() error {
	const (
		interruptible = 1
		known         = 0xffff
	)
	return s.found("task_struct.__state", s.withBoth(s.fitting(s.touched("try_to_wake_up"), 4, func(_ int, b []byte) bool {
		return binary.LittleEndian.Uint32(b) <= known
	}), stateIdle, interruptible))
}

// withBoth are the places at which some task has the one number and some task the other.
func (s *taskSearch) withBoth(list []int, a, b uint32) (both []int) {
	for _, at := range list {
		var hasA, hasB bool
		for _, t := range s.tasks {
			v := binary.LittleEndian.Uint32(t.b[at:])
			hasA, hasB = hasA || v == a, hasB || v == b
		}
		if hasA && hasB {
			both = append(both, at)
		}
	}
	return both
}

// frameWords is the number of words on the stack of a task that does not run that are searched,
// from its stack pointer on: saved registers, and the return address of __switch_to_asm (struct
// inactive_task_frame).
const frameWords = 9

// findSP: of a task that does not run, the return from __switch_to_asm is on the stack, or it has not run yet.
func (s *taskSearch) findSP() error {
	return s.found("task_struct.thread.sp", s.fitting(s.anywhere(8), 8, func(i int, b []byte) bool {
		if s.running(i) {
			return true
		}
		frame := s.Read(opened.Abs64(b), frameWords*8)
		for at := 0; at+8 <= len(frame); at += 8 {
			if s.switches(opened.Abs64(frame[at:])) {
				return true
			}
		}
		return false
	}))
}

// running reports whether a task may be one that a CPU is in: its state is 0.
func (s *taskSearch) running(i int) bool {
	return binary.LittleEndian.Uint32(s.tasks[i].b[s.places["task_struct.__state"]:]) == 0
}

// switches reports whether an address is that after a call of __switch_to_asm, or where a new task begins.
func (s *taskSearch) switches(at x86.Addr) bool {
	for _, name := range []string{"ret_from_fork", "ret_from_fork_asm"} {
		if begin, ok := s.Image.SymbolAddr(name); ok && at == begin {
			return true
		}
	}
	to, ok := s.Image.SymbolAddr("__switch_to_asm")
	b := s.Read(at.Add(-5), 5)
	return ok && len(b) == 5 && b[0] == x86.Call32 && opened.Rel32(at, b[1:]) == to
}

// findMM: get_task_mm reads it. Task 1 has a program's memory, task 2 and what it has made have none.
func (s *taskSearch) findMM() error {
	return s.found("task_struct.mm", s.fitting(s.touched("get_task_mm"), 8, func(i int, b []byte) bool {
		switch mm := opened.Abs64(b); i {
		case 0:
			return mm >= directMapStart && mm%8 == 0 && len(s.Read(mm, 8)) == 8
		case 1:
			return mm == 0
		}
		return true
	}))
}

// directMapStart is below all that the kernel maps memory at.
const directMapStart = x86.Addr(0xff00000000000000)

// maxSignal bounds the search: a signal_struct is smaller.
const maxSignal = 4 << 10

// findThreads: a process of one thread has a list of two elements, in its task and in its signal_struct, to which the task points.
func (s *taskSearch) findThreads() error {
	type places struct{ signal, head, node int }
	var found []places
	for node := 0; node+16 <= len(s.first); node += 8 {
		var x []x86.Addr // addresses of the other element, for lists of just two
		var of []searchedTask
		for _, t := range s.tasks {
			if node+16 > len(t.b) {
				continue
			}
			next, own := opened.Abs64(t.b[node:]), t.at.Add(int64(node))
			if next != own && next == opened.Abs64(t.b[node+8:]) && s.Word(next) == own && s.Word(next.Add(8)) == own {
				x, of = append(x, next), append(of, t)
			}
		}
		if len(of)*2 < len(s.tasks) || len(of) < 2 {
			continue
		}
		for signal := 0; signal+8 <= len(s.first); signal += 8 {
			head, ok := int64(0), true
			for i, t := range of {
				d := x[i].Sub(opened.Abs64(t.b[signal:]))
				if i == 0 {
					head = d
				}
				ok = ok && d == head && d > 0 && d < maxSignal
			}
			if ok {
				found = append(found, places{signal, int(head), node})
			}
		}
	}
	read := s.touched("thread_group_cputime")
	found = slices.DeleteFunc(found, func(p places) bool { return !read[p.signal] || !read[p.head] })
	if len(found) != 1 {
		return fmt.Errorf("%d places fit task_struct.thread_node", len(found))
	}
	s.places["task_struct.signal"], s.places["signal_struct.thread_head"], s.places["task_struct.thread_node"] = found[0].signal, found[0].head, found[0].node
	return nil
}

// findExitState: a task that exits becomes a zombie, or is dead at once, and none on the list is dead.
func (s *taskSearch) findExitState() error {
	const (
		dead   = 0x10
		zombie = 0x20
		live   = 0
	)
	written := map[int64]map[int]bool{dead: {}, zombie: {}}
	for _, f := range []string{"exit_notify", "do_exit"} {
		opened.Walk(s.Image, f, func(_ x86.Addr, i *decoder.Inst) bool {
			const movl = 0xc7
			if i.Encoding == decoder.EncPrimary && i.Opcode == movl && i.ModRM>>6 != 3 && written[i.Imm()] != nil {
				written[i.Imm()][int(i.Disp)] = true
			}
			return true
		})
	}
	maps.DeleteFunc(written[zombie], func(at int, _ bool) bool { return !written[dead][at] })
	return s.found("task_struct.exit_state", s.fitting(written[zombie], 4, func(_ int, b []byte) bool {
		v := binary.LittleEndian.Uint32(b)
		return v == live || v == zombie
	}))
}

// findSwitches: __schedule takes the address of one of two counts that lie beside each other, and the kernel tells both of a task.
func (s *taskSearch) findSwitches() error {
	const lea = 0x8d
	counted := map[int]bool{}
	opened.Walk(s.Image, "__schedule", func(_ x86.Addr, i *decoder.Inst) bool {
		if i.Encoding == decoder.EncPrimary && i.Opcode == lea && !i.RIPRelative && i.Disp > 0 {
			counted[int(i.Disp)] = true
		}
		return true
	})
	told := s.touched("getrusage", "k_getrusage", "proc_pid_status")
	maps.DeleteFunc(counted, func(at int, _ bool) bool { return !told[at] })
	fits := s.fitting(counted, 8, func(_ int, b []byte) bool { return binary.LittleEndian.Uint64(b)>>48 == 0 })
	fits = slices.DeleteFunc(fits, func(at int) bool { return !counted[at+8] })
	if err := s.found("task_struct.nvcsw", fits); err != nil {
		return err
	}
	s.places["task_struct.nivcsw"] = fits[0] + 8
	return nil
}
