package event

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/profile"
)

// TestReschedChar has the second flag of a line for each combination, as kernels print it
// that know of a lazy reschedule, and as others do.
func TestReschedChar(t *testing.T) {
	for name, c := range map[string]struct {
		flags       byte
		lazy, plain byte
	}{
		"nobody_asks":                      {FlagIRQsOff | FlagHardIRQ | FlagBHOff, '.', '.'},
		"asked":                            {FlagNeedResched, 'n', 'n'},
		"may_be_preempted":                 {FlagPreemptResched, 'p', 'p'},
		"asked_and_may_be_preempted":       {FlagNeedResched | FlagPreemptResched, 'N', 'N'},
		"lazily":                           {FlagLazyResched, 'l', '.'},
		"lazily_and_may_be_preempted":      {FlagLazyResched | FlagPreemptResched, 'L', 'p'},
		"lazily_and_asked":                 {FlagLazyResched | FlagNeedResched, 'b', 'n'},
		"lazily_asked_may_be_preempted":    {FlagLazyResched | FlagNeedResched | FlagPreemptResched, 'B', 'N'},
		"all_bits_set_as_in_uprobes_lines": {0xff, 'B', 'N'},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, string(c.lazy), string(ReschedChar(&profile.Tracing{LazyResched: true}, c.flags)))
			require.Equal(t, string(c.plain), string(ReschedChar(&profile.Tracing{}, c.flags)))
		})
	}
}
