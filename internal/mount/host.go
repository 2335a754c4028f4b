//go:build linux

package mount

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"kprobelab/internal/bounded"
)

// ErrNoFUSE says that this system or this user cannot mount.
var ErrNoFUSE = errors.New("cannot mount")

// device is the file by which a process speaks FUSE with the kernel.
const device = "/dev/fuse"

// host answers a mount's questions about the system and the user.
type host struct {
	root bool
	stat func(name string) (fs.FileInfo, error)
	// opens returns nil if the user can open the file for reading and writing.
	opens func(name string) error
	// fusermount returns the path of the program that mounts for ordinary users.
	fusermount func() (string, error)
	// status is the text of /proc/self/status, "" if unknown.
	status string
}

func thisHost() host {
	status, _ := bounded.ReadFile("/proc/self/status", bounded.Configuration)
	return host{root: root(), stat: os.Stat, opens: opens, fusermount: fusermount, status: string(status)}
}

func root() bool { return os.Geteuid() == 0 }

func opens(name string) error {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

func fusermount() (string, error) {
	if p, err := exec.LookPath("fusermount3"); err == nil {
		return p, nil
	}
	return exec.LookPath("fusermount")
}

// Supported says, without mounting, whether this user can mount here: nil, or
// an error that wraps ErrNoFUSE and says all that is missing.
func Supported() error { return thisHost().supported() }

func (h host) supported() error {
	missing := h.missing()
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrNoFUSE, strings.Join(missing, "; and "))
}

// missing lists the obstacles to a mount. fusermount3 opens the device with the rights of the user
// who calls it.
func (h host) missing() []string {
	var out []string
	if !h.root {
		if _, err := h.fusermount(); err != nil {
			out = append(out, "as an ordinary user that needs fusermount3, which is not there; install the package fuse3, or mount as root")
		}
	}
	if why := h.bound(); why != "" {
		out = append(out, why)
	}
	i, err := h.stat(device)
	if err != nil {
		return append(out, device+" is not there; the host's kernel needs its fuse module (modprobe fuse), a container needs --device "+device)
	}
	if err := h.opens(device); err != nil {
		return append(out, h.closed(i, err))
	}
	return out
}

// capSysAdmin is the bit of the capability to mount.
const capSysAdmin = 1 << 21

// bound returns the reason why this process, or a setuid program that it starts, gets no right to mount, with the remedy; ""
// if it does.
func (h host) bound() string {
	lacks := func(field string) bool {
		_, rest, ok := strings.Cut(h.status, "\n"+field+":\t")
		value, _, _ := strings.Cut(rest, "\n")
		set, err := strconv.ParseUint(value, 16, 64)
		return ok && err == nil && set&capSysAdmin == 0
	}
	switch {
	case h.root && lacks("CapEff"), lacks("CapBnd"):
		return "the capability SYS_ADMIN is taken from this process; a container needs --cap-add SYS_ADMIN"
	case !h.root && strings.Contains(h.status, "\nNoNewPrivs:\t1\n"):
		return "this process may gain no rights (no_new_privs), so fusermount3 cannot mount; start it without that, or mount as root"
	}
	return ""
}

// closed returns the reason why the device cannot be opened, with the remedy.
func (h host) closed(i fs.FileInfo, err error) string {
	switch {
	case !errors.Is(err, fs.ErrPermission):
		return fmt.Sprintf("%v; the host's kernel needs its fuse module (modprobe fuse)", err)
	case h.root:
		return fmt.Sprintf("%v; a container needs --device %s", err, device)
	}
	return fmt.Sprintf("%s is closed to this user (%v); root opens it with chmod 666 %s", device, i.Mode(), device)
}
