package tracing_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/kprobestest"
	"kprobelab/tracing"
)

// TestStackOfATriggerCountsTheHandler: a trigger's stack counts the preemption that the handler
// turned off; the record of the same hit, and the stack of the option, do not.
func TestStackOfATriggerCountsTheHandler(t *testing.T) {
	for name, c := range map[string]struct {
		kernel, probe  string
		trigger, event string
		preemption     bool
	}{
		"a function of 6.9":           {"6.9", "p:g/e alloc_pid", "...1.", ".....", true},
		"a return of 6.9":             {"6.9", "r:g/e alloc_pid", "...1.", ".....", true},
		"an int3 of 6.9":              {"6.9", "p:g/e leaf+5", "d.Z..", "..Zff", true},
		"a function of 6.18":          {"6.18", "p:g/e alloc_pid", ".....", ".....", true},
		"an int3 of 6.18":             {"6.18", "p:g/e leaf+5", "..Zff", "..Zff", true},
		"a function of Debian's 6.12": {"6.12", "p:g/e alloc_pid", ".....", ".....", true},
		"without preemption":          {"5.8", "p:g/e alloc_pid", "....", "....", false},
		"four flags, of 5.8":          {"5.8", "p:g/e alloc_pid", "...1", "....", true},
		"a return of 5.10":            {"5.10", "r:g/e alloc_pid", "d..1", "d...", true},
		"6.9 without preemption":      {"6.9", "p:g/e alloc_pid", ".....", ".....", false},
	} {
		t.Run(name, func(t *testing.T) {
			for _, option := range []bool{false, true} {
				g := newGuestOf(t, &kprobestest.Options{Profile: c.kernel, Preemption: &c.preemption}, tracing.Options{})
				g.write("kprobe_events", c.probe)
				g.write("events/g/e/enable", "1")
				want := c.trigger
				if option {
					g.write("options/stacktrace", "1")
					want = c.event
				} else {
					g.write("events/g/e/trigger", "stacktrace")
				}
				g.call("sys_fork")
				g.call("outer", 1)
				var got []string
				for _, line := range strings.Split(g.read("trace"), "\n") {
					if _, after, ok := strings.Cut(line, "] "); ok && !strings.HasPrefix(line, "#") {
						got = append(got, after[:strings.Index(after, " ")])
					}
				}
				require.GreaterOrEqual(t, len(got), 2)
				require.Equal(t, []string{c.event, want}, got[:2])
			}
		})
	}
}
