// Package patch writes what boot writes at one site of a kernel's text: no-operations, the replacements of
// alternatives, the forms of retpolines, of paravirt calls and of static calls.
//
// It must not know which sites an image has, of releases, or of processors: Forms says how a kernel
// writes.
package patch

import (
	"encoding/binary"

	"kprobelab/x86"
)

// Nops are the no-operation forms of one kernel and processor.
type Nops struct {
	// Forms[n] is the nop of n bytes; the longest is the last.
	Forms [][]byte
	// Atomic5 is the 5-byte nop that is one instruction, for patch sites.
	Atomic5 []byte
	// JumpOver: a run longer than the longest form becomes a jump over int3s
	// (6.5 and later), not several nops.
	JumpOver bool
}

// The processor manual's recommended nops (SDM Vol. 2, "NOP"), and the AMD
// K8's made of prefixes.
var (
	Nopl = [][]byte{
		{}, {0x90}, {0x66, 0x90}, {0x0f, 0x1f, 0x00}, {0x0f, 0x1f, 0x40, 0}, {0x0f, 0x1f, 0x44, 0, 0},
		{0x66, 0x0f, 0x1f, 0x44, 0, 0}, {0x0f, 0x1f, 0x80, 0, 0, 0, 0}, {0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0},
		{0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0}, {0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0},
		{0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0},
	}
	nopK8 = [][]byte{
		{}, {0x90}, {0x66, 0x90}, {0x66, 0x66, 0x90}, {0x66, 0x66, 0x66, 0x90},
		{0x66, 0x66, 0x90, 0x66, 0x90}, {0x66, 0x66, 0x90, 0x66, 0x66, 0x90},
		{0x66, 0x66, 0x66, 0x90, 0x66, 0x66, 0x90}, {0x66, 0x66, 0x66, 0x90, 0x66, 0x66, 0x66, 0x90},
	}
	nop5K8 = []byte{0x66, 0x66, 0x66, 0x66, 0x90}
)

// NopsFor returns the forms of a release: by processor to 5.12, NOPL up to 8
// bytes later, up to 11 and jumps beyond with the alternatives of 6.5.
func NopsFor(byCPU, long, k8 bool) Nops {
	switch {
	case byCPU && k8:
		return Nops{Forms: nopK8, Atomic5: nop5K8}
	case long:
		return Nops{Forms: Nopl, Atomic5: Nopl[5], JumpOver: true}
	default:
		return Nops{Forms: Nopl[:9], Atomic5: Nopl[5]}
	}
}

// Fill fills b with nops, the longest first.
func (n *Nops) Fill(b []byte) {
	longest := len(n.Forms) - 1
	if n.JumpOver && len(b) > longest {
		jumpOver(b)
		return
	}
	for len(b) > 0 {
		k := min(len(b), longest)
		copy(b, n.Forms[k])
		b = b[k:]
	}
}

// jumpOver makes b a jump to its end, followed by int3s.
func jumpOver(b []byte) {
	head := 2
	if len(b) < 128 {
		b[0], b[1] = 0xeb, byte(len(b)-2)
	} else {
		head = 5
		b[0] = 0xe9
		binary.LittleEndian.PutUint32(b[1:], uint32(len(b)-5))
	}
	fillInt3(b[head:])
}

func fillInt3(b []byte) {
	for i := range b {
		b[i] = x86.Int3
	}
}
