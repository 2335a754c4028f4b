package steptext

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/kprobes"
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
