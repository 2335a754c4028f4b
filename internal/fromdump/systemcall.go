package fromdump

import (
	"fmt"
	"unsafe"

	"kprobelab/errno"
	"kprobelab/machine"
	"kprobelab/x86"
)

// SystemCall is user code that makes a system call rbx times, and another one by which
// the host sees that they have returned.
var SystemCall = []byte{
	0x4c, 0x89, 0xe0, // mov %r12,%rax
	0x0f, 0x05, // syscall
	0x48, 0xff, 0xcb, // dec %rbx
	0x75, 0xf6, // jne to the first one
	0x0f, 0x05, // syscall
	0xeb, 0xfe, // jmp .
}

// OwnSyscall is the offset of the host's syscall instruction.
const OwnSyscall = 10

// Caller are the registers at the begin of SystemCall's code, which is at an address: n calls of
// a number with at most six arguments, on a stack of the program's.
func Caller(at x86.Addr, sp, n, nr uint64, args []uint64) x86.PtRegs {
	var six [6]uint64
	copy(six[:], args)
	return x86.PtRegs{
		BX: n, R12: nr, DI: six[0], SI: six[1], DX: six[2], R10: six[3], R8: six[4], R9: six[5],
		SP: sp, Flags: x86.FlagIF | 2, IP: uint64(at), CS: x86.UserCS, SS: x86.UserDS,
	}
}

// StackTop is the end of the kernel stack of a task.
func StackTop(sp x86.Addr) x86.Addr { return (sp | (machine.ThreadSize - 1)) + 1 }

// UserRegs returns the registers of the task's user mode: they are at the top of its stack, below
// the gap that kernels with FRED leave there.
func (g Guest) UserRegs(sp x86.Addr) (*x86.PtRegs, error) {
	for _, padding := range []x86.Addr{0, 16} {
		var b [x86.PtRegsSize]byte
		if g.Host.Machine().ReadMem(StackTop(sp)-padding-x86.PtRegsSize, b[:]) != nil {
			continue
		}
		if r := (*x86.PtRegs)(unsafe.Pointer(&b[0])); r.CS == x86.UserCS && r.SS == x86.UserDS {
			regs := *r
			return &regs, nil
		}
	}
	return nil, fmt.Errorf("the dump's task is not in a system call of a 64-bit program; --as TASK calls as another one: %w", errno.EINVAL)
}

// hasCode are the vectors whose exceptions push an error code (SDM Vol. 3A, table
// 6-1).
var hasCode = map[int]bool{8: true, 10: true, 11: true, 12: true, 13: true, 14: true, 17: true, 21: true}

// Bits of a page fault's error code (SDM Vol. 3A, "Page-Fault Exception").
const (
	faultPresent = 1
	faultWrite   = 2
	faultUser    = 4
	FaultFetch   = 16
)

// In place of an exception's error code: it has none, or is an int n.
const (
	NoCode   = -1
	Software = -2
)

// ErrorCode is the error code of an exception by its vector. Of a page fault: the access, whether the page is
// there but not for it, and whether user mode made it.
func ErrorCode(vector int, access machine.Access, present, user bool) int64 {
	switch {
	case vector >= 32:
		return Software
	case vector == machine.VectorPage:
		code := int64(0)
		for bit, is := range map[int64]bool{
			faultPresent: present, faultWrite: access == machine.AccessWrite,
			FaultFetch: access == machine.AccessFetch, faultUser: user,
		} {
			if is {
				code |= bit
			}
		}
		return code
	case hasCode[vector]:
		return 0
	}
	return NoCode
}
