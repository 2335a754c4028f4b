package vmcore

import (
	"bytes"
	"encoding/binary"

	"kprobelab/x86"
)

// CPU is the state of a processor.
type CPU struct {
	// Regs are the registers. OrigAX has no meaning in QEMU's dumps.
	Regs x86.PtRegs
	// FSBase and GSBase are the bases in effect: in kernel mode GSBase is the CPU's
	// per-CPU area, in user mode the program's.
	FSBase, GSBase uint64
	// DS, ES, FS and GS are selectors.
	DS, ES, FS, GS uint16
	// PID is the task's process id if a kernel wrote the dump, and a number of QEMU's
	// own if QEMU did.
	PID int32
	// Control is nil in a dump that QEMU or Write did not make: a crashed kernel's
	// dump has the general registers alone.
	Control *Control
}

// Control is the state of a processor that only a dump from outside the machine has.
type Control struct {
	// KernelGSBase is the GS base that swapgs exchanges with GSBase.
	KernelGSBase       uint64
	CR0, CR2, CR3, CR4 uint64
	// CS to SS are the hidden parts of the segment registers, as loaded.
	CS, DS, ES, FS, GS, SS Segment
	LDT, TR, GDT, IDT      Segment
}

// Segment is a segment register, or a table's base and limit.
type Segment struct {
	Selector, Limit uint32
	// Flags are the upper four bytes of the descriptor, as QEMU keeps them; 0 for
	// GDT and IDT.
	Flags uint32
	Base  uint64
}

// CR4LA57 is the bit of CR4 that says that page tables have 5 levels.
const CR4LA57 = 1 << 12

// Levels returns the number of levels of the page tables, 4 or 5.
func (c *Control) Levels() int {
	if c.CR4&CR4LA57 != 0 {
		return 5
	}
	return 4
}

// User reports whether the processor runs in user mode.
func (c *CPU) User() bool { return c.Regs.CS&3 == 3 }

// prstatus is the kernel's struct elf_prstatus with its struct user_regs_struct
// (include/linux/elfcore.h, arch/x86/include/asm/user_64.h).
type prstatus struct {
	Signo, Code, Errno         int32
	CurSig                     int16
	_                          [2]byte
	SigPend, SigHold           uint64
	PID, PPID, PGRP, SID       int32
	UTime, STime, CUTime, CSTm [2]int64
	Regs                       x86.PtRegs
	FSBase, GSBase             uint64
	DS, ES, FS, GS             uint64
	FPValid                    int32
	_                          [4]byte
}

// qemuState is QEMU's struct QEMUCPUState (target/i386/arch_dump.c).
type qemuState struct {
	Version, Size                             uint32
	AX, BX, CX, DX, SI, DI, SP, BP            uint64
	R8, R9, R10, R11, R12, R13, R14, R15      uint64
	IP, Flags                                 uint64
	CS, DS, ES, FS, GS, SS, LDT, TR, GDT, IDT qemuSegment
	CR                                        [5]uint64
	KernelGSBase                              uint64
}

type qemuSegment struct {
	Selector, Limit, Flags, _ uint32
	Base                      uint64
}

// qemuVersion is the only version that there has been.
const qemuVersion = 1

func parsePrstatus(b []byte) (CPU, error) {
	var p prstatus
	if want := binary.Size(&p); len(b) != want {
		return CPU{}, bad("its CPU state (NT_PRSTATUS) has %d bytes, x86-64 has %d", len(b), want)
	}
	if _, err := binary.Decode(b, le, &p); err != nil {
		return CPU{}, err
	}
	return CPU{
		Regs: p.Regs, FSBase: p.FSBase, GSBase: p.GSBase, PID: p.PID,
		DS: uint16(p.DS), ES: uint16(p.ES), FS: uint16(p.FS), GS: uint16(p.GS),
	}, nil
}

func (c *CPU) prstatus() []byte {
	p := prstatus{
		PID: c.PID, Regs: c.Regs, FSBase: c.FSBase, GSBase: c.GSBase,
		DS: uint64(c.DS), ES: uint64(c.ES), FS: uint64(c.FS), GS: uint64(c.GS),
	}
	return encode(&p)
}

func parseQEMU(b []byte) (*Control, error) {
	var q qemuState
	if len(b) < binary.Size(&q) {
		return nil, bad("its CPU state (QEMU's note) has %d bytes, %d are wanted", len(b), binary.Size(&q))
	}
	if _, err := binary.Decode(b, le, &q); err != nil {
		return nil, err
	}
	if q.Version != qemuVersion {
		return nil, bad("its CPU state (QEMU's note) has version %d, %d is known", q.Version, qemuVersion)
	}
	return &Control{
		KernelGSBase: q.KernelGSBase, CR0: q.CR[0], CR2: q.CR[2], CR3: q.CR[3], CR4: q.CR[4],
		CS: q.CS.segment(), DS: q.DS.segment(), ES: q.ES.segment(), FS: q.FS.segment(), GS: q.GS.segment(), SS: q.SS.segment(),
		LDT: q.LDT.segment(), TR: q.TR.segment(), GDT: q.GDT.segment(), IDT: q.IDT.segment(),
	}, nil
}

func (c *CPU) qemu() []byte {
	r, k := &c.Regs, c.Control
	q := qemuState{
		Version: qemuVersion,
		AX:      r.AX, BX: r.BX, CX: r.CX, DX: r.DX, SI: r.SI, DI: r.DI, SP: r.SP, BP: r.BP,
		R8: r.R8, R9: r.R9, R10: r.R10, R11: r.R11, R12: r.R12, R13: r.R13, R14: r.R14, R15: r.R15,
		IP: r.IP, Flags: r.Flags,
		CS: k.CS.qemu(), DS: k.DS.qemu(), ES: k.ES.qemu(), FS: k.FS.qemu(), GS: k.GS.qemu(), SS: k.SS.qemu(),
		LDT: k.LDT.qemu(), TR: k.TR.qemu(), GDT: k.GDT.qemu(), IDT: k.IDT.qemu(),
		CR:           [5]uint64{0: k.CR0, 2: k.CR2, 3: k.CR3, 4: k.CR4},
		KernelGSBase: k.KernelGSBase,
	}
	q.Size = uint32(binary.Size(&q))
	return encode(&q)
}

func (s qemuSegment) segment() Segment { return Segment{s.Selector, s.Limit, s.Flags, s.Base} }

func (s Segment) qemu() qemuSegment {
	return qemuSegment{Selector: s.Selector, Limit: s.Limit, Flags: s.Flags, Base: s.Base}
}

// encode is a structure's bytes; it has a fixed size, so there is no error.
func encode(v any) []byte {
	var b bytes.Buffer
	_ = binary.Write(&b, le, v)
	return b.Bytes()
}
