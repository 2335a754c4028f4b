package tracing_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/errno"
	"kprobelab/tracing"
)

// FuzzWrites writes a text to kprobe_events in chunks of odd sizes. Nothing panics. A write that
// fails keeps the probes of the lines before the failing one, and a single line that fails changes
// nothing. The content read back defines the same events again.
func FuzzWrites(f *testing.F) {
	f.Add("p:a leaf\np:a leaf2\n-:a leaf\n", uint8(0))
	f.Add("p:a leaf x=%di\nr:a leaf\n", uint8(7))
	f.Add("r2:b fib $retval $comm\n# nothing\n\np:g/c leaf+5 +0(%di):u8[4]\n", uint8(3))
	f.Add("-:kprobes/\np:a leaf \\\"x=y\"\n!p:a leaf\n", uint8(11))
	f.Add("p:a @x\x00p:b leaf\nr0:x fib%return\n", uint8(1))
	f.Fuzz(func(t *testing.T, text string, size uint8) {
		g := newGuest(t, "6.1", 1, tracing.Options{})
		h, err := g.OpenFile("kprobe_events", os.O_WRONLY|os.O_APPEND)
		require.NoError(t, err)
		chunks := [][]byte{[]byte(text)}
		if size > 0 && text != "" {
			chunks = slices.Collect(slices.Chunk([]byte(text), int(size)))
		}
		for _, c := range chunks {
			before, planted := g.read("kprobe_events"), g.l.Kprobes.Registered()
			n, err := h.WriteAt(c, 0)
			require.Contains(t, []int{0, len(c)}, n)
			if err == nil {
				continue
			}
			require.NotZero(t, errno.Of(err))
			if !strings.Contains(strings.TrimSuffix(string(c), "\n"), "\n") && c[0] != '-' {
				require.Equal(t, before, g.read("kprobe_events"))
				require.Equal(t, planted, g.l.Kprobes.Registered())
			}
		}
		again := g.read("kprobe_events")
		for line := range strings.Lines(again) {
			if !defined.MatchString(line) {
				return // a name that the kernel makes up, and would not accept
			}
		}
		formats := g.formats()
		require.NoError(t, g.Write("kprobe_events", "", false))
		require.Zero(t, g.l.Kprobes.Registered())
		for line := range strings.Lines(again) {
			require.NoError(t, g.Write("kprobe_events", line, true), line)
		}
		require.Equal(t, again, g.read("kprobe_events"))
		require.Equal(t, formats, g.formats())
	})
}

// defined is a line of kprobe_events whose names people could have written.
var defined = regexp.MustCompile(`^[pr]\d*:[\w-]+/[A-Za-z_]\w* (0x[0-9a-f]{16}|([A-Za-z_]\w*:)?[A-Za-z_][\w.]*(\+\d+)?)( .*)?\n$`)

// formats are the format files of all events, without their numbers.
func (g *guest) formats() (list []string) {
	for line := range strings.Lines(g.read("available_events")) {
		group, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		_, fields, _ := strings.Cut(g.read("events/"+group+"/"+name+"/format"), "format:")
		list = append(list, line+fields)
	}
	slices.Sort(list)
	return list
}
