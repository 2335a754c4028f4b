//go:build linux

package mount

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"kprobelab/tracing"
)

// Options are the choices of a mount.
type Options struct {
	// Guest is told what is done with the files; nil for nobody.
	Guest Guest
	// Source is the device that the mount table names; "tracefs" unless set,
	// which is what scripts look for.
	Source string
	// Debug prints every request on standard error.
	Debug bool
}

// Mount is a tree that is mounted.
type Mount struct {
	dir      string
	tree     tracing.Tree
	guest    Guest
	server   *fuse.Server
	seen     *processes
	uid, gid uint32
	made     time.Time
	flags    fileFlags

	// ending is closed when waiting reads have to end.
	ending chan struct{}
	once   sync.Once
}

// ErrNoFUSE says that this system or this user cannot mount.
var ErrNoFUSE = errors.New("cannot mount")

// New mounts the tree at dir, an empty directory. Root mounts by itself; others
// need fusermount3 (Debian's package fuse3) or fusermount. The caller ends it
// with Unmount. An error that wraps ErrNoFUSE says what is missing.
func New(dir string, t tracing.Tree, o *Options) (*Mount, error) {
	if o == nil {
		o = &Options{}
	}
	dir, err := target(dir)
	if err != nil {
		return nil, err
	}
	if err := Supported(); err != nil {
		return nil, err
	}
	m := &Mount{
		dir: dir, tree: t, guest: o.Guest, seen: newProcesses(), made: time.Now(),
		uid: uint32(os.Geteuid()), gid: uint32(os.Getegid()), ending: make(chan struct{}),
	}
	if m.guest == nil {
		m.guest = noGuest{}
	}
	source := o.Source
	if source == "" {
		source = "tracefs"
	}
	var zero time.Duration
	settings := &fs.Options{
		EntryTimeout: &zero, AttrTimeout: &zero, NegativeTimeout: &zero,
		MountOptions: fuse.MountOptions{
			FsName: source, Name: "kprobelab", Debug: o.Debug,
			DirectMount: root(), AllowOther: root(), Options: access(),
			DisableXAttrs: true, DisableReadDirPlus: true,
			// Splicing opens /dev/null, and a file of the mount may have been
			// laid over that.
			DisableSplice: true,
			// Some files act on being opened with truncation.
			ExtraCapabilities: fuse.CAP_ATOMIC_O_TRUNC,
		},
	}
	raw := &flagged{fs.NewNodeFS(&node{m: m, path: "."}, settings), &m.flags}
	if m.server, err = fuse.NewServer(raw, dir, &settings.MountOptions); err == nil {
		go m.server.Serve()
		err = m.server.WaitMount()
	}
	if err != nil {
		return nil, fmt.Errorf("%w at %s: %v", ErrNoFUSE, dir, err)
	}
	return m, nil
}

// access is what a mount for every user asks of the host's kernel: to check each
// file's owner and mode. Others than the owner cannot reach an ordinary user's
// mount, which needs no check.
func access() []string {
	if root() {
		return []string{"default_permissions"}
	}
	return nil
}

func root() bool { return os.Geteuid() == 0 }

// ErrPlace is a place where the real kernel's files belong.
var ErrPlace = errors.New("the real kernel's tracing files belong there")

// realPlaces are where trace-cmd, perf and libtracefs look for the real kernel's
// tracing files. They ask for the file system's type, which FUSE cannot have. As root
// they then mount the real one there, over whatever is there, and all that follows
// reaches the real kernel.
var realPlaces = []string{"/sys/kernel/tracing", "/sys/kernel/debug", "/tracing", "/trace"}

// isReal: the directory is one of these places, or in one.
func isReal(dir string) bool {
	return slices.ContainsFunc(realPlaces, func(place string) bool {
		return dir == place || strings.HasPrefix(dir, place+"/")
	})
}

// target checks that the place can be mounted at.
func target(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	through, err := filepath.EvalSymlinks(dir)
	if err != nil {
		through = dir // it is not there, or dead: Stat says so
	}
	if isReal(dir) || isReal(through) {
		return "", fmt.Errorf("%s: %w, and tools that run as root mount them over others; take another directory", dir, ErrPlace)
	}
	i, err := os.Stat(dir)
	switch {
	case errors.Is(err, syscall.ENOTCONN):
		return "", fmt.Errorf("%s: a mount whose server has died is there; unmount it first: %s", dir, hint(dir))
	case err != nil:
		return "", err
	case !i.IsDir():
		return "", fmt.Errorf("%s is not a directory", dir)
	}
	if inside, err := os.ReadDir(dir); err == nil && len(inside) > 0 {
		return "", fmt.Errorf("%s is not empty, and what is in it could not be seen: take another directory", dir)
	}
	return dir, nil
}

func hint(dir string) string {
	if root() {
		return "umount -l " + dir
	}
	return "fusermount3 -uz " + dir
}

// Supported says, without mounting, whether this user can mount here: nil, or
// an error that wraps ErrNoFUSE and says what is missing.
func Supported() error {
	if _, err := os.Stat("/dev/fuse"); err != nil {
		return fmt.Errorf("%w: /dev/fuse is not there; the host's kernel needs its fuse module (modprobe fuse), a container needs --device /dev/fuse", ErrNoFUSE)
	}
	if root() {
		return nil
	}
	if _, err := fusermount(); err != nil {
		return fmt.Errorf("%w: as an ordinary user that needs fusermount3, which is not there; install the package fuse3, or mount as root", ErrNoFUSE)
	}
	return nil
}

func fusermount() (string, error) {
	if p, err := exec.LookPath("fusermount3"); err == nil {
		return p, nil
	}
	return exec.LookPath("fusermount")
}

// Dir is where it is mounted.
func (m *Mount) Dir() string { return m.dir }

// Wait returns when the mount has ended, by Unmount or from outside.
func (m *Mount) Wait() {
	m.server.Wait()
	m.end()
}

func (m *Mount) end() { m.once.Do(func() { close(m.ending) }) }

func (m *Mount) ended() bool {
	select {
	case <-m.ending:
		return true
	default:
		return false
	}
}

// Unmount ends the mount, even while it is used. Reads that wait end first. If
// files are still open, or somebody's working directory is in it, it is
// detached: such users, and whoever has it at another place or in another
// namespace, keep it until this process ends, and get ENODEV for what they
// open. Unmount may be called twice.
func (m *Mount) Unmount() error {
	m.end()
	if !m.mounted() {
		return nil
	}
	// The server's own Unmount would wait for the last user.
	err := unmount(m.dir, false)
	if err != nil && m.mounted() {
		err = unmount(m.dir, true)
	}
	if err != nil && m.mounted() {
		return fmt.Errorf("unmount %s: %w", m.dir, err)
	}
	return nil
}

func unmount(dir string, detach bool) error {
	if root() {
		flags := 0
		if detach {
			flags = syscall.MNT_DETACH
		}
		return syscall.Unmount(dir, flags)
	}
	bin, err := fusermount()
	if err != nil {
		return err
	}
	args := []string{"-u", dir}
	if detach {
		args = []string{"-u", "-z", dir}
	}
	if out, err := exec.Command(bin, args...).CombinedOutput(); err != nil {
		return errors.New(strings.TrimSpace(string(out)))
	}
	return nil
}

// mounted asks the mount table, not the mount: that might not answer.
func (m *Mount) mounted() bool {
	b, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return true
	}
	name := strings.NewReplacer(" ", `\040`, "\t", `\011`, "\n", `\012`, `\`, `\134`).Replace(m.dir)
	return strings.Contains(string(b), " "+name+" fuse.kprobelab ")
}

// caller is who makes a request. The guest first forks for the processes that
// the host has made since the last request.
func (m *Mount) caller(ctx context.Context) Process {
	c, ok := fuse.FromContext(ctx)
	if !ok {
		return Process{}
	}
	who, forks := m.seen.look(int(c.Pid))
	for range forks {
		m.guest.Fork(who.forker())
	}
	return who.Process
}

// until is a context that ends with the request, and with the mount.
func (m *Mount) until(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := make(chan struct{})
	go func() {
		select {
		case <-m.ending:
			cancel()
		case <-stop:
		}
	}()
	return ctx, func() { close(stop); cancel() }
}
