package kimage

import (
	"bytes"
	"slices"

	"kprobelab/kimage/internal/opened"
	"kprobelab/kimage/internal/processor"
)

// nops are the no-operation forms of one kernel and processor.
type nops struct {
	// forms[n] is the nop of n bytes; the longest is the last.
	forms [][]byte
	// atomic5 is the 5-byte nop that is one instruction, for patch sites.
	atomic5 []byte
	// jumpOver: a run longer than the longest form becomes a jump over int3s
	// (6.5 and later), not several nops.
	jumpOver bool
}

// The processor manual's recommended nops (SDM Vol. 2, "NOP"), and the AMD
// K8's made of prefixes.
var (
	nopl = [][]byte{
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

// nopsFor returns the forms of a release: by processor to 5.12, NOPL up to 8
// bytes later, up to 11 and jumps beyond with the alternatives of 6.5.
func nopsFor(byCPU, long, k8 bool) nops {
	switch {
	case byCPU && k8:
		return nops{forms: nopK8, atomic5: nop5K8}
	case long:
		return nops{forms: nopl, atomic5: nopl[5], jumpOver: true}
	default:
		return nops{forms: nopl[:9], atomic5: nopl[5]}
	}
}

// k8Nops reports whether releases to 5.12 prefer nops made of prefixes on the processor
// (arch_init_ideal_nops): on AMD's to family 15, and on Intel's from Core to Westmere except Atoms.
func k8Nops(m *processor.Model) bool {
	switch m.Vendor {
	case processor.AMD:
		return m.Family <= 15
	case processor.Hygon:
		return false
	case processor.Intel:
		return m.Family == 6 && m.Number >= 0x0f && m.Number < 0x30 && !slices.Contains([]int{0x1c, 0x26, 0x27, 0x28}, m.Number)
	}
	return true
}

// fill fills b with nops, the longest first.
func (n *nops) fill(b []byte) {
	longest := len(n.forms) - 1
	if n.jumpOver && len(b) > longest {
		jumpOver(b)
		return
	}
	for len(b) > 0 {
		k := min(len(b), longest)
		copy(b, n.forms[k])
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
		le.PutUint32(b[1:], uint32(len(b)-5))
	}
	fillInt3(b[head:])
}

func fillInt3(b []byte) {
	for i := range b {
		b[i] = 0xcc
	}
}

// isLongNop reports whether all of b is a nopl of eight bytes with prefixes that say nothing.
func isLongNop(b []byte) bool {
	head, ok := bytes.CutSuffix(b, nopl[8])
	return ok && len(bytes.Trim(head, "\x66\x2e")) == 0
}

// nopTable finds the kernel's own no-operations of 1 to 8 bytes and more, one after the other in its
// data, and reads how many there are. The instruction of n bytes is n bytes long, and the next one follows.
func nopTable(img opened.Image) (forms [][]byte, where string) {
	first := bytes.Join(nopl[1:9], nil)
	for _, s := range img.Sections() {
		if s.Exec || s.Module != "" {
			continue
		}
		i := bytes.Index(s.Data, first)
		if i < 0 {
			continue
		}
		forms = append([][]byte{}, nopl[:9]...)
		rest := s.Data[i+len(first):]
		for n := len(forms); len(rest) >= n && isLongNop(rest[:n]); n++ {
			forms = append(forms, bytes.Clone(rest[:n]))
			rest = rest[n:]
		}
		return forms, s.Name
	}
	return nil, ""
}
