package tracing_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/errno"
	"kprobelab/tracing"
)

// writable are the files that FuzzFiles writes to.
var writable = []string{
	"events/kprobes/e/filter", "events/kprobes/e/trigger", "events/kprobes/e/enable", "events/kprobes/filter", "events/kprobes/enable",
	"events/enable", "set_event", "trace_options", "options/stacktrace", "options/overwrite", "trace_clock", "tracing_on", "current_tracer",
	"snapshot", "per_cpu/cpu0/snapshot", "buffer_size_kb", "per_cpu/cpu1/buffer_size_kb", "trace_marker", "kprobes/enabled",
	"debug/kprobes-optimization", "stack_max_size", "instances/i/trace_options", "instances/i/events/kprobes/e/filter",
}

// settings returns the contents of those files, and the text of the event's filter.
func (g *guest) settings() map[string]string {
	m := map[string]string{}
	for _, f := range writable {
		if f != "trace_marker" {
			m[f] = g.read(f)
		}
	}
	return m
}

// FuzzFiles writes to one file after the other. A write that fails changes nothing, except the
// error text of a filter; the content of a filter or trigger file makes the same again; and the
// guest runs on.
func FuzzFiles(f *testing.F) {
	f.Add("x == 1 && y != 2", "stacktrace:3 if x > 1", uint8(0), uint8(1))
	f.Add("1", "snapshot", uint8(2), uint8(1))
	f.Add("traceoff if x ==", "e", uint8(1), uint8(6))
	f.Add("nooverwrite\n", "x86-tsc", uint8(7), uint8(10))
	f.Add("70000000000", "2", uint8(15), uint8(13))
	f.Add("enable_event:kprobes:e", "!enable_event:kprobes:e", uint8(1), uint8(1))
	f.Add("(x==1", "!", uint8(3), uint8(0))
	f.Fuzz(func(t *testing.T, first, second string, a, b uint8) {
		g := newGuest(t, "6.1", 2, tracing.Options{BufferSize: 8 << 10})
		g.write("kprobe_events", "p:e leaf x=%di y=%si:s16 s=$comm")
		require.NoError(t, g.Mkdir("instances/i"))
		for i, text := range []string{first, second} {
			file := writable[int([]uint8{a, b}[i])%len(writable)]
			if strings.HasSuffix(file, "size_kb") && len(strings.Trim(text, "+\n")) > 4 {
				continue // a buffer of gigabytes is made, and takes its time
			}
			before := g.settings()
			if err := g.Write(file, text, true); err != nil {
				require.NotZero(t, errno.Of(err))
				after := g.settings()
				if strings.HasSuffix(file, "filter") {
					for name := range after {
						if strings.HasSuffix(name, "filter") {
							delete(before, name)
							delete(after, name)
						}
					}
				}
				require.Equal(t, before, after, "%s > %s: %v", text, file, err)
			}
			g.call("leaf", 1)
		}
		_, _ = g.read("trace"), g.read("snapshot")
		if s := strings.TrimSuffix(g.read("events/kprobes/e/filter"), "\n"); s != "none" && !strings.Contains(s, "\n") {
			g.write("events/kprobes/e/filter", "0")
			g.write("events/kprobes/e/filter", s)
			require.Equal(t, s+"\n", g.read("events/kprobes/e/filter"))
		}
		if s := g.read("events/kprobes/e/trigger"); !strings.HasPrefix(s, "#") {
			g.triggersAgain(s)
		}
	})
}

// triggersAgain removes the triggers that the text lists, and makes them anew:
// the list has the newest first.
func (g *guest) triggersAgain(text string) {
	const file = "events/kprobes/e/trigger"
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for _, line := range lines {
		g.write(file, "!"+asWritten(line))
	}
	require.True(g, strings.HasPrefix(g.read(file), "# Available"), g.read(file))
	for i := len(lines) - 1; i >= 0; i-- {
		g.write(file, asWritten(lines[i]))
	}
	require.Equal(g, text, g.read(file))
}

// asWritten is the command of a line of a trigger file.
func asWritten(line string) string {
	command, condition, conditional := strings.Cut(line, " if ")
	command = strings.Replace(strings.TrimSuffix(command, ":unlimited"), ":count=", ":", 1)
	if conditional {
		command += " if " + condition
	}
	return command
}
