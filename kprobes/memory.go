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

// readAndWrite swaps words of a machine that is no Swapper, through a buffer as above.
type readAndWrite struct {
	m    Machine
	word [8]byte
}

func (s *readAndWrite) SwapWord(at x86.Addr, v uint64) (uint64, error) {
	if err := s.m.ReadMem(at, s.word[:]); err != nil {
		return 0, err
	}
	old := binary.LittleEndian.Uint64(s.word[:])
	binary.LittleEndian.PutUint64(s.word[:], v)
	return old, s.m.WriteMem(at, s.word[:])
}

func (k *Kprobes) writeWord(cpu *cpuState, at x86.Addr, v uint64) error {
	binary.LittleEndian.PutUint64(cpu.word[:], v)
	return k.m.WriteMem(at, cpu.word[:])
}
