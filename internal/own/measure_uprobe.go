package own

import (
	"kprobelab/errno"
	"kprobelab/x86"
)

// analyzeUprobe decides about an instruction under a uprobe.
const analyzeUprobe = "arch_uprobe_analyze_insn"

// emulated are the operations of an instruction that is not executed out of line.
const emulated = "branch_xol_ops"

// uprobes analyses a few instructions of a program.
func (m *measuring) uprobes() error {
	const at x86.Addr = 0x400000
	asked := func(code ...byte) (Uprobe, error) { return m.AnalyzeUprobe(code, at) }
	push, err := asked(0x55)
	if err != nil {
		return err
	}
	m.say("Uprobes.EmulatesPush", push.Ops == "push_xol_ops", "%s of push %%rbp", analyzeUprobe)
	masks, err := asked(0x8e, 0xd0)
	if err != nil {
		return err
	}
	m.say("Uprobes.RefusesMasking", masks.Errno == errno.ENOTSUPP, "%s of mov %%eax,%%ss", analyzeUprobe)
	// mov %rax,%rax does nothing, and is no nop of the kernel's.
	moved, err := asked(0x48, 0x89, 0xc0)
	if err != nil {
		return err
	}
	m.say("Uprobes.DecodesNops", moved.Ops == emulated, "%s of mov %%rax,%%rax", analyzeUprobe)
	three, err := asked(0x0f, 0x1f, 0x00)
	if err != nil {
		return err
	}
	m.say("Uprobes.KnowsNops", three.Ops == emulated && moved.Ops != emulated, "%s of a nop of 3 bytes", analyzeUprobe)
	five, err := asked(0x0f, 0x1f, 0x44, 0, 0)
	if err != nil {
		return err
	}
	m.say("Uprobes.OptimizesNop5", five.Optimizable, "%s of a nop of 5 bytes", analyzeUprobe)
	ten, err := asked(0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0)
	if err == nil {
		m.say("Uprobes.OptimizesNop10", ten.Optimizable, "%s of a nop of 10 bytes", analyzeUprobe)
	}
	return err
}
