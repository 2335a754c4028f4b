package tracing_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/tracing"
)

// FuzzFunctionFilter writes to set_ftrace_filter while the tracer runs. What
// reads back chooses the same functions again, and the guest runs as before.
func FuzzFunctionFilter(f *testing.F) {
	f.Add("kernel_clone copy_p*\n")
	f.Add("* !vfs_*\n!*")
	f.Add("[a-c]* \\x ?ys_fork [z")
	f.Add("schedule:traceoff\x00 leaf")
	f.Fuzz(func(t *testing.T, text string) {
		g := newGuest(t, "6.1", 1, tracing.Options{})
		const file = "set_ftrace_filter"
		g.write("current_tracer", "function")
		_ = g.Write(file, text, true)
		chosen := g.read(file)
		g.call("sys_fork")
		require.NoError(t, g.Write(file, "", false))
		var names []string
		for line := range strings.Lines(chosen) {
			if name, _, _ := strings.Cut(strings.TrimSpace(line), " "); !strings.HasPrefix(name, "#") {
				names = append(names, name)
			}
		}
		g.write(file, strings.Join(names, " "))
		require.Equal(t, chosen, g.read(file))
	})
}
