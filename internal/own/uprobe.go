package own

import (
	"encoding/binary"
	"fmt"

	"kprobelab/errno"
	"kprobelab/uprobes"
	"kprobelab/x86"
)

// Uprobe is what an image's own arch_uprobe_analyze_insn makes of an instruction.
type Uprobe struct {
	// Errno is 0 where it is accepted; the rest is then set.
	Errno errno.Errno
	// Copy is what the kernel executes out of line, Ops the name of the operations that
	// it chose.
	Copy [16]byte
	Ops  string
	// Params are what these need, as struct arch_uprobe has it.
	Params [8]byte
	// Optimizable is the flag of that.
	Optimizable bool
}

// Where things are in struct arch_uprobe, and how long that and a struct mm_struct are at most.
const (
	uprobeOps    = 16
	uprobeParams = 24
	uprobeFlags  = 32
	uprobeSize   = 128
	mmSize       = 1 << 13
	// canOptimize is the flag's bit (ARCH_UPROBE_FLAG_CAN_OPTIMIZE).
	canOptimize = 1
)

// AnalyzeUprobe asks arch_uprobe_analyze_insn about an instruction of a 64-bit program, up to
// 16 bytes, at an address.
func (k *Kernel) AnalyzeUprobe(code []byte, at x86.Addr) (Uprobe, error) {
	const name = "arch_uprobe_analyze_insn"
	if k.uprobe == nil {
		var err error
		if k.uprobe, err = k.m.NewBuf(uprobeSize); err != nil {
			return Uprobe{}, err
		}
		if k.mm, err = k.m.NewBuf(mmSize); err != nil { // zeros: a 64-bit program's
			return Uprobe{}, err
		}
	}
	var u Uprobe
	b := make([]byte, uprobeSize)
	copy(b[:len(u.Copy)], code)
	if _, err := k.uprobe.Write(b); err != nil {
		return u, err
	}
	v, err := k.Call(name, uint64(k.uprobe.Addr), uint64(k.mm.Addr), uint64(at))
	if err != nil {
		return u, err
	}
	if v != 0 {
		if e := -int32(v); e > 0 && e < 4096 {
			u.Errno = errno.Errno(e)
			return u, nil
		}
		return u, fmt.Errorf("%s returned %#x: %w", name, v, ErrNonsense)
	}
	b = k.uprobe.Bytes()
	copy(u.Copy[:], b)
	copy(u.Params[:], b[uprobeParams:])
	ops, ok := k.img.SymbolAt(x86.Addr(binary.LittleEndian.Uint64(b[uprobeOps:])))
	if !ok {
		return u, fmt.Errorf("%s chose operations that have no name: %w", name, ErrNonsense)
	}
	u.Ops, u.Optimizable = ops.Name, b[uprobeFlags]&canOptimize != 0
	return u, nil
}

// ruled is an analysis as the image's own code would leave it.
func ruled(a *uprobes.Analysis) *Uprobe {
	u := &Uprobe{Errno: a.Errno}
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

// words say all that is compared.
func (u *Uprobe) words() string {
	return fmt.Sprintf("errno %d, %s %x, copy %x, optimizable %v", int(u.Errno), u.Ops, u.Params, u.Copy, u.Optimizable)
}

// CompareUprobe asks AnalyzeUprobe, and says how it differs from the rules of package uprobes, "" for not at all.
func (k *Kernel) CompareUprobe(code []byte, at x86.Addr) (string, error) {
	own, err := k.AnalyzeUprobe(code, at)
	if err != nil {
		return "", err
	}
	a := uprobes.Analyze(code, at, k.img.Profile())
	if w, g := own.words(), ruled(&a).words(); w != g {
		return fmt.Sprintf("%x at %#x: %s, not %s", code, uint64(at), w, g), nil
	}
	return "", nil
}
