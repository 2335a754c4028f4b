package conformance

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Rule: whatever probes stop a machine, at once or some probes later, they are left
// off in the end, and few others with them.
func TestStopsFindsTheProbesThatStopAMachine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := events(rapid.IntRange(1, 400).Draw(t, "probes"))
		// delay holds, for each culprit, the number of probes that are enabled after it before the machine stops.
		delay := map[string]int{}
		for range rapid.IntRange(0, 3).Draw(t, "culprits") {
			delay[rapid.SampledFrom(events).Draw(t, "culprit")] = rapid.IntRange(0, 5).Draw(t, "delay")
		}
		s := &stops{}
		// boot returns the events that a machine enables, and whether it stops.
		boot := func() (enabled []string, stopped bool) {
			due := -1
			for _, e := range events {
				if slices.Contains(s.left, e) {
					continue
				}
				enabled = append(enabled, e)
				if d, ok := delay[e]; ok && (due < 0 || d < due) {
					due = d
				}
				if due == 0 {
					return enabled, true
				}
				due--
			}
			return enabled, due >= 0 // it stops when all are enabled
		}
		for boots := 0; ; boots++ {
			require.Less(t, boots, maxBoots)
			enabled, stopped := boot()
			if !stopped {
				break
			}
			require.True(t, s.stopped(enabled))
		}
		for e := range delay {
			require.Contains(t, s.left, e)
		}
		require.LessOrEqual(t, len(s.left), 31*len(delay))
	})
}

func TestNoProbeIsToBlameWhereNoneWasEnabled(t *testing.T) {
	s := &stops{}
	require.False(t, s.stopped(nil))
	require.True(t, s.stopped([]string{"e0"}))
	require.Equal(t, []string{"e0"}, s.left)
}

// TestMachinesThatEndEarly: a kernel that ended before init ran boots again as it is, three times at most; nothing
// is left off for it.
func TestMachinesThatEndEarly(t *testing.T) {
	for name, c := range map[string]struct {
		ran, want []bool
	}{
		"init_ran":             {[]bool{true, true}, []bool{false, false}},
		"once":                 {[]bool{false, true}, []bool{true, false}},
		"always":               {[]bool{false, false, false, false, false}, []bool{true, true, true, false, false}},
		"between_other_stops":  {[]bool{true, false, true, false, true, false}, []bool{false, true, false, true, false, true}},
		"too_often_altogether": {[]bool{false, true, false, true, false, true, false}, []bool{true, false, true, false, true, false, false}},
	} {
		t.Run(name, func(t *testing.T) {
			var s stops
			for i, ran := range c.ran {
				require.Equal(t, c.want[i], s.early(ran), i)
			}
			require.Empty(t, s.left)
		})
	}
}
