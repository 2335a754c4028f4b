package tracing_test

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"kprobelab/errno"
	"kprobelab/machine"
	"kprobelab/tracing"
)

func TestTreeIsAFileSystem(t *testing.T) {
	g := newGuest(t, "6.1", 2, tracing.Options{})
	g.define("p:my/e leaf x=%di", "r leaf")
	files := []string{
		"README", "kprobe_events", "dynamic_events", "kprobe_profile", "error_log", "trace", "trace_pipe",
		"events/my/e/format", "events/kprobes/r_leaf_0/id", "per_cpu/cpu1/stats", "kprobes/list",
	}
	var open []string
	require.NoError(t, fs.WalkDir(g, ".", func(path string, d fs.DirEntry, err error) error {
		require.NoError(t, err, path)
		open = append(open, path)
		return nil
	}))
	for _, f := range files {
		require.Contains(t, open, f)
	}
	require.NoError(t, fstest.TestFS(readable{g}, files...))
}

// readable is the tree without unreadable files.
type readable struct{ fs.FS }

func (r readable) Open(name string) (fs.File, error) {
	f, err := r.FS.Open(name)
	if d, ok := f.(fs.ReadDirFile); ok {
		list, err := d.ReadDir(-1)
		return &listed{d, slices.DeleteFunc(list, func(e fs.DirEntry) bool { return e.Name() == "trace_marker" })}, err
	}
	return f, err
}

type listed struct {
	fs.ReadDirFile
	list []fs.DirEntry
}

func (l *listed) ReadDir(n int) ([]fs.DirEntry, error) {
	if n > 0 && len(l.list) == 0 {
		return nil, io.EOF
	}
	if n <= 0 || n > len(l.list) {
		n = len(l.list)
	}
	list := l.list[:n]
	l.list = l.list[n:]
	return list, nil
}

func TestOpenErrors(t *testing.T) {
	g := newGuest(t, "6.1", 1, tracing.Options{})
	for _, c := range []struct {
		name string
		flag int
		want errno.Errno
	}{
		{"nosuch", os.O_RDONLY, errno.ENOENT},
		{"events/nosuch/enable", os.O_WRONLY, errno.ENOENT},
		{"trace/x", os.O_RDONLY, errno.ENOTDIR},
		{"events", os.O_RDONLY, errno.EISDIR},
		{"kprobe_profile", os.O_WRONLY, errno.EACCES},
		{"trace_marker", os.O_RDONLY, errno.EACCES},
		{"../x", os.O_RDONLY, errno.EINVAL},
	} {
		_, err := g.OpenFile(c.name, c.flag)
		require.ErrorIs(t, err, c.want, c.name)
	}
	h, err := g.OpenFile("trace", os.O_RDONLY)
	require.NoError(t, err)
	_, err = h.WriteAt([]byte("x"), 0)
	require.ErrorIs(t, err, errno.EBADF)
}

func TestSimpleFiles(t *testing.T) {
	g := newGuest(t, "6.1", 2, tracing.Options{})
	require.Equal(t, "1\n", g.read("tracing_on"))
	g.write("tracing_on", "0\n")
	require.Equal(t, "0\n", g.read("tracing_on"))
	require.ErrorIs(t, g.Write("trace_marker", "x", true), errno.EBADF)
	g.write("tracing_on", "1")
	require.Equal(t, "nop\n", g.read("current_tracer"))
	require.ErrorIs(t, g.Write("current_tracer", "function_graph", true), errno.EINVAL)
	require.Equal(t, "1410\n", g.read("buffer_size_kb"))
	g.write("buffer_size_kb", "64")
	require.Equal(t, "67\n", g.read("buffer_size_kb"), "in whole pages, less their heads")
	require.ErrorIs(t, g.Write("buffer_size_kb", "0", true), errno.EINVAL)
	require.ErrorIs(t, g.Write("tracing_on", "x", true), errno.EINVAL)
	g.write("trace_marker", "hello")
	require.Regexp(t, `^            init-1       \[000\] \.\.\.\.\.     0\.\d{6}: tracing_mark_write: hello$`, g.lines()[0])
	g.write("kprobes/enabled", "0")
	require.Equal(t, "0\n", g.read("kprobes/enabled"))
	require.NotEmpty(t, g.read("kprobes/blacklist"))
	require.Contains(t, g.read("README"), "r[maxactive][:[<group>/][<event>]] <place> [<args>]\n")
	require.Contains(t, g.read("README"), "-:[<group>/][<event>]\n")
}

func TestEnableFiles(t *testing.T) {
	g := newGuest(t, "6.1", 1, tracing.Options{})
	require.Equal(t, "?\n", g.read("events/enable"))
	g.write("kprobe_events", "p:a/x leaf\np:a/y leaf2\np:b/x fib")
	require.Equal(t, "b:x\na:y\na:x\n", g.read("available_events"))
	require.Equal(t, "0\n", g.read("events/a/enable"))
	g.write("events/a/x/enable", "1\n")
	require.Equal(t, "X\n", g.read("events/a/enable"))
	require.Equal(t, "X\n", g.read("events/enable"))
	require.Equal(t, "0\n", g.read("events/b/enable"))
	require.Equal(t, "a:x\n", g.read("set_event"))
	g.write("set_event", "a:* !x\n")
	require.Equal(t, "a:y\n", g.read("set_event"))
	require.ErrorIs(t, g.Write("set_event", "nosuch", true), errno.EINVAL)
	require.NoError(t, g.Write("set_event", "b", false))
	require.Equal(t, "b:x\n", g.read("set_event"), "truncation disables all")
	for _, bad := range []string{"2", "", "x", "1 ", "-1"} {
		require.ErrorIs(t, g.Write("events/a/x/enable", bad, true), errno.EINVAL, bad)
	}
	require.ErrorIs(t, g.Write("kprobe_events", "", false), errno.EBUSY)
	require.Equal(t, 3, strings.Count(g.read("kprobe_events"), "\n"), "nothing is deleted")
}

func TestDeletion(t *testing.T) {
	g := newGuest(t, "6.1", 1, tracing.Options{})
	g.write("kprobe_events", "p:a/x leaf v=%di w=%si\np:a/y leaf2\np:b/x fib")
	require.ErrorIs(t, g.Write("kprobe_events", "-:a/x leaf v=%si", true), errno.ENOENT)
	require.ErrorIs(t, g.Write("kprobe_events", "!p:a/x leaf", true), errno.EINVAL, "that is dynamic_events'")
	g.write("kprobe_events", "-:a/x leaf v=%di")
	g.write("dynamic_events", "!p:a/y leaf2")
	require.Equal(t, "p:b/x fib\n", g.read("dynamic_events"))
	g.write("kprobe_events", "p:b/y leaf")
	g.write("kprobe_events", "-:b/")
	require.Empty(t, g.read("kprobe_events"))
	require.ErrorIs(t, g.Write("kprobe_events", "-:b/", true), errno.ENOENT)

	old := newGuest(t, "4.4", 1, tracing.Options{})
	old.write("kprobe_events", "p:x leaf")
	old.write("kprobe_events", "p:x leaf2")
	require.Equal(t, "p:kprobes/x leaf2\n", old.read("kprobe_events"), "the same name replaced the event")
	require.ErrorIs(t, old.Write("kprobe_events", "-:a/x", true), errno.ENOENT)
	old.write("kprobe_events", "-:x")
	require.Empty(t, old.read("kprobe_events"))
	_, err := old.Stat("error_log")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// What the kernel's selftests clear_select_events, generic_clear_event and
// test_duplicates ask of kprobe events; they need other events besides.
func TestDynamicEventsGoAndExclude(t *testing.T) {
	g := newGuest(t, "6.1", 1, tracing.Options{})
	setup := func() {
		g.write("dynamic_events", "p:myevent1 kernel_clone\n")
		g.write("dynamic_events", "r:myevent2 kernel_clone\n")
		require.Regexp(t, `^p:kprobes/myevent1 kernel_clone\nr\d*:kprobes/myevent2 kernel_clone\n$`, g.read("dynamic_events"))
	}
	setup()
	require.NoError(t, g.Write("kprobe_events", "\n", false))
	require.Empty(t, g.read("dynamic_events"))
	setup()
	g.write("dynamic_events", "!p:myevent1 kernel_clone\n")
	require.NotContains(t, g.read("dynamic_events"), "myevent1")
	require.Contains(t, g.read("dynamic_events"), "myevent2")
	g.write("dynamic_events", "!r:myevent2 kernel_clone\n")
	require.Empty(t, g.read("dynamic_events"))

	g.write("dynamic_events", "p:kgroup/kevent vfs_open file=+0($arg2)")
	require.ErrorIs(t, g.Write("dynamic_events", "p:kgroup/kevent vfs_open file=+0($arg2)", true), errno.EEXIST)
	require.ErrorIs(t, g.Write("dynamic_events", "r:kgroup/kevent vfs_open", true), errno.EEXIST)
	g.write("dynamic_events", "-:kgroup/kevent")
	require.Empty(t, g.read("dynamic_events"))
}

// What Debian's 5.10 makes of addresses that no symbol has: a return probe waits
// for a module that may bring them, and the highest are error numbers.
func TestAddressesOfNobody(t *testing.T) {
	g := newGuest(t, "5.10", 1, tracing.Options{})
	g.write("kprobe_events", "r:x 0x123")
	require.Equal(t, "r:kprobes/x 0x0000000000000123\n", g.read("kprobe_events"))
	require.ErrorIs(t, g.Write("kprobe_events", "p:y 0x123", true), errno.EINVAL)
	require.ErrorIs(t, g.Write("kprobe_events", "p:y 0xffffffffffffffff", true), errno.EPERM)
	require.ErrorIs(t, g.Write("kprobe_events", "r:y 0xfffffffffffffff4", true), errno.ENOMEM)
	g = newGuest(t, "6.1", 1, tracing.Options{})
	g.write("kprobe_events", "p:y 0xffffffffffffffff") // 6.1 waits with every probe
}

// Rule: uprobe events have files of their own, and no program to be hit in; kprobe_events does not
// list them, and a name belongs to events of one kind.
func TestUprobeEvents(t *testing.T) {
	g := newGuest(t, "6.1", 1, tracing.Options{Files: func(name string) (int64, error) {
		switch name {
		case "/bin/sh", "/bin/a:b":
			return 0x1000, nil
		case "/sys":
			return 0, errno.EINVAL
		}
		return 0, errno.ENOENT
	}})
	g.write("kprobe_events", "p:mine/k leaf")
	g.write("uprobe_events", "p /bin/sh:0x10 %ax\nr:mine/u /bin/sh:0x20 $retval\np:w /bin/a:b:0x30(0x8)")
	require.Equal(t, "p:uprobes/p_sh_0x10 /bin/sh:0x0000000000000010 arg1=%ax\nr:mine/u /bin/sh:0x0000000000000020 arg1=$retval\n"+
		"p:uprobes/w /bin/a:b:0x0000000000000030(0x8)\n", g.read("uprobe_events"))
	require.Equal(t, "p:mine/k leaf\n", g.read("kprobe_events"))
	require.Equal(t, 4, strings.Count(g.read("dynamic_events"), "\n"))
	require.Contains(t, g.read("events/uprobes/p_sh_0x10/format"), `print fmt: "(%lx) arg1=0x%Lx", REC->__probe_ip, REC->arg1`)
	require.Equal(t, fmt.Sprintf("  /bin/sh %-44s %15d\n", "p_sh_0x10", 0), firstLine(g.read("uprobe_profile")))
	require.Equal(t, 1, strings.Count(g.read("kprobe_profile"), "\n"))

	for line, want := range map[string]errno.Errno{
		"p leaf":                    errno.EINVAL,
		"p /nosuch:0x10":            errno.ENOENT,
		"p /sys:0x10":               errno.EINVAL,
		"p:mine/k /bin/sh:0x10":     errno.EEXIST,
		"p:mine/u /bin/sh:0x20":     errno.EEXIST,
		"p:x /bin/sh:0x10(0x8)":     errno.EINVAL,
		"-:mine/k":                  errno.ENOENT,
		"p:uprobes/w /bin/sh:0x10x": errno.EINVAL,
	} {
		require.ErrorIs(t, g.Write("uprobe_events", line, true), want, line)
	}
	g.write("uprobe_events", "p:named /bin/sh:0x40 %ax:symstr %ax:symbol")
	newer := newGuest(t, "6.12", 1, tracing.Options{Files: func(string) (int64, error) { return 0x1000, nil }})
	for _, typ := range []string{"symbol", "symstr"} {
		require.ErrorIs(t, newer.Write("uprobe_events", "p /bin/sh:0x40 %ax:"+typ, true), errno.EINVAL)
		require.Contains(t, newer.read("error_log"), "trace_uprobe: error: Unknown type is specified\n  Command: p /bin/sh:0x40 %ax:"+typ)
	}
	require.ErrorIs(t, g.Write("kprobe_events", "p:mine/u leaf", true), errno.EEXIST)
	require.ErrorIs(t, g.Write("kprobe_events", "-:mine/u", true), errno.ENOENT)
	require.Contains(t, g.read("error_log"), "trace_uprobe: error: Failed to find the given file\n  Command: p /nosuch:0x10\n")

	g.write("uprobe_events", "p:past /bin/sh:0x1001")
	require.ErrorIs(t, g.Write("events/uprobes/past/enable", "1", true), errno.EINVAL)
	g.write("events/uprobes/w/enable", "1")
	require.ErrorIs(t, g.Write("uprobe_events", "", false), errno.EBUSY)
	g.write("events/uprobes/w/enable", "0")
	require.NoError(t, g.Write("uprobe_events", "-:w\n", true))
	require.NoError(t, g.Write("uprobe_events", "", false))
	require.Equal(t, "p:mine/k leaf\n", g.read("dynamic_events"))

}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line + "\n"
}

func TestErrorLogKeepsEight(t *testing.T) {
	g := newGuest(t, "6.1", 1, tracing.Options{})
	for range 10 {
		require.Error(t, g.Write("kprobe_events", "p:1 leaf", true))
	}
	require.Equal(t, 8, strings.Count(g.read("error_log"), "trace_kprobe: error: "))
	require.NoError(t, g.Write("error_log", "", false))
	require.Empty(t, g.read("error_log"))
}

func TestFilters(t *testing.T) {
	g := newGuest(t, "6.1", 1, tracing.Options{})
	g.define("p:e leaf x=%di")
	require.Equal(t, "none\n", g.read("events/kprobes/e/filter"))
	g.write("events/kprobes/e/filter", "x > 1 && x < 4\n")
	require.Equal(t, "x > 1 && x < 4\n", g.read("events/kprobes/e/filter"))
	for i := range 6 {
		g.call("leaf", i)
	}
	require.Len(t, g.lines(), 2)
	require.Contains(t, g.read("kprobe_profile"), " 6               0\n", "hits count, whatever the filter says")
	require.ErrorIs(t, g.Write("events/kprobes/e/filter", "y > 1", true), errno.EINVAL)
	require.Regexp(t, `^y > 1\n *\^\nparse_error: Field not found\n\n$`, g.read("events/kprobes/e/filter"))
	require.Regexp(t, `\] event filter parse error: error: Field not found\n  Command: y > 1\n {13}\^\n$`, g.read("error_log"))
	g.write("events/kprobes/filter", "x == 5")
	require.Equal(t, "x == 5\n", g.read("events/kprobes/e/filter"))
	g.write("events/kprobes/e/filter", "0")
	require.Equal(t, "none\n", g.read("events/kprobes/e/filter"))
}

func TestTriggers(t *testing.T) {
	g := newGuest(t, "6.1", 1, tracing.Options{})
	g.write("kprobe_events", "p:a leaf x=%di\np:b leaf2")
	g.write("events/kprobes/a/trigger", "enable_event:kprobes:b:1 if x == 2\n")
	require.Equal(t, "0*\n", g.read("events/kprobes/a/enable"), "soft mode")
	require.Equal(t, "0*\n", g.read("events/kprobes/b/enable"))
	require.ErrorIs(t, g.Write("kprobe_events", "", false), errno.EBUSY)
	g.call("leaf", 1)
	g.call("leaf2", 1, 1)
	require.Empty(t, g.lines())
	g.call("leaf", 2)
	require.Equal(t, "1*\n", g.read("events/kprobes/b/enable"))
	g.call("leaf2", 1, 1)
	require.Len(t, g.lines(), 1)
	require.ErrorIs(t, g.Write("events/kprobes/a/trigger", "nosuch", true), errno.EINVAL)
	g.write("events/kprobes/a/trigger", "!enable_event:kprobes:b")
	require.Equal(t, "0\n", g.read("events/kprobes/a/enable"))

	g.write("events/kprobes/a/enable", "1")
	g.write("events/kprobes/a/trigger", "traceoff")
	g.call("leaf", 3)
	require.Equal(t, "0\n", g.read("tracing_on"))
	require.Len(t, g.lines(), 2, "the record of the hit that did it is there")
	require.NoError(t, g.Write("events/kprobes/a/trigger", "", false), "truncation removes nothing")
	require.Equal(t, "traceoff:unlimited\n", g.read("events/kprobes/a/trigger"))
	g.write("events/kprobes/a/trigger", "!traceoff")
	require.Equal(t, "1\n", g.read("events/kprobes/a/enable"))
	require.ErrorIs(t, g.Write("kprobe_events", "", false), errno.EBUSY, "what a trigger enabled stays so")
	g.write("events/enable", "0")
	require.NoError(t, g.Write("kprobe_events", "", false))
}

func TestInstances(t *testing.T) {
	g := newGuest(t, "6.1", 1, tracing.Options{})
	require.NoError(t, g.Mkdir("instances/foo"))
	require.ErrorIs(t, g.Mkdir("instances/foo"), errno.EEXIST)
	require.ErrorIs(t, g.Mkdir("events/foo"), errno.EPERM)
	g.write("kprobe_events", "p:e leaf")
	g.write("instances/foo/events/kprobes/e/enable", "1")
	require.Equal(t, "0\n", g.read("events/kprobes/e/enable"))
	g.call("leaf", 1)
	require.Empty(t, g.lines())
	require.Contains(t, g.read("instances/foo/trace"), ": e: (leaf+0x0/")
	require.ErrorIs(t, g.Write("kprobe_events", "", false), errno.EBUSY)
	require.NoError(t, g.Rmdir("instances/foo"))
	require.NoError(t, g.Write("kprobe_events", "", false))
	require.ErrorIs(t, g.Rmdir("instances/foo"), fs.ErrNotExist)
}

func TestPipeWaitsAndConsumes(t *testing.T) {
	g := newGuest(t, "6.1", 1, tracing.Options{})
	g.define("p:e leaf x=%di")
	h, err := g.OpenFile("trace_pipe", os.O_RDONLY)
	require.NoError(t, err)
	got := make(chan string)
	go func() {
		var all string
		b := make([]byte, 16) // lines are longer
		for strings.Count(all, "\n") < 2 {
			n, err := h.ReadAt(context.Background(), b, 0)
			if err != nil {
				all += err.Error()
				break
			}
			all += string(b[:n])
		}
		got <- all
	}()
	for i := range 2 {
		g.Do(func() { g.call("leaf", i) })
	}
	text := <-got
	require.Regexp(t, `^ .* x=0x0\n .* x=0x1\n$`, text)
	require.Empty(t, g.lines(), "what was read is gone")

	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	_, err = h.ReadAt(ctx, make([]byte, 10), 0)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	go func() { _ = h.Close() }()
	_, err = h.ReadAt(context.Background(), make([]byte, 10), 0)
	require.ErrorIs(t, err, errno.EBADF)
}

func TestPipeEndsWhenTracingIsOff(t *testing.T) {
	g := newGuest(t, "6.1", 1, tracing.Options{})
	g.define("p:e leaf x=%di")
	g.call("leaf", 1)
	h, err := g.OpenFile("trace_pipe", os.O_RDONLY)
	require.NoError(t, err)
	b := make([]byte, 1000)
	n, err := h.ReadAt(context.Background(), b, 0)
	require.NoError(t, err)
	require.NotZero(t, n)
	g.write("tracing_on", "0")
	n, err = h.ReadAt(context.Background(), b, int64(n))
	require.NoError(t, err)
	require.Zero(t, n)
}

func TestLongLinesAndChunks(t *testing.T) {
	g := newGuest(t, "6.1", 1, tracing.Options{})
	// The line crosses the end of the kernel's chunk of 4095 bytes.
	lines := strings.Repeat("# a comment\n", 340) + "p:a leaf v=%di # after\n\n \np:b leaf2"
	g.write("kprobe_events", lines)
	require.Equal(t, "p:kprobes/a leaf v=%di\np:kprobes/b leaf2\n", g.read("kprobe_events"))

	err := g.Write("kprobe_events", strings.Repeat("x", 5000), true)
	require.ErrorIs(t, err, errno.EINVAL)
	require.Equal(t, []string{"Line length is too long: Should be less than 4094"}, g.log)
	require.ErrorIs(t, g.Write("kprobe_events", "p:c fib\x00\n", true), errno.EINVAL)

	h, err := g.OpenFile("kprobe_events", os.O_WRONLY|os.O_APPEND)
	require.NoError(t, err)
	_, err = h.WriteAt([]byte("p:d "), 0)
	require.ErrorIs(t, err, errno.EINVAL, "each write is lines of its own")
	_, err = h.WriteAt([]byte("p:d fib\np:1 leaf\np:f leaf"), 4)
	require.ErrorIs(t, err, errno.EINVAL)
	require.Contains(t, g.read("kprobe_events"), "p:kprobes/d fib\n", "lines before the one that failed stay")
	require.NotContains(t, g.read("kprobe_events"), "p:kprobes/f")
}

func TestSameRunSameTrace(t *testing.T) {
	run := func() string {
		g := newGuest(t, "6.1", 2, tracing.Options{})
		g.define("p:e leaf x=%di", "r:r fib $retval:s32")
		_, err := g.l.Machine.Go("a", fibs()...)
		require.NoError(t, err)
		_, err = g.l.Machine.Go("b", fibs()...)
		require.NoError(t, err)
		require.NoError(t, g.l.Machine.Run())
		return g.read("trace")
	}
	first := run()
	require.Equal(t, first, run())
	require.Contains(t, first, "task-1-2")
	require.Contains(t, first, "[001]")
}

func fibs() []machine.Invocation {
	return []machine.Invocation{machine.Invoke("fib", 6), machine.Invoke("leaf", 3), machine.Invoke("fib", 7)}
}

// Rule: to 5.1 a place inside an instruction is EINVAL, with a line in the kernel's log; to
// 4.19 an argument's unknown symbol is 0.
func TestDefinitionsOfOldReleases(t *testing.T) {
	for release, c := range map[string]struct{ inside, unknown error }{
		"4.19": {errno.EINVAL, nil}, "5.4": {errno.EILSEQ, errno.ENOENT},
	} {
		g := newGuest(t, release, 1, tracing.Options{})
		require.ErrorIs(t, g.Write("kprobe_events", "p:e leaf+1", true), c.inside, release)
		require.Equal(t, release == "4.19", strings.Contains(strings.Join(g.log, "\n"), "is not an instruction boundary."), release)
		require.ErrorIs(t, g.Write("kprobe_events", "p:u leaf a=@nosuch:u64", true), c.unknown, release)
		if c.unknown != nil {
			continue
		}
		g.write("events/kprobes/u/enable", "1")
		g.call("leaf", 3)
		require.Contains(t, g.read("trace"), " a=0\n", release)
	}
}

// Rule: from 7.3 on a line of dynamic_events that no kind of event accepts is in error_log, as it
// was written; kprobe_events does not log it.
func TestLinesThatNoEventTakes(t *testing.T) {
	for release, logged := range map[string]int{"6.12": 0, "7.3": 3} {
		g := newGuest(t, release, 1, tracing.Options{})
		for _, line := range []string{"q:e: leaf", "p:e ", "f:e leaf", "p :g/e leaf"} {
			require.ErrorIs(t, g.Write("dynamic_events", line, true), errno.EINVAL, line)
			require.ErrorIs(t, g.Write("kprobe_events", line, true), errno.EINVAL, line)
		}
		log := g.read("error_log")
		require.Equal(t, logged, strings.Count(log, "dynevent: error: No matching dynamic event type\n"), release)
		require.Equal(t, logged, strings.Count(log, "  Command: "), release)
	}
}
