package booted

import (
	"encoding/binary"

	"kprobelab/internal/orc"
	"kprobelab/kimage"
	"kprobelab/kimage/btf"
	"kprobelab/x86"
)

// Observer calls functions of the host while a booted kernel executes, and reads the kernel's memory in them. The guest is
// as without it. It ends with a Restore of the machine.
type Observer struct {
	k        *Kernel
	unwinder *orc.Unwinder
	tasks    kimage.TaskLayout
	hasTasks bool
}

// Observe returns an observer of the kernel.
func (k *Kernel) Observe() *Observer {
	o := &Observer{k: k}
	o.unwinder, _ = k.unwinder() // without tables there are no stacks
	o.tasks, o.hasTasks = k.image.TaskLayout()
	return o
}

// On calls fn before each execution of the instruction at an address. It returns false if the machine has no room for one
// more instruction.
func (o *Observer) On(at x86.Addr, fn func(*x86.PtRegs)) bool { return o.k.executions.on(at, fn) }

// OnReturn calls fn, which is called before the first instruction of a function, when this call of the function returns.
func (o *Observer) OnReturn(regs *x86.PtRegs, fn func(*x86.PtRegs)) {
	o.k.executions.onReturn(regs, fn)
}

// Forget drops the calls of a task that have not returned: the task has ended.
func (o *Observer) Forget(task x86.Addr) { o.k.executions.forget(task) }

// Lookup returns the address of a symbol; false if the kernel has none of that name, or several.
func (o *Observer) Lookup(name string) (x86.Addr, bool) {
	list := o.k.image.Lookup(name)
	if len(list) != 1 {
		return 0, false
	}
	return list[0].Addr, true
}

// Function returns the start and the name of the function that has an address.
func (o *Observer) Function(at x86.Addr) (start x86.Addr, name string, ok bool) {
	s, ok := o.k.image.SymbolAt(at)
	return s.Addr, s.Name, ok
}

// Types returns the kernel's types.
func (o *Observer) Types() *btf.Types { return o.k.image.Types() }

// Read reads memory of the kernel.
func (o *Observer) Read(at x86.Addr, b []byte) error { return o.k.machine.ReadMem(at, b) }

// Pointer reads eight bytes of the kernel's memory, 0 where there are none.
func (o *Observer) Pointer(at x86.Addr) x86.Addr { return o.k.pointer(at) }

// Word reads four bytes of the kernel's memory, 0 where there are none.
func (o *Observer) Word(at x86.Addr) uint32 { return o.k.word(at) }

// Byte reads a byte of the kernel's memory, 0 where there is none.
func (o *Observer) Byte(at x86.Addr) byte {
	var b [1]byte
	_ = o.k.machine.ReadMem(at, b[:])
	return b[0]
}

// String reads a string of the kernel's memory of at most so many bytes.
func (o *Observer) String(at x86.Addr, most int) string { return o.k.kernelString(at, most) }

// Task returns the task_struct of the task that runs.
func (o *Observer) Task() x86.Addr { return o.k.machine.RunningTask() }

// Named returns the process ID and the name of a task, kimage.UnknownPID and kimage.UnknownComm if the kernel does not say.
func (o *Observer) Named(task x86.Addr) (pid int, comm string) {
	var b [4]byte
	if !o.hasTasks || o.k.machine.ReadMem(task.Add(int64(o.tasks.PID)), b[:]) != nil {
		return kimage.UnknownPID, kimage.UnknownComm
	}
	return int(int32(binary.LittleEndian.Uint32(b[:]))), o.k.kernelString(task.Add(int64(o.tasks.Comm)), x86.TaskCommLen)
}

// Stack returns the addresses of the kernel's stack from registers on, the innermost first.
// original returns the true return address for one that was replaced, as at a place on the stack.
func (o *Observer) Stack(regs *x86.PtRegs, most int, original func(addr, at uint64) uint64) []x86.Addr {
	list := []x86.Addr{x86.Addr(regs.IP)}
	if o.unwinder == nil {
		return list
	}
	o.unwinder.Walk(orc.At(regs), original, func(addr, _ uint64) bool {
		if x86.Addr(addr) >= x86.UserEnd {
			list = append(list, x86.Addr(addr))
		}
		return len(list) < most && x86.Addr(addr) >= x86.UserEnd
	})
	return list
}

// Symbolize names an address by a symbol and an offset.
func (o *Observer) Symbolize(at x86.Addr) string { return o.k.machine.Symbolize(at) }

// Release is the kernel's release.
func (o *Observer) Release() string { return o.k.image.Release() }

// Begun returns the number of instructions that ran before the current block: exact where a block begins, as at a function's
// first instruction and after a call.
func (o *Observer) Begun() uint64 { return o.k.machine.BlockBegun() }

// Interrupts returns the number of interrupts that the kernel has taken.
func (o *Observer) Interrupts() uint64 { n, _ := o.k.machine.Interrupts(); return n }

// Instructions returns the number of instructions that ran.
func (o *Observer) Instructions() uint64 { return o.k.machine.Instructions() }
