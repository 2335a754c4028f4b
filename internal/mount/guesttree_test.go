//go:build linux

package mount

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/errno"
	"kprobelab/internal/integration/dumps/runs"
	"kprobelab/tracing"
)

// booted has the tracing files of a booted kernel.
func booted(t *testing.T, name string) *Live {
	t.Helper()
	img, err := kprobelab.OpenImage(runs.File(t, name), nil)
	require.NoError(t, err)
	l, err := kprobelab.New(img, &kprobelab.Options{Budget: 20_000_000_000, Optimize: true})
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	f, err := NewLive(l, func(line string) { t.Log(line) })
	require.NoError(t, err)
	t.Cleanup(f.Close)
	require.NotNil(t, f.kernel)
	return f
}

// set writes a file as echo does, and returns the error of any of its system calls.
func (f *Live) set(name, text string) error { return f.setWith(name, text, os.O_TRUNC) }

func (f *Live) setWith(name, text string, flag int) error {
	h, err := f.Tree().OpenFile(name, os.O_WRONLY|flag)
	if err != nil {
		return err
	}
	_, err = h.WriteAt([]byte(text), 0)
	if fl, ok := h.(interface{ Flush() error }); ok && err == nil {
		err = fl.Flush()
	}
	if failed := h.Close(); err == nil {
		err = failed
	}
	return err
}

// calls are made in the guest, as init.
func (f *Live) calls(t *testing.T, lines ...string) {
	t.Helper()
	require.NoError(t, f.write("kprobelab/call", strings.Join(lines, "\n")))
}

const openVersion = `openat(AT_FDCWD, "/proc/version", O_RDONLY)`

// What a kernel's tracing directory has works on a dump, for the kernel does it: static events beside kprobe
// events in one trace, hist triggers, options, commands of filters, the function graph and the profiler.
func TestABootedKernelServesItsOwnTracing(t *testing.T) {
	for _, kernel := range []string{"6.1", "6.12", "newest"} {
		t.Run(kernel, func(t *testing.T) {
			f := booted(t, kernel)
			for _, w := range [][2]string{
				{"trace_options", "event-fork"}, {"trace_options", "record-cmd"}, {"trace_options", "nohash-ptr"},
				{"kprobe_events", "p:k/e do_sys_openat2 name=+0($arg2):ustring"},
				{"events/k/e/trigger", "hist:keys=common_pid"},
				{"events/k/e/enable", "1"}, {"events/syscalls/sys_enter_openat/enable", "1"},
				{"set_event_pid", "1"},
			} {
				require.NoError(t, f.setWith(w[0], w[1]+"\n", os.O_APPEND), "%s: %s", w[0], w[1])
			}
			f.calls(t, openVersion)
			text := f.read(t, "trace")
			require.Regexp(t, `(?m)^ +(init|<...>)-1 .*: sys_openat\(`, text)
			require.Contains(t, text, `e: (do_sys_openat2+`)
			require.Contains(t, text, `name="/proc/version"`)
			require.Equal(t, 2, strings.Count(text, ">-1 ")+strings.Count(text, "init-1 "), "what serves the files is not recorded: %s", text)
			require.Contains(t, f.read(t, "events/k/e/hist"), "hitcount:")
			require.Contains(t, f.read(t, "kprobes/list"), "do_sys_openat2")

			require.NoError(t, f.set("events/enable", "0\n"))
			require.NoError(t, f.set("set_graph_function", "do_sys_openat2\n"))
			require.NoError(t, f.set("current_tracer", "function_graph\n"))
			f.calls(t, openVersion)
			require.NoError(t, f.set("tracing_on", "0\n"))
			// The code that serves files does not leave the graph inside of a function: it begins
			// at the chosen function.
			require.Regexp(t, `(?m)^ \d+\) .*\|  do_sys_openat2\(.*\) \{`, f.read(t, "trace"))
			// From 6.11 on the kernel keeps that it is inside of a function in the task's shadow stack, which is not put back.
			if kernel == "6.1" {
				require.NotContains(t, f.read(t, "trace"), "x64_sys_call")
			}
			require.NoError(t, f.set("current_tracer", "nop\n"))
			require.NoError(t, f.set("tracing_on", "1\n"))

			require.NoError(t, f.set("set_ftrace_filter", "do_sys_openat2\n"))
			if _, err := f.Tree().Stat("function_profile_enabled"); err == nil { // CONFIG_FUNCTION_PROFILER
				require.NoError(t, f.set("function_profile_enabled", "1\n"))
				f.calls(t, openVersion)
				require.NoError(t, f.set("function_profile_enabled", "0\n"))
				require.Regexp(t, `do_sys_openat2 +\d+`, f.read(t, "trace_stat/function0"))
			}

			require.NoError(t, f.setWith("set_ftrace_filter", "do_sys_openat2:traceoff\n", os.O_APPEND))
			require.Contains(t, f.read(t, "set_ftrace_filter"), "do_sys_openat2:traceoff:unlimited")
			f.calls(t, openVersion)
			require.Equal(t, "0\n", f.read(t, "tracing_on"))
		})
	}
}

// A refusal has the kernel's errno and its message.
func TestABootedKernelRefuses(t *testing.T) {
	f := booted(t, "6.12")
	for _, c := range []struct {
		file, text string
		want       errno.Errno
	}{
		{"kprobe_events", "p:k/a vfs_read+1", errno.EILSEQ},
		{"kprobe_events", "p:k/b vfs_read x=%nox", errno.EINVAL},
		{"current_tracer", "nosuch", errno.EINVAL},
		{"events/sched/sched_switch/filter", "nofield == 1", errno.EINVAL},
		{"events/sched/sched_switch/trigger", "hist:keys=nofield", errno.EINVAL},
		{"nosuch", "x", errno.ENOENT},
		{"events", "x", errno.EISDIR},
		{"README", "x", errno.EINVAL},
	} {
		err := f.setWith(c.file, c.text+"\n", 0)
		if c.file == "README" {
			require.Error(t, err)
			continue
		}
		require.ErrorIs(t, err, c.want, "%s: %s", c.file, c.text)
	}
	require.Contains(t, f.read(t, "error_log"), "Couldn't find field")
	_, err := f.Tree().Stat("../tracing/trace")
	require.ErrorIs(t, err, fs.ErrInvalid)
	_, err = f.Tree().OpenFile("/etc/passwd", os.O_RDONLY)
	require.ErrorIs(t, err, fs.ErrInvalid)
}

// A list of functions comes in pieces that end within a word.
func TestAFilterInPieces(t *testing.T) {
	f := booted(t, "6.12")
	h, err := f.Tree().OpenFile("set_ftrace_filter", os.O_WRONLY|os.O_TRUNC)
	require.NoError(t, err)
	for _, piece := range []string{"vfs_read vfs_w", "rite", "\nvfs_op", "en"} {
		n, err := h.WriteAt([]byte(piece), 0)
		require.NoError(t, err)
		require.Equal(t, len(piece), n)
	}
	require.NoError(t, h.(interface{ Flush() error }).Flush())
	require.ElementsMatch(t, []string{"vfs_read", "vfs_write", "vfs_open"}, strings.Fields(f.read(t, "set_ftrace_filter")))
	require.NoError(t, h.Close())
	// Opening with truncation alone is a change, too.
	h, err = f.Tree().OpenFile("set_ftrace_filter", os.O_WRONLY|os.O_TRUNC)
	require.NoError(t, err)
	require.NoError(t, h.(interface{ Flush() error }).Flush())
	require.Contains(t, f.read(t, "set_ftrace_filter"), "all functions enabled")
	require.NoError(t, h.Close())
}

// A read of trace_pipe waits until something is recorded, and the guest goes on meanwhile.
func TestAPipeOfABootedKernelWaits(t *testing.T) {
	f := booted(t, "6.1")
	h, err := f.Tree().OpenFile("trace_pipe", os.O_RDONLY)
	require.NoError(t, err)
	b := make([]byte, 4096)
	_, err = h.ReadAt(tracing.NonBlocking(context.Background()), b, 0)
	require.ErrorIs(t, err, errno.EAGAIN)
	read := make(chan string)
	go func() {
		n, err := h.ReadAt(context.Background(), b, 0)
		read <- fmt.Sprint(string(b[:n]), err)
	}()
	require.NoError(t, f.set("trace_marker", "hello\n"))
	require.Contains(t, <-read, "tracing_mark_write: hello")
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, err := h.ReadAt(ctx, b, 0)
		read <- fmt.Sprint(err)
	}()
	cancel()
	require.Equal(t, context.Canceled.Error(), <-read)
	go func() {
		_, err := h.ReadAt(context.Background(), b, 0)
		read <- fmt.Sprint(err)
	}()
	require.NoError(t, h.Close())
	require.Contains(t, <-read, errno.EBADF.Error())
}

// An instance is made and removed, and its files are there.
func TestInstancesOfABootedKernel(t *testing.T) {
	f := booted(t, "6.1")
	d := f.Tree().(Directories)
	require.NoError(t, d.Mkdir("instances/one"))
	require.ErrorIs(t, d.Mkdir("instances/one"), errno.EEXIST)
	require.NoError(t, f.set("instances/one/events/syscalls/sys_enter_openat/enable", "1\n"))
	f.calls(t, openVersion)
	require.Equal(t, 1, strings.Count(f.read(t, "instances/one/trace"), "sys_openat("))
	require.NotContains(t, f.read(t, "trace"), "sys_openat(")
	list, err := f.Tree().ReadDir("instances")
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.NoError(t, d.Rmdir("instances/one"))
	_, err = f.Tree().Stat("instances/one")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// A reader does not see its own reading, whatever is probed.
func TestReadingIsNotRecorded(t *testing.T) {
	f := booted(t, "6.1")
	require.NoError(t, f.set("kprobe_events", "p:k/r vfs_read\n"))
	require.NoError(t, f.set("events/k/r/enable", "1\n"))
	f.calls(t, openVersion, "read(3, buf[4], 4)")
	first := f.read(t, "trace")
	require.Equal(t, 1, strings.Count(first, "r: (vfs_read"))
	require.Equal(t, first, f.read(t, "trace"))
	require.Equal(t, "1\n", f.read(t, "tracing_on"))
}

// However many files are opened, init has room.
func TestOpenFilesOfABootedKernelAreBounded(t *testing.T) {
	f := booted(t, "6.1")
	var list []tracing.Handle
	for {
		h, err := f.Tree().OpenFile("tracing_on", os.O_RDONLY)
		if err != nil {
			require.ErrorIs(t, err, errno.EMFILE)
			break
		}
		list = append(list, h)
		require.LessOrEqual(t, len(list), guestOpen)
	}
	require.Len(t, list, guestOpen)
	for _, h := range list {
		require.NoError(t, h.Close())
	}
	require.Equal(t, "1\n", f.read(t, "tracing_on"))
}

// A shell at the mount of a dump.
func TestShellAtTheMountOfADump(t *testing.T) {
	f := booted(t, "6.12")
	m := mountOf(t, f.Tree(), f.Guest())
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-ec", `cd "$0"
		echo do_sys_openat2 > set_ftrace_filter
		echo function > current_tracer
		echo 'openat(AT_FDCWD, "/proc/version", O_RDONLY)' > kprobelab/call
		cat kprobelab/call
		echo nop > current_tracer
		cat available_filter_functions | wc -l > "$OUT"
		echo 1 > events/syscalls/sys_enter_close/enable
		cat trace_pipe > "$OUT.pipe" &
		echo 'close(3)' > kprobelab/call
		until grep -q sys_close "$OUT.pipe"; do :; done
		kill $!
		wait $! || :
		ls events | grep -c sched
		test -d events/sched`, m.Dir())
	out := filepath.Join(t.TempDir(), "out")
	cmd.Env = append(os.Environ(), "OUT="+out)
	text, err := cmd.CombinedOutput()
	require.NoError(t, err, string(text))
	require.Contains(t, string(text), "O_RDONLY) = 3\n")
	all, err := fs.ReadFile(f.Tree(), "available_filter_functions")
	require.NoError(t, err)
	n, err := os.ReadFile(out)
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintln(strings.Count(string(all), "\n")), string(n))
}
