package tracing_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/errno"
	"kprobelab/kprobestest"
	"kprobelab/profile"
	"kprobelab/tracing"
)

// What Debian's 6.1 reads from snapshot while there is none.
const (
	noSnapshot = `# tracer: nop
#
#
# * Snapshot is freed *
#
# Snapshot commands:
# echo 0 > snapshot : Clears and frees snapshot buffer
# echo 1 > snapshot : Allocates snapshot buffer, if not already allocated.
#                      Takes a snapshot of the main buffer.
# echo 2 > snapshot : Clears snapshot buffer (but does not allocate or free)
#                      (Doesn't have to be '2' works with any number that
#                       is not a '0' or '1')
`
	noCPUSnapshot = `# tracer: nop
#
#
# * Snapshot is allocated *
#
# Snapshot commands:
# echo 0 > snapshot : Invalid for per_cpu snapshot file.
# echo 1 > snapshot : Not supported with this kernel.
#                     Must use main snapshot file to allocate.
# echo 2 > snapshot : Clears this cpu's snapshot buffer (but does not allocate)
#                      (Doesn't have to be '2' works with any number that
#                       is not a '0' or '1')
`
)

// marks are the texts in a file like trace.
func (g *guest) marks(file string) string {
	var list []string
	for _, m := range regexp.MustCompile(`tracing_mark_write: (.*)`).FindAllStringSubmatch(g.read(file), -1) {
		list = append(list, m[1])
	}
	return strings.Join(list, " ")
}

func TestSnapshot(t *testing.T) {
	g := newGuest(t, "6.1", 2, tracing.Options{})
	require.Equal(t, noSnapshot, g.read("snapshot"))
	g.write("snapshot", "2")
	require.Equal(t, noSnapshot, g.read("snapshot"))
	g.write("trace_marker", "one")
	g.write("snapshot", "1")
	g.write("trace_marker", "two")
	require.Equal(t, "one", g.marks("snapshot"))
	require.Equal(t, "two", g.marks("trace"))
	g.write("snapshot", "1\n")
	require.Equal(t, "two", g.marks("snapshot"))
	require.Equal(t, "one", g.marks("trace"), "the buffers change places")
	require.Equal(t, "two", g.marks("per_cpu/cpu0/snapshot"))
	require.Equal(t, noCPUSnapshot, g.read("per_cpu/cpu1/snapshot"))
	g.write("per_cpu/cpu0/snapshot", "2")
	require.Equal(t, strings.Replace(noSnapshot, "freed", "allocated", 1), g.read("snapshot"))
	g.write("snapshot", "0")
	require.Equal(t, noSnapshot, g.read("snapshot"))
	for text, want := range map[string]errno.Errno{"x": errno.EINVAL, "-1": errno.EINVAL, " 1": errno.EINVAL, "18446744073709551616": errno.ERANGE} {
		require.ErrorIs(t, g.Write("snapshot", text, true), want, text)
	}
	require.ErrorIs(t, g.Write("per_cpu/cpu0/snapshot", "1", true), errno.EINVAL)
	require.ErrorIs(t, g.Write("per_cpu/cpu0/snapshot", "0", true), errno.EINVAL)
	require.Equal(t, noSnapshot, g.read("snapshot"))
	require.NoError(t, g.Mkdir("instances/i"))
	require.Equal(t, noSnapshot, g.read("instances/i/snapshot"))
}

func TestSnapshotTrigger(t *testing.T) {
	g := newGuest(t, "6.1", 1, tracing.Options{})
	g.write("kprobe_events", "p:ft kernel_clone n=+0(%di)\np:in leaf+5 n=%di\nr:rt leaf")
	g.write("events/kprobes/rt/trigger", "snapshot:1")
	require.Contains(t, g.read("snapshot"), "* Snapshot is allocated *")
	g.write("events/kprobes/rt/enable", "1")
	g.write("trace_marker", "before")
	g.call("leaf", 1)
	require.Equal(t, "before", g.marks("snapshot"), "it is taken before the record of the hit is written")
	require.Len(t, g.lines(), 1)
	require.Contains(t, g.lines()[0], ": rt: (")
	g.write("events/kprobes/rt/enable", "0")
	g.write("events/kprobes/rt/trigger", "!snapshot")

	// From an int3, which counts as an NMI.
	require.NoError(t, g.Write("trace", "", false))
	g.write("events/kprobes/in/trigger", "snapshot:1 if n == 7")
	g.call("leaf", 6)
	g.call("leaf", 7)
	require.Len(t, g.lines(), 2)
	require.Contains(t, g.lines()[0], " d.Z..")
	require.Contains(t, g.lines()[0], ": tracing_snapshot_instance_cond: *** SNAPSHOT CALLED FROM NMI CONTEXT ***")
	require.Contains(t, g.lines()[1], ": tracing_snapshot_instance_cond: *** snapshot is being ignored        ***")
	require.Equal(t, "before", g.marks("snapshot"))

	// Its buffer was freed meanwhile.
	g.write("events/kprobes/rt/trigger", "snapshot")
	g.write("snapshot", "0")
	require.NoError(t, g.Write("trace", "", false))
	g.call("leaf", 6)
	require.Contains(t, g.lines()[0], ": tracing_snapshot_instance_cond: *** SNAPSHOT NOT ALLOCATED ***")
	require.Contains(t, g.lines()[1], ": tracing_snapshot_instance_cond: *** stopping trace here!   ***")
	require.Equal(t, "0\n", g.read("tracing_on"))
}

// stacks are the stacks in the trace.
func (g *guest) stacks() []string {
	var list []string
	for line := range strings.Lines(g.read("trace")) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasSuffix(line, ": <stack trace>") {
			list = append(list, "")
		} else if s, ok := strings.CutPrefix(line, " => "); ok {
			list[len(list)-1] += " " + s
		}
	}
	return list
}

func TestStacktraceTrigger(t *testing.T) {
	g := newGuest(t, "6.1", 1, tracing.Options{})
	g.write("kprobe_events", "p:e alloc_pid\np:at leaf+5 n=%di")
	g.write("events/kprobes/e/trigger", "stacktrace:2")
	g.call("sys_fork")
	g.call("sys_fork")
	g.call("sys_fork")
	require.Equal(t, []string{
		" alloc_pid copy_process kernel_clone sys_fork", " alloc_pid copy_process kernel_clone sys_fork",
	}, g.stacks())
	require.Equal(t, "stacktrace:count=0\n", g.read("events/kprobes/e/trigger"))

	require.NoError(t, g.Write("trace", "", false))
	g.write("events/kprobes/at/trigger", "stacktrace:1 if n == 2")
	g.write("events/kprobes/at/enable", "1")
	g.call("outer", 1)
	g.call("outer", 2)
	require.Equal(t, []string{" leaf outer"}, g.stacks())
	text := g.read("trace")
	require.Regexp(t, `: at: \(leaf\+0x5/0x[0-9a-f]+\) n=0x2\n.* \.\.Zff .*: <stack trace>\n => leaf\n => outer\n`, text, "the stack follows the record")
}

// With the option, every record of an event has its stack; where return probes
// have replaced addresses, unwinders of 6.1 know the true ones.
func TestStacktraceOption(t *testing.T) {
	g := newGuest(t, "6.1", 1, tracing.Options{})
	g.write("options/stacktrace", "1")
	g.write("kprobe_events", "p:e alloc_pid\nr:a copy_process\nr:b kernel_clone")
	g.write("events/enable", "1")
	g.call("sys_fork")
	require.Equal(t, []string{" alloc_pid copy_process kernel_clone sys_fork", " kernel_clone sys_fork", " sys_fork"}, g.stacks())
	require.NoError(t, g.Write("trace", "", false))
	g.write("options/sym-offset", "1")
	g.write("options/sym-addr", "1")
	g.call("sys_fork")
	require.Regexp(t, `^ alloc_pid\+0x1/0x[0-9a-f]+ <ffffffff81[0-9a-f]{6}> copy_process\+0x[0-9a-f]+/0x[0-9a-f]+ <ffffffff81[0-9a-f]{6}> `, g.stacks()[0])

	// So do those of 5.16 and 5.17, which have no rethook.
	v, ok := profile.ParseVersion("5.17")
	require.True(t, ok)
	g = newGuestOf(t, &kprobestest.Options{Rules: profile.ForRelease(v)}, tracing.Options{})
	g.write("options/stacktrace", "1")
	g.write("kprobe_events", "p:e alloc_pid\nr:a copy_process")
	g.write("events/enable", "1")
	g.call("sys_fork")
	require.Equal(t, " alloc_pid copy_process kernel_clone sys_fork", g.stacks()[0])

	old := newGuest(t, "5.10", 1, tracing.Options{})
	old.write("options/stacktrace", "1")
	old.write("kprobe_events", "p:e alloc_pid\nr:a copy_process")
	old.write("events/enable", "1")
	old.call("sys_fork")
	require.Equal(t, " alloc_pid copy_process [unknown/kretprobe'd] sys_fork", old.stacks()[0])
}
