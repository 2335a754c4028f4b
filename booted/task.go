package booted

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"kprobelab/kimage"
	"kprobelab/x86"
)

// ErrTask is a task in which calls cannot be made; what it wraps says why.
var ErrTask = errors.New("no calls can be made as this task")

// Tasks are the tasks of the booted kernel, as they are now.
func (k *Kernel) Tasks() ([]kimage.Task, error) {
	return k.image.TasksIn(k.machine.ReadMem)
}

// Names returns what tells a task's process ID and name by the machine's number of it. Where the dump
// does not say, it is kimage.UnknownPID and UnknownComm for every task.
func (k *Kernel) Names() func(n int) (pid int, comm string) {
	in, ok := k.image.TaskLayout()
	if !ok {
		return func(int) (int, string) { return kimage.UnknownPID, kimage.UnknownComm }
	}
	names := map[string]string{} // so that a hit does not make one anew
	var b [x86.TaskCommLen]byte
	return func(n int) (int, string) {
		at := k.machine.TaskStruct(n)
		if k.machine.ReadMem(at.Add(int64(in.PID)), b[:4]) != nil {
			return kimage.UnknownPID, kimage.UnknownComm
		}
		pid := int(int32(binary.LittleEndian.Uint32(b[:])))
		if k.machine.ReadMem(at.Add(int64(in.Comm)), b[:]) != nil {
			return pid, kimage.UnknownComm
		}
		text, _, _ := bytes.Cut(b[:], []byte{0})
		name, known := names[string(text)]
		if !known {
			name = string(text)
			names[name] = name
		}
		return pid, name
	}
}

// chooseTask finds a task by its number, or by its name.
func chooseTask(list []kimage.Task, text string) (*kimage.Task, error) {
	pid, err := strconv.Atoi(text)
	byNumber := err == nil
	var found []*kimage.Task
	for i := range list {
		if t := &list[i]; byNumber && t.PID == pid || !byNumber && t.Comm == text {
			found = append(found, t)
		}
	}
	switch len(found) {
	case 0:
		if byNumber {
			return nil, fmt.Errorf("%w: there is no task %d", ErrTask, pid)
		}
		return nil, fmt.Errorf("%w: there is no task of the name %q", ErrTask, text)
	case 1:
		return found[0], nil
	}
	var pids []string
	for _, t := range found {
		pids = append(pids, strconv.Itoa(t.PID))
	}
	return nil, fmt.Errorf("%w: %d tasks have the name %q; name one by its number: %s", ErrTask, len(found), text, strings.Join(pids, ", "))
}

func taskName(t *kimage.Task) string { return fmt.Sprintf("task %d (%s)", t.PID, t.Comm) }

// current is the task that the machine stands in.
func (k *Kernel) current() x86.Addr {
	at, ok := kimage.CurrentTask(k.image.Lookup)
	if !ok {
		return 0
	}
	return k.pointer(k.machine.GSBase(k.machine.CPU()) + at)
}
