//go:build linux

package mount

import (
	"context"
	"fmt"
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
)

// live has the tracing files of the guest kernel.
func live(t *testing.T) *Live { return liveOn(t, "") }

func liveOn(t *testing.T, image string) *Live {
	t.Helper()
	img, err := kprobelab.OpenImage(image, nil)
	require.NoError(t, err)
	l, err := kprobelab.New(img, &kprobelab.Options{CPUs: 2, Optimize: true})
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	f, err := NewLive(l, func(line string) { t.Log(line) })
	require.NoError(t, err)
	t.Cleanup(f.Close)
	return f
}

func (f *Live) write(name, text string) error {
	h, err := f.Tree().OpenFile(name, os.O_WRONLY)
	if err != nil {
		return err
	}
	defer h.Close()
	_, err = h.WriteAt([]byte(text), 0)
	return err
}

func (f *Live) read(t *testing.T, name string) string {
	t.Helper()
	h, err := f.Tree().OpenFile(name, os.O_RDONLY)
	require.NoError(t, err)
	defer h.Close()
	var all []byte
	for {
		var b [4096]byte
		n, err := h.ReadAt(context.Background(), b[:], int64(len(all)))
		require.NoError(t, err)
		if n == 0 {
			return string(all)
		}
		all = append(all, b[:n]...)
	}
}

// traced are the lines of the trace without its head, times and addresses.
func (f *Live) traced(t *testing.T) []string {
	var list []string
	for line := range strings.Lines(f.read(t, "trace")) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		who, rest, _ := strings.Cut(strings.TrimSpace(line), "[")
		_, what, _ := strings.Cut(rest, ": ")
		event, args, _ := strings.Cut(what, ": (")
		_, args, _ = strings.Cut(args, ")")
		list = append(list, strings.TrimSpace(who)+" "+event+":"+strings.TrimSuffix(args, "\n"))
	}
	return list
}

var shell = Process{PID: 102, Comm: "sh"}

func TestWhatIsDoneHappensInTheGuest(t *testing.T) {
	f := live(t)
	for _, d := range []string{
		"p:fork kernel_clone comm=$comm", "p:open vfs_open", "p:in do_sys_open name=+0($arg2):string", "r:rd vfs_read $retval:s32", "p:wr vfs_write n=$arg3",
	} {
		require.NoError(t, f.write("kprobe_events", d))
	}
	require.NoError(t, f.write("events/enable", "1"))
	g := f.Guest()
	g.Fork(shell)
	fd := g.Open(shell, "/trace", os.O_RDWR)
	require.GreaterOrEqual(t, fd, 3)
	g.Write(shell, fd, []byte("hello"))
	g.Read(shell, fd, 1<<20)
	g.Close(shell, fd)
	require.Equal(t, []string{
		`sh-102 fork: comm="sh"`,
		`sh-102 in: name="/sys/kernel/tracing/trace"`,
		`sh-102 open:`,
		`sh-102 wr: n=0x5`,
		`sh-102 rd: arg1=0`,
	}, f.traced(t))
}

// However many files are opened, and never closed, vfs_open goes on.
func TestGuestsDiskDoesNotFillUp(t *testing.T) {
	f := live(t)
	g := f.Guest()
	for i := range 200 {
		fd := g.Open(shell, "/"+strings.Repeat("x", i), os.O_RDONLY)
		require.GreaterOrEqual(t, fd, 3)
		g.Close(shell, fd)
	}
	for range 200 {
		g.Open(shell, "/leak", os.O_RDONLY)
	}
	g.Read(shell, -1, 10)
	g.Write(shell, -1, []byte("x"))
	g.Close(shell, -1)
}

func TestFoldersOfDefinitionsComeThroughTheGuest(t *testing.T) {
	f := live(t)
	require.NoError(t, f.write("kprobe_events", "p:testprobe tracefs_create_dir name=+0(%di):string"))
	require.NoError(t, f.write("events/kprobes/testprobe/enable", "1"))
	require.NoError(t, f.write("kprobe_events", "p:group/test kernel_clone"))
	require.ErrorIs(t, f.write("kprobe_events", "p:bad nosuch"), errno.ENOENT)
	var names []string
	for _, line := range f.traced(t) {
		_, name, _ := strings.Cut(line, "name=")
		names = append(names, name)
	}
	require.Equal(t, []string{`"group"`, `"test"`}, names)
}

func TestCall(t *testing.T) {
	f := live(t)
	require.Equal(t, "", f.read(t, "kprobelab/call"))
	require.NoError(t, f.write("kprobe_events", "p:fmt snprintf size=%si fmt=+0(%dx):string"))
	require.NoError(t, f.write("events/kprobes/enable", "1"))
	require.NoError(t, f.write("kprobelab/call", "gcd(12, 18)\n\nsnprintf(buf[8], 8, \"%d\", 7)\n"))
	require.Equal(t, "gcd(12, 18) = 6\nsnprintf(buf[8], 8, \"%d\", 7) = 1\n  buf[8] = \"7\" {37 00 00 00 00 00 00 00}\n", f.read(t, "kprobelab/call"))
	require.Contains(t, f.read(t, "trace"), `size=0x8 fmt="%d"`)

	require.ErrorIs(t, f.write("kprobelab/call", "nosuch(1)"), errno.EINVAL)
	require.Contains(t, f.read(t, "kprobelab/call"), "there is no function nosuch")
	require.ErrorIs(t, f.write("kprobelab/call", "fault_null_read()"), errno.EFAULT)
	require.Contains(t, f.read(t, "kprobelab/call"), "fault_null_read(): ")
}

func TestSymbolsAndBanner(t *testing.T) {
	f := live(t)
	text := f.read(t, "kprobelab/kallsyms")
	require.Contains(t, text, " T vfs_read\n")
	require.Contains(t, text, " T kernel_clone\n")
	require.True(t, strings.HasPrefix(f.read(t, "kprobelab/version"), "Linux version 6.1.0-kprobelab "))
	require.ErrorIs(t, f.write("kprobelab/version", "x"), errno.EINVAL)
}

// The optimizer gets its time between two system calls.
func TestOptimizedWhenLookedAt(t *testing.T) {
	f := live(t)
	require.NoError(t, f.write("kprobe_events", "p:opt do_sys_open+5"))
	require.NoError(t, f.write("events/kprobes/enable", "1"))
	f.Guest().Open(shell, "/kprobes/list", os.O_RDONLY)
	require.Contains(t, f.read(t, "kprobes/list"), "do_sys_open+0x5    [OPTIMIZED]")
}

// A shell at the mount, as in the README.
func TestShellAtTheMount(t *testing.T) {
	f := live(t)
	m := mountOf(t, f.Tree(), f.Guest())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	// The shell changes its folder itself: exec.Cmd's Dir is entered between
	// fork and exec, while this process, which serves the folder, stands still.
	cmd := exec.CommandContext(ctx, "sh", "-ec", `cd "$0"
		echo 'p:myprobe snprintf size=%si fmt=+0(%dx):string' > kprobe_events
		echo 'r:back vfs_open $retval' >> kprobe_events
		echo 1 > events/kprobes/myprobe/enable
		cat trace_pipe > "$OUT" &
		echo 'snprintf(buf[64], 64, "%s has %d", "abc", 42)' > kprobelab/call
		cat kprobelab/call
		until grep -q myprobe "$OUT"; do :; done
		kill $!
		wait $! || :
		cat kprobe_events
		echo 0 > events/enable
		echo > kprobe_events
		! echo 'p:a nosuch' > kprobe_events
		tail -n 1 error_log`, m.Dir())
	cmd.Env = append(os.Environ(), "OUT="+filepath.Join(t.TempDir(), "out"))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "= 10 (0xa)\n  buf[64] = \"abc has 42\"\n")
	require.Contains(t, string(out), "\np:kprobes/myprobe snprintf size=%si fmt=+0(%dx):string\nr")
	require.True(t, strings.HasSuffix(string(out), "\n               ^\n"), string(out))
}

// A process's argument of a system call is in user memory; the kernel's copy is not (the kernel's
// own test kprobe_args_user).
func TestArgumentsOfSystemCallsAreTheUsers(t *testing.T) {
	f := live(t)
	for _, d := range []string{
		"p:user do_sys_openat2 a=+0($arg2):ustring b=+u0($arg2):string c=+0($arg2):string",
		"p:kern vfs_symlink to=+0($arg4):string d=+0($arg3):ustring e=+u0($arg4):string",
		"p:buf vfs_write s=+u0($arg2):string",
	} {
		require.NoError(t, f.write("kprobe_events", d))
	}
	require.NoError(t, f.write("events/enable", "1"))
	g := f.Guest()
	fd := g.Open(shell, "/kprobelab/root/dev/null", os.O_WRONLY)
	g.Write(shell, fd, []byte("text\x00"))
	g.Close(shell, fd)
	g.Symlink(shell, "foo", "/kprobelab/root/tmp/bar")
	require.Equal(t, []string{
		`sh-102 user: a="/dev/null" b="/dev/null" c="/dev/null"`,
		`sh-102 buf: s="text"`,
		`sh-102 kern: to="foo" d=(fault) e=(fault)`,
	}, f.traced(t))
}

// Names that go leave room in the guest for others.
func TestGuestsNamesGo(t *testing.T) {
	f := live(t)
	for _, d := range []string{"p:mk vfs_mkdir", "p:rm vfs_rmdir", "p:ln vfs_symlink", "p:un vfs_unlink", "p:dir tracefs_create_dir ret=+0(%di):string"} {
		require.NoError(t, f.write("kprobe_events", d))
	}
	require.NoError(t, f.write("events/enable", "1"))
	g := f.Guest()
	for i := range 100 {
		at := fmt.Sprintf("/kprobelab/root/tmp/%d", i)
		g.Mkdir(shell, at)
		g.Symlink(shell, "x", at+"/link")
		fd := g.Open(shell, at+"/file", os.O_CREATE|os.O_WRONLY)
		g.Unlink(shell, at+"/file")
		g.Close(shell, fd)
		g.Unlink(shell, at+"/link")
		g.Rmdir(shell, at)
		require.NoError(t, f.write("kprobe_events", fmt.Sprintf("p:e%d vfs_read", i)))
		require.NoError(t, f.write("kprobe_events", fmt.Sprintf("-:e%d", i)))
	}
	count := map[string]int{}
	for _, line := range f.traced(t) {
		name, _, _ := strings.Cut(strings.Fields(line)[1], ":")
		count[name]++
	}
	require.Equal(t, map[string]int{"mk": 100, "rm": 100, "ln": 100, "un": 200, "dir": 100}, count)
}

// The folder kprobelab/root is the guest's as well, in all that a shell does.
func TestGuestsRootAtTheMount(t *testing.T) {
	f := live(t)
	require.NoError(t, f.write("kprobe_events", "p:opened do_sys_openat2 name=+u0($arg2):string"))
	require.NoError(t, f.write("kprobe_events", "p:linked vfs_symlink to=+0($arg4):string"))
	require.NoError(t, f.write("events/enable", "1"))
	m := mountOf(t, f.Tree(), f.Guest())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "sh", "-ec", `cd "$0/kprobelab/root"
		echo lost > dev/null
		cat dev/null
		d=$(mktemp -d tmp/d.XXXXXX)
		echo one > $d/f
		echo two >> $d/f
		ln -s f $d/l
		cat $d/l
		stat -c '%s %F' $d/f $d/l
		mv $d/f $d/g
		truncate -s 3 $d/g
		cat $d/g; echo
		ls $d
		! rmdir $d 2>/dev/null
		! echo x 2>/dev/null > ../x
		rm -r $d
		ls tmp`, m.Dir()).CombinedOutput()
	require.NoError(t, err, string(out))
	require.Equal(t, "one\ntwo\n8 regular file\n1 symbolic link\none\ng\nl\n", string(out))
	trace := f.read(t, "trace")
	require.Contains(t, trace, `name="/dev/null"`)
	require.Contains(t, trace, `to="f"`)
}

// On the dump of a booted kernel a call is a system call of its init, and the records have
// the kernel's own name and number of the task.
func TestABootedKernelHasTasksOfItsOwn(t *testing.T) {
	f := liveOn(t, runs.File(t, "6.1"))
	require.NoError(t, f.write("kprobe_events", "p:a vfs_read by=$comm"))
	require.NoError(t, f.write("events/kprobes/a/enable", "1"))
	require.NoError(t, f.write("kprobelab/call", "openat(AT_FDCWD, \"/proc/version\", O_RDONLY)\nread(3, buf[13], 13)"))
	require.Contains(t, f.read(t, "kprobelab/call"), "{4c 69 6e 75 78 20 76 65 72 73 69 6f 6e}") // Linux version
	require.Regexp(t, `(?m)^ +init-1 .* a: \(vfs_read\+0x0/\S+\) by="init"$`, f.read(t, "trace"))
}
