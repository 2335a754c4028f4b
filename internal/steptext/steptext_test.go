package steptext

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/userprobe"
	"kprobelab/kprobes"
	"kprobelab/uprobes"
)

// TestEveryStepHasWords: by whatever way the CPU came.
func TestEveryStepHasWords(t *testing.T) {
	for kind := range kprobes.NumEventKinds {
		for way := kprobes.WayInt3; way <= kprobes.WayReturn; way++ {
			require.NotEmpty(t, Hit(&kprobes.Event{Kind: kind, Way: way}), kind)
		}
	}
	for kind := range kprobes.NumOptKinds {
		require.NotEmpty(t, Optimizer(&kprobes.OptEvent{Kind: kind, Probe: &kprobes.Kprobe{}}), kind)
	}
}

// TestEveryStepOfAProgramHasWords: and a name in JSON.
func TestEveryStepOfAProgramHasWords(t *testing.T) {
	for kind := range userprobe.NumEventKinds {
		require.NotEmpty(t, User(&userprobe.Event{Kind: kind}), kind)
		require.NotEmpty(t, kind.String())
	}
	emulated := func(a uprobes.Analysis) string {
		return User(&userprobe.Event{Kind: userprobe.EventEmulated, Analysis: &a})
	}
	require.Contains(t, emulated(uprobes.Analysis{Way: uprobes.Push}), "push is emulated")
	require.Contains(t, emulated(uprobes.Analysis{Way: uprobes.Branch, Opcode: 0xe8, Target: 4}), "call is emulated")
	require.Contains(t, emulated(uprobes.Analysis{Way: uprobes.Branch, Opcode: 0x74}), "jump is emulated")
	require.Contains(t, emulated(uprobes.Analysis{Way: uprobes.Branch, Opcode: 0x90}), "nop is emulated")
}
