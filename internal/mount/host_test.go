//go:build linux

package mount

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// The error lists everything that a host lacks at once, the user's own first.
func TestWhatAHostLacks(t *testing.T) {
	const (
		noHelper     = "as an ordinary user that needs fusermount3, which is not there; install the package fuse3, or mount as root"
		noDevice     = "/dev/fuse is not there; the host's kernel needs its fuse module (modprobe fuse), a container needs --device /dev/fuse"
		noCapability = "the capability SYS_ADMIN is taken from this process; a container needs --cap-add SYS_ADMIN"
		noRights     = "this process may gain no rights (no_new_privs), so fusermount3 cannot mount; start it without that, or mount as root"
		closed       = "/dev/fuse is closed to this user (-rw-------); root opens it with chmod 666 /dev/fuse"
	)
	regular := filepath.Join(t.TempDir(), "fuse")
	require.NoError(t, os.WriteFile(regular, nil, 0o600))
	at := func(string) (fs.FileInfo, error) { return os.Stat(regular) }
	none := func(string) (fs.FileInfo, error) { return nil, fs.ErrNotExist }
	opened := func(err error) func(string) error {
		return func(string) error {
			if err != nil {
				return &fs.PathError{Op: "open", Path: device, Err: err}
			}
			return nil
		}
	}
	helper := func() (string, error) { return "/usr/bin/fusermount3", nil }
	nothing := func() (string, error) { return "", fs.ErrNotExist }
	status := func(effective, bounding, noNew string) string {
		return "Name:\tx\nCapEff:\t" + effective + "\nCapBnd:\t" + bounding + "\nNoNewPrivs:\t" + noNew + "\nSeccomp:\t0\n"
	}
	for name, c := range map[string]struct {
		host host
		want string
	}{
		"root_all_there":               {host{true, at, opened(nil), nothing, ""}, ""},
		"root_no_device":               {host{true, none, opened(nil), nothing, ""}, noDevice},
		"root_in_container":            {host{true, at, opened(syscall.EPERM), nothing, ""}, "open /dev/fuse: operation not permitted; a container needs --device /dev/fuse"},
		"root_module_gone":             {host{true, at, opened(syscall.ENODEV), nothing, ""}, "open /dev/fuse: no such device; the host's kernel needs its fuse module (modprobe fuse)"},
		"user_all_there":               {host{false, at, opened(nil), helper, ""}, ""},
		"user_no_helper":               {host{false, at, opened(nil), nothing, ""}, noHelper},
		"user_device_closed":           {host{false, at, opened(syscall.EACCES), helper, ""}, closed},
		"user_no_helper_no_device":     {host{false, none, opened(nil), nothing, ""}, noHelper + "; and " + noDevice},
		"user_no_helper_closed":        {host{false, at, opened(syscall.EACCES), nothing, ""}, noHelper + "; and " + closed},
		"root_without_the_capability":  {host{true, at, opened(nil), nothing, status("0", "1ffffffffff", "0")}, noCapability},
		"root_with_the_capability":     {host{true, at, opened(nil), nothing, status("200000", "200000", "1")}, ""},
		"user_in_a_bounded_container":  {host{false, at, opened(nil), helper, status("0", "a80425fb", "0")}, noCapability},
		"user_without_new_rights":      {host{false, at, opened(nil), helper, status("0", "1ffffffffff", "1")}, noRights},
		"user_with_new_rights":         {host{false, at, opened(nil), helper, status("0", "1ffffffffff", "0")}, ""},
		"user_device_without_a_driver": {host{false, at, opened(syscall.ENXIO), helper, ""}, "open /dev/fuse: no such device or address; the host's kernel needs its fuse module (modprobe fuse)"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.host.supported()
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, ErrNoFUSE)
			require.EqualError(t, err, "cannot mount: "+c.want)
		})
	}
}

// A wrong place is said first: it is wrong on every host.
func TestThePlaceComesBeforeTheHost(t *testing.T) {
	t.Setenv("PATH", "/nowhere")
	full := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(full, "file"), nil, 0o600))
	for dir, want := range map[string]string{
		full:                            "is not empty",
		filepath.Join(full, "file"):     "is not a directory",
		filepath.Join(full, "nothing"):  "no such file or directory",
		"/sys/kernel/tracing/instances": "the real kernel's tracing files belong there",
	} {
		_, err := New(dir, newFakeTree(), nil)
		require.ErrorContains(t, err, want)
		require.NotErrorIs(t, err, ErrNoFUSE)
		require.Equal(t, err, CheckPlace(dir))
	}
}
