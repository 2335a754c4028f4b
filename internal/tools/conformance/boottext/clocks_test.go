package boottext

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/kimage"
	"kprobelab/x86"
)

// TestClocksAreShown: a name excuses nothing. The key's own count has to be the one by which the site is as it is, and the clock
// the one for which the kernel switches it.
func TestClocksAreShown(t *testing.T) {
	const base, nop = x86.Addr(0xffffffff81000000), 0x0f
	clocks := func(count int32, source string, unstable bool, resolution uint32) *Clocks {
		return &Clocks{Keys: map[string]int32{"key": count}, Source: source, Unstable: unstable, Resolution: resolution}
	}
	for name, c := range map[string]struct {
		branch bool
		live   byte
		clocks *Clocks
		cause  string
		want   bool
	}{
		"not_asked":                    {false, nop, nil, causeClock, false},
		"key_was_not_read":             {false, nop, &Clocks{Source: "jiffies"}, causeClock, false},
		"off_and_another_clock":        {false, nop, clocks(0, "refined-jiffies", false, 1), causeClock, true},
		"off_and_unstable":             {false, nop, clocks(0, "tsc", true, 1), causeClock, true},
		"off_although_stable":          {false, nop, clocks(0, "tsc", false, 1), causeClock, false},
		"clock_is_not_known":           {false, nop, clocks(0, "", false, 1), causeClock, false},
		"on_and_yet_no_jump":           {false, nop, clocks(1, "jiffies", false, 1), causeClock, false},
		"on_where_likely":              {true, nop, clocks(1, "jiffies", false, 1), causeClock, true},
		"off_where_likely":             {true, x86.Jmp32, clocks(0, "jiffies", false, 1), causeClock, true},
		"a_short_jump":                 {true, jmp8, clocks(0, "jiffies", false, 1), causeClock, true},
		"low_resolution":               {false, nop, clocks(0, "tsc", false, 4000000), causeTimers, true},
		"high_resolution":              {false, nop, clocks(0, "tsc", false, 1), causeTimers, false},
		"resolution_is_not_known":      {false, nop, clocks(0, "tsc", false, 0), causeTimers, false},
		"clock_is_no_cause_of_timers":  {false, nop, clocks(0, "jiffies", true, 1), causeTimers, false},
		"timers_are_no_cause_of_clock": {false, nop, clocks(0, "tsc", false, 4000000), causeClock, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := (&causes{base: base, live: []byte{c.live, 0, 0, 0, 0}, clocks: c.clocks}).shown(
				&kimage.JumpLabel{Addr: base, Len: 5, Branch: c.branch}, "key", c.cause)
			require.Equal(t, c.want, got)
		})
	}
	require.False(t, (&causes{base: base, clocks: clocks(0, "jiffies", false, 1)}).shown(&kimage.JumpLabel{Addr: base}, "key", causeClock), "outside of what was read")
}
