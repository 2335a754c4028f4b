package module

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"kprobelab"
	"kprobelab/errno"
	"kprobelab/machine"
	"kprobelab/x86"
)

// The guest kernel's struct task_struct (testdata/guest/guest.h): offsets in
// bytes.
const (
	taskPID  = 8
	taskTGID = 12
	taskMM   = 24
	taskComm = 40
	taskSize = 56
	commLen  = taskSize - taskComm
)

// userMM stands for the address space that a task of user space has.
const userMM = 0xffff888000001000

// current holds the guest's records of the running task: each task of the machine has a
// task_struct, and each CPU's current_task points at its own.
type current struct {
	lab *kprobelab.Lab
	// task and preempt are the per-CPU variables' symbols, init the boot
	// task's task_struct.
	task, preempt, init x86.Addr
	// structs are by the machine's task numbers.
	structs map[int]x86.Addr
	err     error
}

func newCurrent(l *kprobelab.Lab) (*current, error) {
	c := &current{lab: l, structs: map[int]x86.Addr{}}
	for name, at := range map[string]*x86.Addr{
		"current_task": &c.task, "__preempt_count": &c.preempt, "init_task": &c.init,
	} {
		s := l.Image.Lookup(name)
		if len(s) == 0 {
			return nil, fmt.Errorf("%s has no %s, and is not the guest kernel: %w", l.Image.Name(), name, errno.ENOENT)
		}
		*at = s[0].Addr
	}
	l.Machine.OnSwitch(c.switched)
	return c, nil
}

// close leaves every CPU with the boot task, and the heap as it was.
func (c *current) close() error {
	c.lab.Machine.OnSwitch(nil)
	for cpu := range c.lab.Machine.NumCPU() {
		c.point(cpu, c.init)
	}
	for _, at := range c.structs {
		c.lab.Machine.Free(at)
	}
	return c.err
}

// add gives a task its task_struct. One without user space is a kernel thread.
func (c *current) add(t *machine.Task, user bool) error {
	at, err := c.lab.Machine.Alloc(taskSize)
	if err != nil {
		return err
	}
	c.structs[t.Number()] = at
	var b [taskSize]byte
	binary.LittleEndian.PutUint32(b[taskPID:], uint32(t.Number()))
	binary.LittleEndian.PutUint32(b[taskTGID:], uint32(t.Number()))
	if user {
		binary.LittleEndian.PutUint64(b[taskMM:], userMM)
	}
	copy(b[taskComm:taskSize-1], t.Name)
	return c.lab.Machine.WriteMem(at, b[:])
}

func (c *current) switched(cpu int, t *machine.Task) {
	at, ok := c.structs[t.Number()]
	if !ok {
		at = c.init
	}
	c.point(cpu, at)
}

// point sets current of a CPU.
func (c *current) point(cpu int, at x86.Addr) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(at))
	c.check(c.lab.Machine.WriteMem(c.perCPU(cpu, c.task), b[:]))
}

// perCPU returns the address of a CPU's copy of a per-CPU variable.
func (c *current) perCPU(cpu int, symbol x86.Addr) x86.Addr {
	return c.lab.Machine.GSBase(cpu) + symbol
}

func (c *current) check(err error) {
	if c.err == nil {
		c.err = err
	}
}

// read reads n bytes of the running task's task_struct.
func (c *current) read(off int64, b []byte) []byte {
	var p [8]byte
	c.check(c.lab.Machine.ReadMem(c.perCPU(c.lab.Machine.CPU(), c.task), p[:]))
	c.check(c.lab.Machine.ReadMem(x86.Addr(binary.LittleEndian.Uint64(p[:])).Add(off), b))
	return b
}

// comm is current->comm.
func (c *current) comm() string {
	name, _, _ := bytes.Cut(c.read(taskComm, make([]byte, commLen)), []byte{0})
	return string(name)
}

// kernelThread reports whether current->mm is NULL.
func (c *current) kernelThread() bool {
	return binary.LittleEndian.Uint64(c.read(taskMM, make([]byte, 8))) == 0
}

// preemptCount is preempt_count(): without the inverted "no rescheduling
// needed" bit.
func (c *current) preemptCount() uint32 {
	var b [4]byte
	c.check(c.lab.Machine.ReadMem(c.perCPU(c.lab.Machine.CPU(), c.preempt), b[:]))
	return binary.LittleEndian.Uint32(b[:]) &^ (1 << 31)
}

// place returns the machine's present CPU, task and time.
func (c *current) place() *Place {
	m := c.lab.Machine
	return &Place{CPU: m.CPU(), Task: m.Task(), Comm: c.comm(), Now: m.Now()}
}
