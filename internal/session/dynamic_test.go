package session

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/errno"
	"kprobelab/internal/integration/dumps/runs"
)

// Events of the kinds that only a booted kernel has are defined in that kernel's own dynamic_events: it accepts
// and refuses, with its messages, and fires and prints them.
func TestOtherDynamicEvents(t *testing.T) {
	type want struct {
		errno errno.Errno // 0: accepted
		text  string      // of the trace, or of error_log
	}
	var (
		noKind   = want{errno: errno.EINVAL}
		quiet    = want{}
		accepted = func(text string) want { return want{text: text} }
		refused  = func(e errno.Errno, text string) want { return want{e, text} }
	)
	cases := []struct {
		line                string
		old, middle, newest want // 6.1, 6.12, the newest
	}{
		{"f:fp/a vfs_read", noKind, accepted("a: (vfs_read+"), accepted("a: (vfs_read+")},
		{"f:fp/b vfs_read%return ret=$retval:s64", noKind, accepted("<- vfs_read) ret=4"), accepted("<- vfs_read) ret=4")},
		{"f:fp/c vfs_read file->f_flags count", noKind, accepted("count=4"), accepted("count=4")},
		{"f:fp/d nosuch", noKind, refused(errno.EINVAL, "error: "), refused(errno.EINVAL, "error: ")},
		{"f:fp/e vfs_read+5", noKind, refused(errno.EINVAL, "error: "), refused(errno.EINVAL, "error: ")},
		{"t:tp/a sys_enter regs id", noKind, accepted("id="), accepted("id=")},
		{"t:tp/b nosuch", noKind, quiet, quiet}, // a module may bring the tracepoint,
		{"e:ep/a syscalls/sys_enter_openat dfd=$dfd:s32", accepted("(syscalls.sys_enter_openat) dfd=-100"), accepted("(syscalls.sys_enter_openat) dfd=-100"), accepted("(syscalls.sys_enter_openat) dfd=-100")},
		{"e:ep/b syscalls.sys_exit_read r=$ret:s64", accepted("(syscalls.sys_exit_read) r=4"), accepted("(syscalls.sys_exit_read) r=4"), accepted("(syscalls.sys_exit_read) r=4")},
		{"e:ep/c nosuch/event", refused(errno.ENODEV, "Attached event does not exist"), refused(errno.ENODEV, "Attached event does not exist"), refused(errno.ENODEV, "Attached event does not exist")},
		{"e:ep/d syscalls/sys_enter_openat x=$nofield", refused(errno.ENOENT, ""), refused(errno.EINVAL, "error: "), refused(errno.EINVAL, "error: ")},
		{"s:lat u64 delta; pid_t pid", quiet, quiet, quiet},
		{"s:lat nosuchtype x", refused(errno.EINVAL, "error: "), refused(errno.EINVAL, "error: "), refused(errno.EINVAL, "error: ")},
	}
	for _, kernel := range []string{"6.12", "newest", "6.1"} {
		if testing.Short() && kernel != "6.12" {
			continue
		}
		lab, err := kprobelab.Open(runs.File(t, kernel), &kprobelab.Options{Budget: 5_000_000_000})
		require.NoError(t, err)
		defer lab.Close()
		clean, err := lab.Machine.Snapshot()
		require.NoError(t, err)
		for _, c := range cases {
			want := map[string]want{"6.1": c.old, "6.12": c.middle, "newest": c.newest}[kernel]
			t.Run(kernel+" "+strings.ReplaceAll(c.line, "/", " of "), func(t *testing.T) {
				require.NoError(t, lab.Machine.Restore(clean))
				l := New(lab)
				u, err := l.Uprobes()
				require.NoError(t, err)
				err = u.Define(c.line)
				if want.errno != 0 {
					require.ErrorIs(t, err, want.errno)
					var refused *UprobeRefused
					require.ErrorAs(t, err, &refused)
					require.Contains(t, refused.Log, want.text)
					return
				}
				require.NoError(t, err)
				require.NoError(t, u.Enable())
				for _, line := range []string{`openat(AT_FDCWD, "/proc/version", O_RDONLY)`, "read(3, buf[4], 4)"} {
					call, err := BindCall(l.Image, line)
					require.NoError(t, err)
					_, err = l.Make(call)
					require.NoError(t, err)
				}
				text, err := u.Trace()
				require.NoError(t, err)
				require.Contains(t, text, want.text)
				require.NoError(t, u.Close())
				left, err := u.read(tracefs + "dynamic_events")
				require.NoError(t, err)
				require.Empty(t, left)
			})
		}
	}
}
