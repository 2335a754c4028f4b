//go:build linux

package mount

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
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
	// Guest is called for each operation on the files; may be nil.
	Guest Guest
	// Source is the device in the mount table; "tracefs" unless set, the name that scripts look
	// for.
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

// New mounts the tree at dir, an empty directory. Root mounts by itself; others need fusermount3
// (Debian's package fuse3) or fusermount. The caller ends it with Unmount. The directory is checked
// first, because a wrong one is wrong on every host; an error that wraps ErrNoFUSE then lists all
// that the host lacks.
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
	raw := &flagged{RawFileSystem: fs.NewNodeFS(&node{m: m, path: "."}, settings), flags: &m.flags}
	if m.server, err = fuse.NewServer(raw, dir, &settings.MountOptions); err == nil {
		raw.old = func(node uint64) { m.server.InodeNotify(node, -1, 0) }
		go m.server.Serve()
		err = m.server.WaitMount()
	}
	if err != nil {
		return nil, fmt.Errorf("%w at %s: %s; a container needs --device %s --cap-add SYS_ADMIN", ErrNoFUSE, dir, strings.TrimSpace(err.Error()), device)
	}
	return m, nil
}

// access returns the FUSE options of a mount for every user: the host's kernel checks each file's
// owner and mode. An ordinary user's mount can be reached by its owner only, and needs no check.
func access() []string {
	if root() {
		return []string{"default_permissions"}
	}
	return nil
}

// Dir returns the mount point.
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

// Unmount ends the mount, even while it is used. Reads that wait end first. If files are still
// open, or a process's working directory is in it, it is detached: such users, and users of it at
// another place or in another namespace, keep it until this process ends, and get ENODEV for files
// that they open. Unmount may be called twice.
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

// mounted reads the mount table, not the mount: that might not answer.
func (m *Mount) mounted() bool {
	b, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return true
	}
	name := strings.NewReplacer(" ", `\040`, "\t", `\011`, "\n", `\012`, `\`, `\134`).Replace(m.dir)
	return strings.Contains(string(b), " "+name+" fuse.kprobelab ")
}

// caller returns the process that makes a request. The guest first forks for the processes that the
// host has made since the last request.
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
