package breakpoints

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"kprobelab/errno"
	"kprobelab/watch/registers"
	"kprobelab/x86"
)

// The questions.
const (
	Open = iota
	Close
	Fork
	Kill
	Poke
	Peek
	User
	Paranoid
	Online
)

// Tasks and Events bound the numbers of tasks and of events. Task 0 asks; the tasks from Others on
// belong to another user.
const (
	Tasks  = 8
	Others = 5
	Events = 64
)

// ExcludeKernel is a flag of Open.
const ExcludeKernel = 1

// Ask is one question, laid out as testdata/init/registers.c reads it.
type Ask struct {
	What uint64
	// N is the event of Open and Close, and the value of Paranoid. User becomes the user nobody
	// if it is 1, and root if it is 0; Online switches a CPU on or off.
	N uint64
	// Task is its number, -1 is none; CPU is -1 or one.
	Task, CPU int64
	// Type, Len and Addr are bp_type, bp_len and bp_addr. Addr of Poke and Peek is the offset, Len
	// the word.
	Type, Len, Addr, Flags uint64
}

func (a Ask) String() string {
	switch a.What {
	case Open:
		return fmt.Sprintf("open %d: task %d cpu %d type %d len %d addr %#x flags %d", a.N, a.Task, a.CPU, a.Type, a.Len, a.Addr, a.Flags)
	case Close:
		return fmt.Sprintf("close %d", a.N)
	case Poke:
		return fmt.Sprintf("poke task %d offset %d word %#x", a.Task, a.Addr, a.Len)
	case Online:
		return fmt.Sprintf("online %d: cpu %d", a.N, a.CPU)
	case Peek:
		return fmt.Sprintf("peek task %d offset %d", a.Task, a.Addr)
	}
	return fmt.Sprintf("%s: %d task %d", [...]string{Fork: "fork", Kill: "kill", User: "user", Paranoid: "paranoid"}[a.What], a.N, a.Task)
}

// Encode writes the questions in the form that the program reads.
func Encode(list []Ask) []byte {
	var b bytes.Buffer
	_ = binary.Write(&b, binary.LittleEndian, list) // a buffer takes all
	return b.Bytes()
}

// rules answers by the rules.
type rules struct {
	s      *registers.Set
	by     registers.Asker
	events [Events]*registers.Event
	// tasks is how many have had a number: each is another.
	tasks [Tasks]int
}

func newRules(k registers.Kernel) *rules {
	return &rules{s: registers.New(k), by: registers.Asker{Privileged: true, Others: func(task int) bool { return task%Tasks >= Others }}}
}

// Answers are the rules' answers: 0, a negative errno, or the word that is read.
func Answers(k registers.Kernel, list []Ask) []int64 {
	r, answers := newRules(k), make([]int64, len(list))
	for i, a := range list {
		answers[i] = r.answer(a)
	}
	return answers
}

func (r *rules) answer(a Ask) int64 {
	task := int(a.Task)
	if task > 0 {
		if a.What == Fork {
			r.tasks[task]++
		}
		task += Tasks * r.tasks[task]
	}
	switch a.What {
	case Open:
		e, err := r.s.Open(r.by, registers.Attr{
			Type: uint32(a.Type), Addr: x86.Addr(a.Addr), Len: a.Len, ExcludeKernel: a.Flags&ExcludeKernel != 0, Disabled: true,
		}, task, int(a.CPU))
		r.events[a.N] = e
		return code(err)
	case Close:
		r.s.Close(r.events[a.N])
		r.events[a.N] = nil
	case Kill:
		r.s.Exit(task)
	case Poke:
		return code(r.s.Poke(task, a.Addr, a.Len))
	case Peek:
		v, err := r.s.Peek(task, a.Addr)
		if err != nil {
			return code(err)
		}
		return int64(v)
	case User:
		r.by.Privileged = a.N == 0
	case Paranoid:
		r.s.Kernel.Paranoid = int(a.N)
	case Online:
		cpu := int(a.CPU)
		r.s.Kernel.Offline = slices.DeleteFunc(slices.Clone(r.s.Kernel.Offline), func(n int) bool { return n == cpu })
		if a.N == 0 {
			r.s.Kernel.Offline = append(r.s.Kernel.Offline, cpu)
		}
	}
	return 0
}

func code(err error) int64 {
	var e errno.Errno
	if errors.As(err, &e) {
		return -int64(e)
	}
	return 0
}
