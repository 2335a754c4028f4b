package tracing

import (
	"encoding/binary"
	"strconv"

	"kprobelab/internal/tracing/fetch"
	"kprobelab/x86"
)

func itoa(n int) string { return strconv.Itoa(n) }

func putWord(b []byte, v uint64) { binary.LittleEndian.PutUint64(b, v) }

// source is the guest, as the fetch programs of a hit's arguments read it.
type source struct{ *Tracing }

var _ fetch.Source = source{}

// PerCPU returns the CPU's GS base.
func (s source) PerCPU() uint64 { return uint64(s.m.GSBase(s.m.CPU())) }

// Current is the address of the task_struct that the CPU's variable has, 0 where
// there is none.
func (s source) Current() uint64 { return s.currentTask() }

// Comm is the name of the hit's task.
func (s source) Comm() string { return s.comm }

// Symbol is an address as %pS prints it.
func (s source) Symbol(addr uint64) string { return s.symbol(addr, true) }

// currentTask returns the address of the task_struct in the CPU's variable, 0 if there is none.
func (t *Tracing) currentTask() uint64 {
	if t.taskAt == 0 || !t.read(uint64(t.m.GSBase(t.m.CPU())+t.taskAt), t.word[:], false) {
		return 0
	}
	return binary.LittleEndian.Uint64(t.word[:])
}

// StackWord is a word of the stack, 0 where that is not the task's stack.
func (s source) StackWord(regs *x86.PtRegs, n int) uint64 {
	at := regs.SP + 8*uint64(n)
	if at/x86.ThreadSize != regs.SP/x86.ThreadSize || !s.read(at, s.word[:], false) {
		return 0
	}
	return binary.LittleEndian.Uint64(s.word[:])
}

// Read reads memory. With user set it reads user memory only; without it, either: on this processor
// a user address is never a kernel address.
func (s source) Read(addr uint64, b []byte, user bool) bool { return s.read(addr, b, user) }

func (t *Tracing) read(addr uint64, b []byte, user bool) bool {
	if end := addr + uint64(len(b)); user && (end > uint64(x86.UserEnd) || end < addr) {
		return false
	}
	return t.m.ReadMem(x86.Addr(addr), b) == nil
}

// countFaults adds a record's faults to the misses of all probes at its place.
func (t *Tracing) countFaults(tp *probe, f *fetch.Faults) {
	if f.N == 0 || !t.p.FaultHandler {
		return
	}
	for _, o := range t.probes {
		if o.planted && o.kp.Addr == tp.kp.Addr {
			o.kp.Nmissed += f.N
		}
	}
}
