package own

import (
	"encoding/binary"
	"fmt"

	"kprobelab/errno"
	"kprobelab/x86"
)

// Uprobe is the answer of an image's own arch_uprobe_analyze_insn for an instruction.
type Uprobe struct {
	// Errno is 0 if it is accepted; only then the rest is set.
	Errno errno.Errno
	// Copy is the code that the kernel executes out of line, Ops the name of the
	// operations that it chose.
	Copy [16]byte
	Ops  string
	// Params are the operations' parameters, as struct arch_uprobe has them.
	Params [8]byte
	// Optimizable: the kernel's flag for an optimizable instruction is set.
	Optimizable bool
}

// Offsets in struct arch_uprobe, and the most bytes that it and a struct mm_struct take.
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
	const name = analyzeUprobe
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
