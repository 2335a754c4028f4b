package kimage

import (
	"bytes"
	"slices"

	"kprobelab/kimage/internal/opened"
	"kprobelab/kimage/internal/patch"
	"kprobelab/kimage/internal/processor"
)

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

// isLongNop reports whether all of b is a patch.Nopl of eight bytes with prefixes that say nothing.
func isLongNop(b []byte) bool {
	head, ok := bytes.CutSuffix(b, patch.Nopl[8])
	return ok && len(bytes.Trim(head, "\x66\x2e")) == 0
}

// nopTable finds the kernel's own no-operations of 1 to 8 bytes and more, one after the other in its
// data, and reads how many there are. The instruction of n bytes is n bytes long, and the next one follows.
func nopTable(img opened.Image) (forms [][]byte, where string) {
	first := bytes.Join(patch.Nopl[1:9], nil)
	for _, s := range img.Sections() {
		if s.Exec || s.Module != "" {
			continue
		}
		i := bytes.Index(s.Data, first)
		if i < 0 {
			continue
		}
		forms = append([][]byte{}, patch.Nopl[:9]...)
		rest := s.Data[i+len(first):]
		for n := len(forms); len(rest) >= n && isLongNop(rest[:n]); n++ {
			forms = append(forms, bytes.Clone(rest[:n]))
			rest = rest[n:]
		}
		return forms, s.Name
	}
	return nil, ""
}
