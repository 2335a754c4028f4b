package attach

import (
	"errors"

	"kprobelab/internal/script/host"
	"kprobelab/kimage"
	"kprobelab/x86"
)

// uprobe plants a probe in a program.
func (r *Runner) uprobe(p *planted) error {
	if r.o.Uprobe == nil {
		return errors.New("probes of programs need the dump of a booted kernel")
	}
	in := p.Probe.InProgram
	var err error
	p.How = "uprobe"
	p.remove, err = r.o.Uprobe(in, func(at uint64, regs *x86.PtRegs) {
		r.late()
		if !r.running || r.exited || in.Target && !r.hit.ofTarget() {
			return
		}
		if p.user = x86.Addr(at); in.Program.Movable {
			in.Program.Base = at - in.Addr
		}
		r.fire(p, p.Probe.Handler, regs, nil)
	})
	return err
}

// ofTarget reports whether the process of -c runs.
func (h *hit) ofTarget() bool {
	if h.r.target == 0 && h.r.tasks.ok {
		h.r.target = h.child()
	}
	return h.r.target != 0 && h.Task(host.PID) == h.r.target
}

// UserSymbol implements host.System. It knows the symbols of the program of -c while its process runs, and of
// the probed files. A probed file's addresses that a probe has seen are known even after the process has ended.
func (h *hit) UserSymbol(pid int64, probed bool, addr uint64) (name, file string, offset uint64, ok bool) {
	alive := h.regs != nil && pid != 0 && h.Task(host.PID) == pid
	if p := h.r.o.Program; p != nil && alive && pid == h.r.target {
		if p.Movable {
			p.Base = h.loaded() - p.Code
		}
		if name, offset, ok = p.Symbol(addr); ok {
			return name, p.File, offset, true
		}
	}
	for _, p := range h.r.script.Probes {
		if in := p.InProgram; in != nil && (alive || probed) {
			if name, offset, ok = in.Program.Symbol(addr); ok {
				return name, in.Program.File, offset, true
			}
		}
	}
	return "", "", 0, false
}

// userOffsets holds the offsets in bytes that a booted kernel's stacks of programs need, and the rules by which
// it makes these stacks. An offset is 0 if the kernel's types lack the member.
type userOffsets struct {
	startCode                      int64 // of an mm_struct
	utask, returns, original, next int64 // of a task, and of its pending returns
	area, areaAt                   int64 // of an mm_struct, and of its uprobes' page
	// callers: the stack at a uprobe on push %rbp has the function's caller. endbr: so has the stack at a uprobe
	// on endbr64. pending: the stack has the original return addresses in the place of the trampoline's. 6.11
	// does all this; older releases do it if the change was ported to them.
	callers, endbr, pending bool
}

func userOffsetsOf(img *kimage.Image) (o userOffsets) {
	if img == nil || img.Core() == nil {
		return o
	}
	known := true
	at := func(structure string, members ...string) (offset int64) {
		t, ok := img.Types().Struct(structure)
		for _, name := range members {
			m, found := t.Member(name)
			known = known && ok && found
			offset, t = offset+int64(m.Offset/8), m.Type
		}
		return offset
	}
	o.startCode = at("mm_struct", "start_code")
	o.utask, o.returns, o.original = at("task_struct", "utask"), at("uprobe_task", "return_instances"), at("return_instance", "orig_ret_vaddr")
	o.next = at("return_instance", "next")
	o.area, o.areaAt = at("mm_struct", "uprobes_state", "xol_area"), at("xol_area", "vaddr")
	there := func(symbol string) bool { return len(img.Lookup(symbol)) > 0 }
	o.callers = img.Compares("is_uprobe_at_func_entry", pushBP) || img.Compares("perf_callchain_user", pushBP)
	o.endbr = o.callers && there("ibt_selftest")
	o.pending = known && there("uprobe_get_trampoline_vaddr")
	return o
}

// pushBP is push %rbp.
const pushBP = 0x55

// loaded returns the address at which the code of the running process's program begins (mm->start_code).
func (h *hit) loaded() uint64 {
	m := h.r.o.Machine
	mm := x86.Addr(h.load(m.TaskStruct(m.Task()).Add(h.r.tasks.mm), 8))
	return h.load(mm.Add(h.r.users.startCode), 8)
}

// entered reports a uprobe on push %rbp or endbr64. The kernel takes this for a function's first instruction, with
// the return address on the top of the stack.
func (h *hit) entered() bool {
	if !h.r.users.callers || h.probe == nil || h.probe.Kind != host.User || h.probe.InProgram.Return {
		return false
	}
	in := h.probe.InProgram
	return in.Bytes[0] == pushBP || h.r.users.endbr && in.Bytes == [4]byte{0xf3, 0x0f, 0x1e, 0xfa}
}

// pending replaces the trampoline's address in the stack by the original return addresses, as newer kernels do.
func (h *hit) pending(from int) {
	o, m := &h.r.users, h.r.o.Machine
	if !o.pending {
		return
	}
	task := m.TaskStruct(m.Task())
	utask := x86.Addr(h.load(task.Add(o.utask), 8))
	area := x86.Addr(h.load(x86.Addr(h.load(task.Add(h.r.tasks.mm), 8)).Add(o.area), 8))
	if utask == 0 || area == 0 {
		return
	}
	trampoline := h.load(area.Add(o.areaAt), 8)
	ri := x86.Addr(h.load(utask.Add(o.returns), 8))
	for i := from - 1; i < len(h.frames) && ri != 0; i++ {
		if h.frames[i] == trampoline {
			h.frames[i] = h.load(ri.Add(o.original), 8)
			ri = x86.Addr(h.load(ri.Add(o.next), 8))
		}
	}
}
