package tracing_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/integration/oracle"
	"kprobelab/tracing"
)

// TestTraceOutputTranscript runs, on the guest's module, the commands that ran on the test module
// of three real kernels, whose functions are the same instructions, and compares all output:
// readback, kprobe_profile, trace. Offsets, sizes, addresses and times belong to the build and are
// left out.
func TestTraceOutputTranscript(t *testing.T) {
	for folder, kernel := range oracle.Kernels {
		t.Run(kernel, func(t *testing.T) {
			list := blocks(t, folder, "trace_output.txt")
			o := tracing.Options{Task: func(int) (int, string) { return 102, "sh" }}
			g := newGuest(t, kernel, 2, o)
			var got, want []string
			for _, b := range list[:5] {
				if strings.Contains(b.cmd, "debug/kprobes/list") && !strings.Contains(b.cmd, "kprobe_profile") {
					continue // the list is in its own transcript
				}
				got = append(got, g.shell(t, b.cmd)...)
				want = append(want, b.want...)
			}
			require.Greater(t, len(want), 60)
			require.Equal(t, placeless(want), placeless(got))
		})
	}
}

// shell runs the commands of a block, and calls the module's functions at the same commands as the
// real one.
func (g *guest) shell(t *testing.T, commands string) []string {
	s := &shell{t: t, tr: g.Tracing}
	for cmd := range strings.SplitSeq(onGuest(commands), ";") {
		cmd = strings.TrimSpace(cmd)
		switch {
		case cmd == "echo call > /proc/demo":
			for name, arg := range map[string]int{"demo_ft": 1} {
				g.call(name, arg)
			}
			g.call("demo_ft2", 2)
			g.call("demo_rec", 3)
		case cmd == "sleep 1":
			require.NoError(t, g.l.Settle())
		case strings.HasSuffix(cmd, "debug/kprobes/list"):
		default:
			s.command(cmd)
		}
	}
	return s.out
}

// onGuest names the guest's functions. The real 6.12 has an ENDBR of 4 bytes
// in front of each.
func onGuest(text string) string {
	text = strings.ReplaceAll(text, "korct", "demo")
	return strings.NewReplacer("ft2+12 ", "ft2+8 ", "ft2+23'", "ft2+19'").Replace(text)
}

var (
	listLine = regexp.MustCompile(`(?m)^ffffffff[0-9a-f]{8}  [kr] .*\n?`)
	offset   = regexp.MustCompile(`\+0x[0-9a-f]+/0x[0-9a-f]+( \[\w+\])?`)
	caller   = regexp.MustCompile(`\((kw\+OFF|0xffffffffc[0-9a-f]+) <-`)
	words    = regexp.MustCompile(`arr=\{[^}]*\}`)
	seconds  = regexp.MustCompile(` +\d+\.\d{6}: `)
	task     = regexp.MustCompile(`(?m)^ *sh-\d+ +\[\d+\]`)
	places   = regexp.MustCompile(`demo_ft2\+\d+`)
)

func placeless(lines []string) string {
	text := onGuest(strings.Join(lines, "\n"))
	text = listLine.ReplaceAllString(text, "")
	text = caller.ReplaceAllString(offset.ReplaceAllString(text, "+OFF"), "(CALLER <-")
	text = words.ReplaceAllString(text, "arr={}")
	text = task.ReplaceAllString(seconds.ReplaceAllString(text, " TIME: "), "sh-PID [CPU]")
	return places.ReplaceAllString(text, "demo_ft2+N")
}
