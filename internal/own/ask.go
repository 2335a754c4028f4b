package own

import (
	"fmt"

	"kprobelab/x86"
)

// CanProbe asks can_probe: does decoding from the start of the function come to
// the address, and may its instruction be probed?
func (k *Kernel) CanProbe(addr x86.Addr) (bool, error) {
	return k.truth("can_probe", uint64(addr))
}

// CanOptimize asks can_optimize: may a jump replace the instructions at the
// address? Whether they can be copied is not its question.
func (k *Kernel) CanOptimize(addr x86.Addr) (bool, error) {
	return k.truth("can_optimize", uint64(addr))
}

// FindBug asks find_bug: is the address in the table of BUG and WARN?
func (k *Kernel) FindBug(addr x86.Addr) (bool, error) {
	v, err := k.Call("find_bug", uint64(addr))
	return v != 0, err
}

// JumpLabelReserved asks jump_label_text_reserved: does a jump label lie in the
// bytes from start to end, both included? It reads the whole table.
func (k *Kernel) JumpLabelReserved(start, end x86.Addr) (bool, error) {
	return k.whileBooting(func() (bool, error) {
		return k.truth("jump_label_text_reserved", uint64(start), uint64(end))
	})
}

// StaticCallReserved is JumpLabelReserved for static call sites.
func (k *Kernel) StaticCallReserved(start, end x86.Addr) (bool, error) {
	return k.whileBooting(func() (bool, error) {
		return k.truth("static_call_text_reserved", uint64(start), uint64(end))
	})
}

// KernelText asks kernel_text_address.
func (k *Kernel) KernelText(addr x86.Addr) (bool, error) {
	return k.truth("kernel_text_address", uint64(addr))
}

// AdjustAddr calls arch_adjust_kprobe_addr: it returns the address of a probe at an
// offset of a function, and whether that is the function's entry. The address is 0 if
// the kernel refuses it.
func (k *Kernel) AdjustAddr(addr x86.Addr, offset uint64) (at x86.Addr, entry bool, err error) {
	if _, err := k.code.Write(make([]byte, 1)); err != nil {
		return 0, false, err
	}
	v, err := k.Call("arch_adjust_kprobe_addr", uint64(addr), offset, uint64(k.code.Addr))
	if err != nil {
		return 0, false, err
	}
	if d := uint64(addr) + offset - v; v != 0 && d+8 > 16 {
		return 0, false, fmt.Errorf("arch_adjust_kprobe_addr returned %#x for %s+%#x: %w", v, addr, offset, ErrNonsense)
	}
	return x86.Addr(v), k.code.Bytes()[0] != 0, nil
}
