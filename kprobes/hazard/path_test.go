package hazard_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/kprobes/hazard"
	"kprobelab/kprobes/probepoint"
	"kprobelab/kprobes/slot"
	"kprobelab/profile"
)

// TestInt3Path: the instructions that the exception itself runs, before and after the handler. The
// code is rcu_dynticks_eqs_exit of a 5.4.286 of our own build, from past its fentry site on.
func TestInt3Path(t *testing.T) {
	const code = "48 c7 c0 c0 ca 02 00 ba 02 00 00 00 f0 0f c1 90 e0 00 00 00 83 e2 01 c3"
	const before, atomic, past, ret = 0, 12, 20, 23
	for name, test := range map[string]struct {
		function, kernel string
		off              int64
		says             string
	}{
		"before_the_atomic":         {"rcu_dynticks_eqs_exit", "5.4.286", before, "before it comes to the kprobes handler, as often as a CPU comes out of idle"},
		"the_atomic_itself":         {"rcu_dynticks_eqs_exit", "5.4.286", atomic, "until the stack ends"},
		"past_it_RCU_watches":       {"rcu_dynticks_eqs_exit", "5.4.286", past, ""},
		"its_ret":                   {"rcu_dynticks_eqs_exit", "5.4.286", ret, ""},
		"enter_past_the_atomic":     {"rcu_dynticks_eqs_enter", "5.4.286", past, "on its way out, as often as a CPU comes out of idle"},
		"enter_RCU_watches_still":   {"rcu_dynticks_eqs_enter", "5.4.286", atomic, ""},
		"way_in":                    {"ist_enter", "4.19.78", past, "at every hit of any probe in the kernel"},
		"way_out":                   {"ist_exit", "5.4.286", past, "runs ist_exit on its way out, at every hit"},
		"noinstr_from_5_8_on":       {"ist_exit", "5.8", past, ""},
		"another_function":          {"rcu_dynticks_eqs_online", "5.4.286", before, ""},
		"a_part_of_it_by_the_name":  {"rcu_dynticks_eqs_exit.part.0", "5.4.286", before, ""},
		"5_15_has_other_exceptions": {"rcu_dynticks_eqs_exit", "5.15.10", before, ""},
	} {
		t.Run(name, func(t *testing.T) {
			release, ok := profile.ParseVersion(test.kernel)
			require.True(t, ok)
			c := profile.ForRelease(release)
			v := view{code: append(hexed(t, code), make([]byte, 16)...), name: test.function}
			out, err := slot.Build(v, base.Add(test.off), slots, false, c)
			require.NoError(t, err)
			place := probepoint.Placement{How: probepoint.HowOf(&out, c), Slot: out}
			found := hazard.At(v, base.Add(test.off), &place, c)
			if test.says == "" {
				require.Empty(t, found)
				return
			}
			require.Len(t, found, 1)
			require.Equal(t, hazard.ID("INT3_PATH"), found[0].ID)
			require.Equal(t, hazard.Oops, found[0].Effect)
			require.Contains(t, found[0].Says, test.says)
			// From the tracer it is no int3.
			place.How = probepoint.Ftrace
			require.Empty(t, hazard.At(v, base.Add(test.off), &place, c))
		})
	}
}
