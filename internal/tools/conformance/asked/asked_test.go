package asked

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/errno"
	"kprobelab/internal/mount"
)

func TestGenerateRepeats(t *testing.T) {
	require.Equal(t, Generate(1, 50), Generate(1, 50))
	require.NotEqual(t, Generate(1, 50), Generate(2, 50))
	for _, part := range []string{"p:g/e ", "r10", "%return", "+u0(", ":string[2]", "\x00", " && ", "dynamic_events"} {
		require.True(t, slices.ContainsFunc(Generate(1, 300), func(o Op) bool { return strings.Contains(o.File+o.Text, part) }), part)
	}
}

func TestRun(t *testing.T) {
	m := mount.NewMemTree()
	require.NoError(t, m.Create("f", 0o600))
	require.Equal(t, []Answer{{}, {}, {Text: "onetwo"}, {}, {}, {Errno: int(errno.ENOENT)}}, Run(m, []Op{
		{Write, "f", "one"}, {Append, "f", "two"}, {Read, "f", ""}, {Write, "f", ""}, {Read, "f", ""}, {Read, "none", ""},
	}))
}

func TestCompare(t *testing.T) {
	ops := []Op{{Append, "kprobe_events", "p:x 0x1"}, {Read, "error_log", ""}, {Read, "kprobe_events", ""}, {Read, "f", ""}}
	theirs := []Answer{{}, {Text: "[    1.5] trace_kprobe: error: x"}, {Text: "p:kprobes/x 0x(____ptrval____)\n"}, {Errno: 2}}
	ours := []Answer{{}, {Text: "[    0.000000] trace_kprobe: error: x"}, {Text: "p:kprobes/x 0x0000000000000001\n"}, {Errno: 2}}
	require.Empty(t, Compare(ops, theirs, ours))
	ours[1].Text += " y"
	ours[3].Errno = 0
	list := Compare(ops, theirs, ours)
	require.Len(t, list, 2)
	require.Equal(t, Difference{ops[0], ops[1], theirs[1], ours[1]}, list[0])
	require.Equal(t, "read error_log \"\" after \"p:x 0x1\"\n  kernel: errno 0 [    1.5] trace_kprobe: error: x\n"+
		"  ours:   errno 0 [    0.000000] trace_kprobe: error: x y", list[0].String())
}
