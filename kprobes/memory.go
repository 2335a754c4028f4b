package kprobes

import (
	"encoding/binary"

	"kprobelab/x86"
)

// readWord and writeWord go through the CPU's buffer, so that a hit does not
// allocate.

func (k *Kprobes) readWord(cpu *cpuState, at x86.Addr) (uint64, error) {
	err := k.m.ReadMem(at, cpu.word[:])
	return binary.LittleEndian.Uint64(cpu.word[:]), err
}

func (k *Kprobes) swapWord(cpu *cpuState, at x86.Addr, v uint64) (old uint64, err error) {
	if k.swapper != nil {
		return k.swapper.SwapWord(at, v)
	}
	if old, err = k.readWord(cpu, at); err == nil {
		err = k.writeWord(cpu, at, v)
	}
	return old, err
}

func (k *Kprobes) writeWord(cpu *cpuState, at x86.Addr, v uint64) error {
	binary.LittleEndian.PutUint64(cpu.word[:], v)
	return k.m.WriteMem(at, cpu.word[:])
}
