package usertext

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/userprobe"
	"kprobelab/uprobes"
)

// TestEveryStepHasWords: and a name in JSON.
func TestEveryStepHasWords(t *testing.T) {
	for kind := range userprobe.NumEventKinds {
		require.NotEmpty(t, Step(&userprobe.Event{Kind: kind}), kind)
		require.NotEmpty(t, kind.String())
	}
	emulated := func(a uprobes.Analysis) string {
		return Step(&userprobe.Event{Kind: userprobe.EventEmulated, Analysis: &a})
	}
	require.Contains(t, emulated(uprobes.Analysis{Way: uprobes.Push}), "push is emulated")
	require.Contains(t, emulated(uprobes.Analysis{Way: uprobes.Branch, Opcode: 0xe8, Target: 4}), "call is emulated")
	require.Contains(t, emulated(uprobes.Analysis{Way: uprobes.Branch, Opcode: 0x74}), "jump is emulated")
	require.Contains(t, emulated(uprobes.Analysis{Way: uprobes.Branch, Opcode: 0x90}), "nop is emulated")
}
