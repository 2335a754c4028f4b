package tracing_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kprobelab/errno"
	"kprobelab/internal/tracing/ring"
	"kprobelab/tracing"
)

func TestOptionsChangeTheTrace(t *testing.T) {
	g := newGuest(t, "6.1", 1, tracing.Options{})
	require.Equal(t, "print-parent\nnosym-offset\nnosym-addr\nannotate\ncontext-info\noverwrite\nirq-info\nmarkers\nnopause-on-trace\nnostacktrace\n", g.read("trace_options"))
	require.Equal(t, "1\n", g.read("options/overwrite"))
	g.define("p:e leaf")
	g.call("leaf", 1)
	ip := g.l.Image.Lookup("leaf")[0].Addr

	g.write("trace_options", "sym-addr\n")
	require.Contains(t, g.lines()[0], " <"+strings.TrimPrefix(ip.String(), "0x")+">)")
	g.write("options/sym-addr", "0\n")
	require.NotContains(t, g.lines()[0], "<")
	g.write("options/context-info", "0")
	require.Regexp(t, `\A# tracer: nop\n#\ne: \(leaf\+0x0/0x[0-9a-f]+\)\n\z`, g.read("trace"))
	g.write("trace_options", "context-info")

	g.write("options/markers", "0")
	require.ErrorIs(t, g.Write("trace_marker", "x", true), errno.EINVAL)
	require.ErrorIs(t, g.Write("options/markers", "2", true), errno.EINVAL)
	require.ErrorIs(t, g.Write("trace_options", "nosuch", true), errno.EINVAL)
}

func TestWithoutOverwriteTheFirstRecordsStay(t *testing.T) {
	g := newGuest(t, "6.1", 1, tracing.Options{})
	g.write("buffer_size_kb", "4")
	g.write("options/overwrite", "0")
	g.define("p:e leaf n=%di")
	for i := range 400 {
		g.call("leaf", i)
	}
	require.Contains(t, g.lines()[0], " n=0x0")
	require.Contains(t, g.read("per_cpu/cpu0/stats"), "overrun: 0\n")
	require.NotContains(t, g.read("per_cpu/cpu0/stats"), "dropped events: 0\n")
}

func TestFilesOfOneCPU(t *testing.T) {
	g := newGuest(t, "6.1", 2, tracing.Options{})
	g.write("trace_marker", "hello")
	require.Contains(t, g.read("per_cpu/cpu0/trace"), "hello")
	require.NotContains(t, g.read("per_cpu/cpu1/trace"), "hello")
	g.write("per_cpu/cpu1/buffer_size_kb", "64")
	require.Equal(t, "X\n", g.read("buffer_size_kb"))
	require.Empty(t, g.read("per_cpu/cpu1/trace_pipe"))
	require.Contains(t, g.read("per_cpu/cpu0/trace_pipe"), "hello")
	g.write("trace_marker", "again")
	require.NoError(t, g.Write("per_cpu/cpu1/trace", "", false))
	require.Contains(t, g.read("trace"), "again")
	require.NoError(t, g.Write("per_cpu/cpu0/trace", "", false))
	require.NotContains(t, g.read("trace"), "again")
}

func TestRawPages(t *testing.T) {
	g := newGuest(t, "6.1", 1, tracing.Options{})
	g.write("trace_marker", "hello")
	page := g.read("per_cpu/cpu0/trace_pipe_raw")
	require.Len(t, page, ring.PageSize)
	n := binary.NativeEndian.Uint64([]byte(page[8:]))
	require.Contains(t, page[16:16+n], "hello\n")
	require.Empty(t, strings.Trim(page[16+n:], "\x00"))
	require.Empty(t, g.read("trace_pipe"), "it was taken")
	require.Contains(t, g.read("events/header_page"), "field: char data;\toffset:16;\tsize:4080;\tsigned:1;\n")
	require.Contains(t, g.read("events/header_event"), "time_delta  :   27 bits\n")

	h, err := g.OpenFile("per_cpu/cpu0/trace_pipe_raw", os.O_RDONLY)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	_, err = h.ReadAt(ctx, make([]byte, 10), 0)
	require.ErrorIs(t, err, context.DeadlineExceeded, "it waits")
	require.NoError(t, h.Close())
	_, err = h.ReadAt(context.Background(), make([]byte, 10), 0)
	require.ErrorIs(t, err, errno.EBADF)
}

func names(t *testing.T, g *guest, dir string) (list []string) {
	entries, err := fs.ReadDir(g, dir)
	require.NoError(t, err)
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

// What trace-cmd reads to make sense of the pages: the formats of the records that no
// event writes, and the names of the tasks. The prints are the kernel's own.
func TestOwnEvents(t *testing.T) {
	for kernel, sign := range map[string]string{"6.1": "1", "6.12": "0"} {
		g := newGuest(t, kernel, 1, tracing.Options{})
		require.Equal(t, []string{"function", "kernel_stack", "print"}, names(t, g, "events/ftrace"))
		require.Equal(t, []string{"format", "id"}, names(t, g, "events/ftrace/function"))
		require.Equal(t, []string{"format"}, names(t, g, "events/ftrace/print"), "perf opens the tracer's only")
		require.Contains(t, g.read("events/ftrace/function/format"), "name: function\nID: 1\nformat:\n")
		require.Contains(t, g.read("events/ftrace/function/format"), "\tfield:unsigned long parent_ip;\toffset:16;\tsize:8;\tsigned:0;\n\n"+
			`print fmt: " %ps <-- %ps", (void *)REC->ip, (void *)REC->parent_ip`+"\n")
		require.Contains(t, g.read("events/ftrace/kernel_stack/format"), "\tfield:unsigned long caller[8];\toffset:16;\tsize:64;\tsigned:0;\n")
		require.Contains(t, g.read("events/ftrace/print/format"), "\tfield:char buf[];\toffset:16;\tsize:0;\tsigned:"+sign+";\n")
		// They are in no list, and cannot be enabled.
		require.NotContains(t, g.read("available_events"), "ftrace:")
		require.Error(t, g.Write("set_event", "ftrace:print", true))
		require.Error(t, g.Write("events/ftrace/enable", "1", false))

		g.write("trace_marker", "hello")
		require.Equal(t, "1 init\n", g.read("saved_cmdlines"))
		page := g.read("per_cpu/cpu0/trace_pipe_raw")
		rec := page[16+4+4:] // the page's head; the record's, with its length, for the text is long
		if binary.NativeEndian.Uint32([]byte(page[16:]))&31 != 0 {
			rec = page[16+4:]
		}
		require.Equal(t, byte(5), rec[0], "its type is that of print")
		require.Equal(t, "hello\n", rec[16:22])

		// A group of that name is the same folder.
		g.write("kprobe_events", "p:ftrace/mine vfs_read")
		require.Equal(t, []string{"function", "kernel_stack", "mine", "print"}, names(t, g, "events/ftrace"))
		g.write("events/ftrace/mine/enable", "1")
	}
}

func TestClocks(t *testing.T) {
	g := newGuest(t, "6.1", 1, tracing.Options{})
	require.Equal(t, "[local] global counter uptime perf mono mono_raw boot tai x86-tsc\n", g.read("trace_clock"))
	g.write("trace_marker", "gone")
	g.write("trace_clock", "counter\n")
	g.write("trace_marker", "x")
	require.Contains(t, g.lines()[0], ".....            1: tracing_mark_write: x")
	require.Contains(t, g.read("per_cpu/cpu0/stats"), "oldest event ts: 1\nnow ts: 2\n")
	require.ErrorIs(t, g.Write("trace_clock", "nosuch", true), errno.EINVAL)

	g.call("spin", 20_000_000) // 20 ms
	g.write("trace_clock", "uptime")
	g.write("trace_marker", "x")
	require.Contains(t, g.lines()[0], fmt.Sprintf("..... %12d: tracing_mark_write: x", g.l.Machine.Now()/4e6*4/10))
	g.write("trace_clock", "x86-tsc")
	g.write("trace_marker", "x")
	require.Regexp(t, `\.\.\.\.\.     \d{8}: tracing_mark_write: x`, g.lines()[0])
	require.Regexp(t, `now ts: \d{8}\n`, g.read("per_cpu/cpu0/stats"))
	require.Equal(t, "[local] global counter uptime perf mono mono_raw boot x86-tsc\n", newGuest(t, "5.10", 1, tracing.Options{}).read("trace_clock"))
	require.Equal(t, "[local] global counter uptime perf mono mono_raw x86-tsc\n", newGuest(t, "4.4", 1, tracing.Options{}).read("trace_clock"))
}

func TestTraceWithoutItsFlags(t *testing.T) {
	g := newGuest(t, "6.1", 1, tracing.Options{})
	g.write("options/irq-info", "0")
	g.write("trace_marker", "x")
	require.Regexp(t, `^# tracer: nop
#
# entries-in-buffer/entries-written: 1/1   #P:1
#
#           TASK-PID     CPU#     TIMESTAMP  FUNCTION
#              \| \|         \|         \|         \|
            init-1       \[000\]      0\.\d{6}: tracing_mark_write: x
$`, g.read("trace"))
}

func TestPauseOnTrace(t *testing.T) {
	g := newGuest(t, "6.1", 1, tracing.Options{})
	g.write("options/pause-on-trace", "1")
	g.write("trace_marker", "0")
	h, err := g.OpenFile("trace", os.O_RDONLY)
	require.NoError(t, err)
	require.ErrorIs(t, g.Write("trace_marker", "x", true), errno.EBADF)
	require.Equal(t, "0\n", g.read("tracing_on"))
	require.NoError(t, h.Close())
	require.NoError(t, h.Close())
	g.write("trace_marker", "y")
	require.Equal(t, "1\n", g.read("tracing_on"))
	require.Len(t, g.lines(), 2)
	g.write("trace_options", "nopause-on-trace")
	h, err = g.OpenFile("trace", os.O_RDONLY)
	require.NoError(t, err)
	g.write("trace_marker", "z")
	require.NoError(t, h.Close())
	require.Len(t, g.lines(), 3)
}

// What a kernel prints of markers: up to a NUL, and the newline that is there.
func TestMarkersAsWritten(t *testing.T) {
	g := newGuest(t, "6.1", 1, tracing.Options{})
	for _, s := range []string{"a\nb", "a\x00b", "\n", "c"} {
		g.write("trace_marker", s)
	}
	who := regexp.MustCompile(` +init-1 +\[000\] \.\.\.\.\. +\d\.\d{6}: tracing_mark_write: `)
	require.True(t, strings.HasSuffix(who.ReplaceAllString(g.read("trace"), "T:"), "\nT:a\nb\nT:aT:\nT:c\n"), g.read("trace"))
	h, err := g.OpenFile("trace_marker", os.O_WRONLY)
	require.NoError(t, err)
	n, err := h.WriteAt(make([]byte, 2000), 0)
	require.NoError(t, err)
	require.Equal(t, 1024, n)
}

// A pipe whose reader has seen the end, tracing being off, is closed as any other.
func TestClosedPipeIsNoMoreRead(t *testing.T) {
	g := newGuest(t, "6.1", 1, tracing.Options{})
	g.write("trace_marker", "x")
	g.write("tracing_on", "0")
	h, err := g.OpenFile("trace_pipe", os.O_RDONLY)
	require.NoError(t, err)
	b := make([]byte, 1000)
	n, err := h.ReadAt(context.Background(), b, 0)
	require.NoError(t, err)
	require.NotZero(t, n)
	n, err = h.ReadAt(context.Background(), b, 0)
	require.NoError(t, err)
	require.Zero(t, n, "the end")
	require.NoError(t, h.Close())
	_, err = h.ReadAt(context.Background(), b, 0)
	require.ErrorIs(t, err, errno.EBADF)
}
