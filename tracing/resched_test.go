package tracing_test

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/kimage"
	"kprobelab/tracing"
	"kprobelab/x86"
)

// TestReschedFlagByRelease: the bits of a task's flags that request a reschedule, and the character
// for them in a line.
func TestReschedFlagByRelease(t *testing.T) {
	for name, c := range map[string]struct {
		kernel string
		flags  uint64
		want   byte
	}{
		"bit_3_to_6_17":                   {"6.12", 1 << 3, 'n'},
		"bit_4_of_6_12_is_something_else": {"6.12", 1 << 4, '.'},
		"bit_3_since_6_18":                {"6.18", 1 << 3, '.'},
		"bit_4_since_6_18":                {"6.18", 1 << 4, 'n'},
		"lazily_since_6_18":               {"6.18", 1 << 5, 'l'},
		"both":                            {"7.3", 1<<4 | 1<<5, 'b'},
		"neither":                         {"7.3", 1<<3 | 1<<6, '.'},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGuest(t, c.kernel, 1, tracing.Options{})
			g.define("p:g/e leaf2")
			at, ok := kimage.CurrentTask(g.l.Kprobes.View().Lookup)
			require.True(t, ok)
			var word [8]byte
			require.NoError(t, g.l.Machine.ReadMem(g.l.Machine.GSBase(0)+at, word[:]))
			task := x86.Addr(binary.LittleEndian.Uint64(word[:]))
			require.NoError(t, g.l.Machine.WriteMem(task, binary.LittleEndian.AppendUint64(nil, c.flags)))
			g.call("leaf2", 1, 2)
			list := g.lines()
			require.Len(t, list, 1)
			_, after, ok := strings.Cut(list[0], "] ")
			require.True(t, ok)
			require.Equal(t, string(c.want), string(after[1]), list[0])
		})
	}
}
