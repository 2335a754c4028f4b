package selfcheck

import (
	"encoding/binary"
	"fmt"

	"kprobelab/internal/own"
	"kprobelab/uprobes"
	"kprobelab/x86"
)

// ruled is an analysis as the image's own code would leave it.
func ruled(a *uprobes.Analysis) *own.Uprobe {
	u := &own.Uprobe{Errno: a.Errno}
	if a.Errno != 0 {
		return u
	}
	u.Copy, u.Optimizable = a.Copy, a.Optimizable
	p := u.Params[:]
	switch a.Way {
	case uprobes.Branch:
		u.Ops = "branch_xol_ops"
		binary.LittleEndian.PutUint32(p, uint32(a.Target))
		p[4], p[5] = byte(a.Length), a.Opcode
	case uprobes.Push:
		// Offsets in struct pt_regs.
		u.Ops = "push_xol_ops"
		p[0] = [...]byte{80, 88, 96, 40, 152, 32, 104, 112, 72, 64, 56, 48, 24, 16, 8, 0}[a.Register]
		p[1] = byte(a.Length)
	default:
		u.Ops, p[0], p[1] = "default_xol_ops", byte(a.Fixups), byte(a.Length)
	}
	return u
}

// inWords says all that is compared.
func inWords(u *own.Uprobe) string {
	return fmt.Sprintf("errno %d, %s %x, copy %x, optimizable %v", int(u.Errno), u.Ops, u.Params, u.Copy, u.Optimizable)
}

// Uprobe asks an image's own arch_uprobe_analyze_insn about an instruction at an address, and says how it differs
// from the rules, "" for not at all.
func Uprobe(k *own.Kernel, code []byte, at x86.Addr) (string, error) {
	u, err := k.AnalyzeUprobe(code, at)
	if err != nil {
		return "", err
	}
	a := uprobes.Analyze(code, at, k.Image().Profile())
	if w, g := inWords(&u), inWords(ruled(&a)); w != g {
		return fmt.Sprintf("%x at %#x: %s, not %s", code, uint64(at), w, g), nil
	}
	return "", nil
}
