package tracing_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/errno"
	"kprobelab/tracing"
)

func TestFunctionTracer(t *testing.T) {
	g := newGuest(t, "6.1", 1, tracing.Options{})
	require.Equal(t, "function nop\n", g.read("available_tracers"))
	require.Contains(t, g.read("available_filter_functions"), "kernel_clone\n")
	require.Contains(t, g.read("available_filter_functions"), " [demo]\n")
	require.Equal(t, "#### all functions enabled ####\n", g.read("set_ftrace_filter"))
	g.write("set_ftrace_filter", "kernel_clone copy_p*\n")
	require.Contains(t, g.read("set_ftrace_filter"), "copy_process\n")
	require.ErrorIs(t, g.Write("set_ftrace_filter", "nosuch", true), errno.EINVAL)
	g.write("current_tracer", "function\n")
	g.call("sys_fork")
	require.Contains(t, g.read("trace"), "# tracer: function\n#\n")
	require.Regexp(t, `^            init-1       \[000\] \.\.\.\.\.     0\.\d{6}: kernel_clone <-sys_fork$`, g.lines()[0])
	require.Regexp(t, `: copy_process <-kernel_clone$`, g.lines()[1])
	require.Len(t, g.lines(), 2)

	g.write("options/sym-offset", "1")
	require.Regexp(t, `: kernel_clone\+0x0/0x[0-9a-f]+ <-sys_fork\+0x`, g.lines()[0])
	g.write("options/print-parent", "0")
	require.Regexp(t, `: kernel_clone\+0x0/0x[0-9a-f]+$`, g.lines()[0])

	g.write("set_ftrace_filter", "!copy_process")
	g.write("trace_marker", "now")
	require.NoError(t, g.Write("trace", "", false))
	g.call("sys_fork")
	require.Len(t, g.lines(), 1)
	g.write("current_tracer", "nop")
	require.Empty(t, g.lines(), "another tracer begins with an empty buffer")
	g.call("sys_fork")
	require.Empty(t, g.lines())
}

// A probe and the tracer share the call at a function's site: each can come
// and go while the other is there, and the text is whole in the end.
func TestFunctionTracerBesideAProbe(t *testing.T) {
	g := newGuest(t, "6.1", 1, tracing.Options{})
	at := g.l.Image.Lookup("kernel_clone")[0].Addr
	text := func() []byte {
		b := make([]byte, 5)
		require.NoError(t, g.l.Machine.ReadMem(at, b))
		return b
	}
	nop := text()
	hits := func() (lines int) {
		require.NoError(t, g.Write("trace", "", false))
		g.call("sys_fork")
		return len(g.lines())
	}
	g.write("set_ftrace_filter", "kernel_clone")
	for _, c := range []struct {
		file, text string
		want       int
	}{
		{"kprobe_events", "p:e kernel_clone", 0},
		{"events/kprobes/e/enable", "1", 1},
		{"current_tracer", "function", 2},
		{"events/kprobes/e/enable", "0", 1},
		{"events/kprobes/e/enable", "1", 2},
		{"current_tracer", "nop", 1},
		{"events/kprobes/e/enable", "0", 0},
		{"current_tracer", "function", 1},
		{"kprobe_events", "p:f kernel_clone", 1}, // registered while the call is there
		{"events/kprobes/f/enable", "1", 2},
		{"events/kprobes/f/enable", "0", 1},
		{"current_tracer", "nop", 0},
		{"events/kprobes/f/enable", "1", 1},
		{"events/kprobes/f/enable", "0", 0},
	} {
		g.write(c.file, c.text)
		require.Equal(t, c.want, hits(), "%s > %s", c.text, c.file)
	}
	require.Equal(t, nop, text())
}

func TestInstancesHaveTracersOfTheirOwn(t *testing.T) {
	g := newGuest(t, "6.1", 1, tracing.Options{})
	require.NoError(t, g.Mkdir("instances/a"))
	g.write("instances/a/set_ftrace_notrace", "*")
	g.write("instances/a/set_ftrace_notrace", "!kernel_clone")
	g.write("instances/a/current_tracer", "function")
	g.write("set_ftrace_filter", "copy_process")
	g.write("current_tracer", "function")
	g.call("sys_fork")
	require.Contains(t, g.read("instances/a/trace"), ": kernel_clone <-sys_fork\n")
	require.NotContains(t, g.read("instances/a/trace"), "copy_process <-")
	require.Len(t, g.lines(), 1)
	require.NoError(t, g.Rmdir("instances/a"))
	g.call("sys_fork")
	require.Len(t, g.lines(), 2)
}

func TestAllFunctionsTraced(t *testing.T) {
	for _, kernel := range []string{"5.10", "6.1", "6.12"} {
		g := newGuest(t, kernel, 2, tracing.Options{})
		g.write("current_tracer", "function")
		g.call("sys_open", "/etc/hostname", 0, 0)
		require.Contains(t, g.read("trace"), ": vfs_open <-path_openat\n")
		g.write("current_tracer", "nop")
	}
}

func TestStackTracer(t *testing.T) {
	g := newGuest(t, "6.1", 1, tracing.Options{})
	require.Contains(t, g.read("stack_trace"), "(0 entries)\n        -----    ----   --------\n#\n#  Stack tracer disabled\n")
	g.write("stack_trace_filter", "copy_process")
	g.write("kernel/stack_tracer_enabled", "1")
	g.call("sys_open", "/etc/hostname", 0, 0)
	require.Equal(t, "0\n", g.read("stack_max_size"), "none of the functions was called")
	g.call("sys_fork")
	require.Regexp(t, `\(\d+ entries\)\n.*\n  0\) +\d+ +\d+   copy_process\+0x5/0x.*\n  1\) +\d+ +\d+   kernel_clone\+0x.*\n  2\) +\d+ +\d+   sys_fork\+0x`,
		g.read("stack_trace"))
	require.NotEqual(t, "0\n", g.read("stack_max_size"))
	require.Empty(t, g.lines(), "it writes no records")
	g.write("stack_max_size", "16384")
	before := g.read("stack_trace")
	g.call("sys_fork")
	require.Equal(t, before, g.read("stack_trace"))
	g.write("kernel/stack_tracer_enabled", "0")
}

func TestTracerStaysWhileAPipeIsRead(t *testing.T) {
	g := newGuest(t, "6.1", 1, tracing.Options{})
	for _, file := range []string{"trace_pipe", "per_cpu/cpu0/trace_pipe_raw"} {
		h, err := g.OpenFile(file, os.O_RDONLY)
		require.NoError(t, err)
		require.ErrorIs(t, g.Write("current_tracer", "function", true), errno.EBUSY)
		g.write("current_tracer", "nop") // it is that
		require.NoError(t, h.Close())
		require.NoError(t, h.Close())
		require.Empty(t, g.read(file), "fs.FS closes what it opens")
	}
	g.write("current_tracer", "function")
}
