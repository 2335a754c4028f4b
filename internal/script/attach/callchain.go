package attach

import (
	"encoding/binary"
	"slices"
	"unsafe"

	"kprobelab/internal/orc"
	"kprobelab/internal/script"
	"kprobelab/internal/script/host"
	"kprobelab/kimage"
	"kprobelab/x86"
)

// Callchain implements host.System (get_perf_callchain).
func (h *hit) Callchain(user bool, most int) []uint64 {
	h.frames = h.frames[:0]
	switch {
	case h.regs == nil:
	case user:
		h.programs(most)
	default:
		h.kernels()
	}
	return h.frames[:min(most, len(h.frames))]
}

// callSize is the size of ftrace's call at a function's entry.
const callSize = 5

// jumps returns the functions at whose entry the kernel jumps to BPF's code and does not call it, so that
// stacks have no frame of the function itself. Newer kernels do this for functions with a program at their
// return (CONFIG_DYNAMIC_FTRACE_WITH_JMP).
func (r *Runner) jumps() map[x86.Addr]bool {
	const jump = 0xe9
	if !r.booted() || !r.o.Image.Moves("ftrace_make_call", jump) {
		return nil
	}
	list := map[x86.Addr]bool{}
	for _, p := range r.script.Probes {
		if p.Kind == host.Return && p.Chain == host.BySite {
			list[x86.Addr(p.Addr)] = true
		}
	}
	return list
}

// kernels adds the kernel's part of the stack to frames (perf_callchain_kernel). On a real kernel
// BPF's own code stands above a function's entry and a tracepoint without records; here it does not run.
func (h *hit) kernels() {
	from := orc.At(h.regs)
	if h.probe != nil && h.probe.Chain == host.BySite && h.ret != 0 {
		from.IP = uint64(h.ret)
	}
	from.IP = h.r.o.Kprobes.Kernels(from.IP)
	first := from.IP
	if h.User() {
		return
	}
	if h.probe != nil {
		switch h.probe.Chain {
		case host.ByProgram:
			return
		case host.BySite:
			if first = uint64(h.at.Add(callSize)); h.r.jumped[x86.Addr(h.probe.Addr)] {
				first = 0
			}
		case host.ByCaller:
			from.Signal, from.Regs = false, nil
		}
	}
	if h.probe != nil && h.probe.Above != 0 {
		h.frames = append(h.frames, h.probe.Above)
	}
	if first != 0 {
		h.frames = append(h.frames, first)
	}
	if h.probe != nil && h.probe.Chain == host.BySite && h.probe.Kind == host.Return {
		h.frames = append(h.frames, from.IP)
	}
	if h.r.unwinder == nil {
		h.scan(h.regs.SP)
		return
	}
	h.unwind(from, false)
}

// programRegs returns the registers of the program that entered the kernel (task_pt_regs). They are at
// the top of the task's stack, below the space that kernels with FRED leave free.
func (h *hit) programRegs() (regs x86.PtRegs, ok bool) {
	if h.User() {
		return *h.regs, true
	}
	o := &h.r.tasks
	if !o.ok {
		return regs, false
	}
	task := h.r.o.Machine.TaskStruct(h.r.o.Machine.Task())
	if h.load(task.Add(o.mm), 8) == 0 {
		return regs, false // a thread of the kernel's, or one that ends
	}
	top := x86.Addr(h.load(task.Add(o.stack), 8)).Add(x86.ThreadSize)
	for _, padding := range []x86.Addr{0, 16} {
		b := (*[x86.PtRegsSize]byte)(unsafe.Pointer(&regs))
		if h.r.o.Machine.ReadMem(top-padding-x86.PtRegsSize, b[:]) == nil && regs.CS&3 == 3 && regs.SS&3 == 3 {
			return regs, true
		}
	}
	return regs, false
}

// cs32 is the selector of 32-bit programs' code (__USER32_CS).
const cs32 = 0x23

// programs adds the program's part of the stack to frames, by the frame pointers (perf_callchain_user).
func (h *hit) programs(most int) {
	regs, ok := h.programRegs()
	if !ok {
		return
	}
	h.frames = append(h.frames, regs.IP)
	defer h.pending(len(h.frames))
	size := 8
	if regs.CS == cs32 {
		size = 4
	}
	var frame [16]byte
	word := func(at int) uint64 {
		if size == 4 {
			return uint64(binary.LittleEndian.Uint32(frame[at:]))
		}
		return binary.LittleEndian.Uint64(frame[at:])
	}
	if h.entered() && h.r.o.Machine.ReadUser(x86.Addr(regs.SP), frame[:size]) == nil {
		h.frames = append(h.frames, word(0))
	}
	for fp := regs.BP; len(h.frames) < most && fp < script.UserEnd-16; fp = word(0) {
		if h.r.o.Machine.ReadUser(x86.Addr(fp), frame[:2*size]) != nil {
			return
		}
		h.frames = append(h.frames, word(size))
	}
}

// assembler returns a function that reports addresses in the kernel's assembler code that calls functions in C: the
// code of its entries, and the code at which a new task begins.
func assembler(img *kimage.Image) func(addr uint64) bool {
	var ranges [][2]uint64
	if img != nil {
		start, end := img.Lookup("__entry_text_start"), img.Lookup("__entry_text_end")
		if len(start) > 0 && len(end) > 0 {
			ranges = append(ranges, [2]uint64{uint64(start[0].Addr), uint64(end[0].Addr)})
		}
		for _, name := range []string{"ret_from_fork", "ret_from_fork_asm"} {
			for _, s := range img.Lookup(name) {
				ranges = append(ranges, [2]uint64{uint64(s.Addr), uint64(s.Addr) + s.Size})
			}
		}
	}
	return func(addr uint64) bool {
		return slices.ContainsFunc(ranges, func(r [2]uint64) bool { return r[0] <= addr && addr < r[1] })
	}
}
