package attach

import (
	"bytes"
	"encoding/binary"
	"slices"

	"kprobelab/internal/bounded"
	"kprobelab/internal/orc"
	"kprobelab/internal/script"
	"kprobelab/internal/script/host"
	"kprobelab/kimage"
	"kprobelab/kimage/btf"
	"kprobelab/kprobes"
	"kprobelab/x86"
)

// hit is the context of the running handler. A Runner has one hit, because handlers run one at a time.
type hit struct {
	r     *Runner
	probe *host.Probe
	regs  *x86.PtRegs
	saved []byte
	now   uint64
	word  [8]byte
	// at is the address at which the probe is planted, 0 for a probe that is not in code. ret is
	// the return address at a hit of a return probe.
	at, ret x86.Addr
	// frames are the addresses of the stack that was read last.
	frames []uint64
}

var _ host.System = (*hit)(nil)

func (h *hit) set(p *host.Probe, regs *x86.PtRegs, saved []byte, now uint64) {
	h.probe, h.regs, h.saved, h.now = p, regs, saved, now
	if h.r.target == 0 && h.r.o.Command && h.r.tasks.ok {
		h.r.target = h.child()
	}
}

// child returns the process ID of the child of init from which the running task descends, 0 for init and the
// kernel's threads.
func (h *hit) child() int64 {
	m := h.r.o.Machine
	return h.r.tasks.child(m.TaskStruct(m.Task()), h.load)
}

// child returns the process ID of the child of init from which a task descends. It goes up bounded.TaskParents
// parents at most, and returns 0 if it finds none.
func (o *taskOffsets) child(task x86.Addr, load func(at x86.Addr, size int) uint64) int64 {
	for range bounded.TaskParents {
		parent := x86.Addr(load(task.Add(o.parent), 8))
		if parent == 0 || parent == task {
			break
		}
		if pid := int64(int32(load(task.Add(o.tgid), 4))); pid != 1 && load(parent.Add(o.tgid), 4) == 1 {
			return pid
		}
		task = parent
	}
	return 0
}

// inTarget reports whether the first thread of the process of -c runs.
func (h *hit) inTarget() bool {
	if h.r.target == 0 && h.r.tasks.ok {
		h.r.target = h.child()
	}
	return h.r.target != 0 && h.Task(host.TID) == h.r.target
}

// Register implements script.Context.
func (h *hit) Register(n int) uint64 {
	if r := h.register(n); r != nil {
		return *r
	}
	return 0
}

// SetRegister implements script.Context.
func (h *hit) SetRegister(n int, v uint64) bool {
	r := h.register(n)
	if r != nil {
		*r = v
	}
	return r != nil
}

func (h *hit) register(n int) *uint64 {
	r := h.regs
	if r == nil {
		return nil
	}
	switch {
	case 0 <= n && n < len(numbered):
		return &r.Words()[numbered[n]]
	case n == script.Flags:
		return &r.Flags
	}
	return nil
}

// numbered maps the registers' numbers in DWARF to the words of the frame.
var numbered = func() (list [len(x86.DWARF)]int) {
	for i, name := range x86.DWARF {
		off, _ := x86.RegOffset(name)
		list[i] = off / 8
	}
	return list
}()

// Read implements script.Context.
func (h *hit) Read(addr uint64, b []byte, user bool) bool {
	m := h.r.o.Machine
	if m == nil {
		return false
	}
	// An access that crosses from one half to the other is none of either.
	if h.r.booted() && user != (addr < script.UserEnd) && addr >= 4096 && user {
		return false
	}
	if user {
		return m.ReadUser(x86.Addr(addr), b) == nil
	}
	return m.ReadMem(x86.Addr(addr), b) == nil
}

// Write implements script.Context.
func (h *hit) Write(addr uint64, b []byte, user bool) bool {
	m := h.r.o.Machine
	switch {
	case m == nil:
		return false
	case user:
		return m.WriteUser(x86.Addr(addr), b) == nil
	}
	return m.WriteMem(x86.Addr(addr), b) == nil
}

func (r *Runner) booted() bool { return r.o.Image != nil && r.o.Image.Core() != nil }

// Saved implements script.Context.
func (h *hit) Saved(n int) int64 {
	if len(h.saved) < 8*(n+1) {
		return 0
	}
	return int64(binary.LittleEndian.Uint64(h.saved[8*n:]))
}

// SetSaved implements script.Context.
func (h *hit) SetSaved(n int, v int64) {
	if len(h.saved) >= 8*(n+1) {
		binary.LittleEndian.PutUint64(h.saved[8*n:], uint64(v))
	}
}

// Probe implements host.System.
func (h *hit) Probe() *host.Probe { return h.probe }

// taskOffsets holds the offsets in bytes of the members of task_struct and of cred that handlers read, in a
// booted kernel. 0 means that the kernel's types lack the member. ok: all are known.
type taskOffsets struct {
	ok bool
	// named: pid, tgid and comm are known. Without BTF no others are.
	named                         bool
	pid, tgid, comm, parent, cred int64
	stack, mm                     int64
	uid, euid, gid, egid          int64
}

func offsets(img *kimage.Image) (o taskOffsets) {
	if img == nil || img.Core() == nil {
		return o
	}
	in, named := img.TaskLayout()
	o.named, o.pid, o.tgid, o.comm = named, int64(in.PID), int64(in.TGID), int64(in.Comm)
	t, okT := img.Types().Struct("task_struct")
	c, okC := img.Types().Struct("cred")
	if !okT || !okC || !named {
		return o
	}
	at := func(t btf.Type, name string) int64 {
		m, ok := t.Member(name)
		o.ok = o.ok && ok
		return int64(m.Offset / 8)
	}
	o.ok = true
	o.parent, o.cred = at(t, "real_parent"), at(t, "cred")
	o.stack, o.mm = at(t, "stack"), at(t, "mm")
	o.uid, o.euid, o.gid, o.egid = at(c, "uid"), at(c, "euid"), at(c, "gid"), at(c, "egid")
	return o
}

func (h *hit) load(at x86.Addr, n int) uint64 {
	clear(h.word[:])
	if h.r.o.Machine.ReadMem(at, h.word[:n]) != nil {
		return 0
	}
	return binary.LittleEndian.Uint64(h.word[:])
}

// Task implements host.System. In a guest whose task_structs are not known, PID and TID are the machine's number
// of the task, from 1 on; for a booted kernel they are kimage.UnknownPID.
func (h *hit) Task(what host.TaskWord) int64 {
	m, o := h.r.o.Machine, &h.r.tasks
	if m == nil {
		return 0
	}
	if !o.ok && !(o.named && (what == host.PID || what == host.TID)) {
		switch {
		case what != host.PID && what != host.TID:
			return 0
		case h.r.booted():
			return kimage.UnknownPID
		}
		return int64(m.Task()) + 1
	}
	task := m.TaskStruct(m.Task())
	switch what {
	case host.TaskStruct:
		return int64(task)
	case host.PID:
		return int64(int32(h.load(task.Add(o.tgid), 4)))
	case host.TID:
		return int64(int32(h.load(task.Add(o.pid), 4)))
	case host.PPID:
		parent := x86.Addr(h.load(task.Add(o.parent), 8))
		return int64(int32(h.load(parent.Add(o.tgid), 4)))
	}
	cred := x86.Addr(h.load(task.Add(o.cred), 8))
	at := [...]int64{host.UID: o.uid, host.EUID: o.euid, host.GID: o.gid, host.EGID: o.egid}
	return int64(h.load(cred.Add(at[what]), 4))
}

// Comm implements host.System.
func (h *hit) Comm(dst []byte) []byte {
	m, o := h.r.o.Machine, &h.r.tasks
	switch {
	case m == nil:
		return append(dst, h.r.script.Words.Task()...)
	case h.r.booted() && !o.named:
		return append(dst, kimage.UnknownComm...)
	case !o.named:
		if n := m.Task(); n > 0 {
			return append(append(dst, "task-"...), byte('0'+n/10%10), byte('0'+n%10))
		}
		return append(dst, "init"...)
	}
	from := len(dst)
	dst = dst[:from+x86.TaskCommLen]
	if m.ReadMem(m.TaskStruct(m.Task()).Add(o.comm), dst[from:]) != nil {
		return dst[:from]
	}
	if i := bytes.IndexByte(dst[from:], 0); i >= 0 {
		dst = dst[:from+i]
	}
	return dst
}

// CPU implements host.System.
func (h *hit) CPU() int {
	if h.r.o.Machine == nil {
		return 0
	}
	return h.r.o.Machine.CPU()
}

// Now implements host.System.
func (h *hit) Now() uint64 { return h.now }

// Wall implements host.System.
func (h *hit) Wall() uint64 { return epoch + h.now }

// Symbol implements host.System.
func (h *hit) Symbol(addr uint64) (name, module string, offset, size uint64, ok bool) {
	if h.r.o.Kprobes == nil {
		return
	}
	s, ok := h.r.o.Kprobes.View().SymbolAt(x86.Addr(addr))
	return s.Name, s.Module, addr - uint64(s.Addr), s.Size, ok
}

// Stack implements host.System. It walks by the kernel's ORC tables. For an image without tables it
// takes the words on the stack that follow a call instruction. DWARF, by which stap walks first, does
// not describe code in assembler: from there on stap lets the kernel walk.
func (h *hit) Stack() (frames []uint64, exact int) {
	if h.regs == nil {
		return nil, 0
	}
	from := orc.At(h.regs)
	first := h.Address()
	switch {
	case h.probe == nil:
	case h.probe.Kind == host.Call:
		from.IP = first
	case h.probe.Kind == host.Return:
		first = uint64(h.ret)
		from.IP = first
	case h.probe.Kind == host.Trace:
		from.Signal, from.Regs = false, nil // who calls the callback
	}
	h.frames = append(h.frames[:0], first)
	h.unwind(from, true)
	if h.r.unwinder == nil {
		if len(h.frames) == 1 {
			h.scan(h.regs.SP)
		}
		return h.frames, len(h.frames)
	}
	trampoline := uint64(h.r.o.Kprobes.Trampoline())
	last := slices.IndexFunc(h.frames, func(addr uint64) bool { return addr == trampoline || h.r.assembler(addr) })
	if last < 0 {
		last = len(h.frames) - 1
	}
	if h.frames[last] == trampoline {
		h.frames = h.frames[:last+1]
		for _, name := range []string{"arch_rethook_trampoline", "__kretprobe_trampoline", "kretprobe_trampoline"} {
			for _, s := range h.r.o.Image.Lookup(name) {
				h.frames[last] = uint64(s.Addr) // the kernel's own
			}
		}
	}
	return slices.Insert(h.frames, last, h.frames[last]), last + 1
}

// unwind adds the return addresses above a frame, by the kernel's tables; it adds none without tables. For a
// function whose return is probed it adds the original return address, or with raw the trampoline.
func (h *hit) unwind(from orc.Frame, raw bool) {
	if h.r.unwinder == nil {
		return
	}
	k, cursor := h.r.o.Kprobes, kprobes.Cursor{}
	trampoline := uint64(k.Trampoline())
	original := func(addr, at uint64) uint64 {
		if raw && addr == trampoline {
			return addr
		}
		if addr == trampoline && addr != 0 && k.Config().Kret.UnwinderKnows {
			return uint64(k.FindReturnAddress(h.r.o.Machine.Task(), x86.Addr(at), &cursor))
		}
		return k.Kernels(addr)
	}
	h.r.unwinder.Walk(from, original, func(addr, _ uint64) bool {
		if raw && addr == trampoline {
			h.frames = append(h.frames, addr)
			return false
		}
		if _, _, _, _, ok := h.Symbol(addr); !ok {
			return false
		}
		h.frames = append(h.frames, addr)
		return len(h.frames) < bounded.StackFrames
	})
}

// scan adds the words on the stack that look like return addresses.
func (h *hit) scan(sp uint64) {
	trampoline := uint64(h.r.o.Kprobes.Trampoline())
	for at, top := sp, sp&^(x86.ThreadSize-1)+x86.ThreadSize; at < top && len(h.frames) < bounded.StackFrames; at += 8 {
		if h.r.o.Machine.ReadMem(x86.Addr(at), h.word[:]) != nil {
			return
		}
		w := binary.LittleEndian.Uint64(h.word[:])
		if w == trampoline && w != 0 || h.afterCall(w) {
			h.frames = append(h.frames, h.r.o.Kprobes.Kernels(w))
		}
	}
}

// afterCall reports whether a call instruction ends at an address of the kernel.
func (h *hit) afterCall(w uint64) bool {
	if _, _, _, _, ok := h.Symbol(w); !ok {
		return false
	}
	var b [8]byte
	copy(b[:], h.word[:])
	defer copy(h.word[:], b[:])
	if h.r.o.Machine.ReadMem(x86.Addr(w-7), h.word[:7]) != nil {
		return false
	}
	if h.word[2] == 0xe8 {
		return true
	}
	// call through a register or memory: ff /2, with 0, 1 or 4 bytes of displacement.
	for _, at := range [...]int{5, 4, 3, 1, 0} {
		if h.word[at] == 0xff && h.word[at+1]>>3&7 == 2 {
			return true
		}
	}
	return false
}

// Exit implements host.System.
func (h *hit) Exit(code int64) { h.r.exited, h.r.code = true, code }

// Log implements host.System.
func (h *hit) Log(line string) { h.r.o.Log(line) }

// Target implements host.System.
func (h *hit) Target() int64 { return h.r.target }

// HZ implements host.System.
func (h *hit) HZ() int64 { return h.r.o.HZ }

// Address implements host.System.
func (h *hit) Address() uint64 {
	switch {
	case h.probe != nil && h.probe.Kind == host.User:
		return uint64(h.at)
	case h.probe != nil && h.probe.Addr != 0:
		return h.probe.Addr
	}
	if h.regs != nil {
		return h.regs.IP
	}
	return 0
}

// User implements host.System.
func (h *hit) User() bool { return h.regs != nil && h.regs.CS&3 != 0 }
