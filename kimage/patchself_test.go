package kimage

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/x86"
)

// TestCapabilitiesOfAKernelWithoutFastTests: without X86_FAST_FEATURE_TESTS no alternative leads to a
// test of a bit; what patches alternatives has one.
func TestCapabilitiesOfAKernelWithoutFastTests(t *testing.T) {
	for name, c := range map[string]struct {
		code string
		want x86.Addr
	}{
		"relative":       {"4889e5 480fa30df00f0000 c3", testText + 0x1000 + 0xb - 0x10},
		"absolute":       {"4889e5 480fa30425 78563481 c3", 0xffffffff81345678},
		"of_a_register":  {"480fa3c8 c3", 0},
		"after_its_end":  {"c3 9090909090909090909090909090 480fa30df00f0000", 0},
		"another_test":   {"f605f00f000001 c3", 0},
		"indexed_memory": {"480fa30448 c3", 0},
	} {
		t.Run(name, func(t *testing.T) {
			text := make([]byte, 0x40)
			n := copy(text, fromHex(t, c.code))
			if name == "after_its_end" {
				n = 1
			}
			img := tableImage(t, text)
			img.index.setImage([]Symbol{{Name: "apply_alternatives", Addr: testText, Type: 't'}},
				func(x86.Addr) x86.Addr { return testText + x86.Addr(n) })
			at, ok := (&SelfPatch{Image: img}).Capabilities()
			require.Equal(t, c.want, at)
			require.Equal(t, c.want != 0, ok)
		})
	}
}
