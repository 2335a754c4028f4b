//go:build linux

package mount

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"

	"kprobelab/errno"
	"kprobelab/tracing"
)

// guestTree is the booted kernel's own tracing directory: each use of a file is a system call of
// the guest's init, which the kernel's own code serves. All files that show or change events and
// buffers are the guest's then, so that there is one view of them: an event that is defined here
// fires together with the kernel's static ones, in one trace, with all tracers, triggers and
// options of the kernel.
type guestTree struct {
	live  *Live
	quiet *quieter
	// make makes a system call of init, which records nothing if it is given a quieter.
	make func(quiet *quieter, name string, args ...any) (int64, error)
	// ranMu protects ran, which is closed when guest code has run: a file that had nothing may have
	// something then.
	ranMu sync.Mutex
	ran   chan struct{}
	// open counts open files.
	openMu sync.Mutex
	open   int
}

// ownTracing is the path at which init has mounted the tracing directory (testdata/init/init.c).
const ownTracing = "/sys/kernel/tracing"

// elsewhere are files of the tree that a kernel has at other places.
var elsewhere = map[string]string{
	"kprobes/list":                "/sys/kernel/debug/kprobes/list",
	"kprobes/blacklist":           "/sys/kernel/debug/kprobes/blacklist",
	"kprobes/enabled":             "/sys/kernel/debug/kprobes/enabled",
	"debug/kprobes-optimization":  "/proc/sys/debug/kprobes-optimization",
	"kernel/stack_tracer_enabled": "/proc/sys/kernel/stack_tracer_enabled",
}

// newGuestTree returns the guest's tracing directory; nil if there is none that can be reached: the
// dump is not of kprobelab boot, or the kernel has no tracefs.
func newGuestTree(f *Live) *guestTree {
	if f.lab.Image.Core() == nil {
		return nil
	}
	g := &guestTree{live: f, quiet: newQuieter(f), ran: make(chan struct{})}
	g.make = g.systemCall
	if _, err := g.Stat("kprobe_events"); err != nil {
		return nil
	}
	return g
}

// tree is the directory, with the files that a kernel has elsewhere.
func (g *guestTree) tree() tracing.Tree {
	files := map[string]File{}
	for name, at := range elsewhere {
		if i, err := g.statAt(at, name); err == nil {
			files[name] = File{Mode: i.Mode(), Open: func(flag int) (tracing.Handle, error) { return g.openAt(at, flag) }}
		}
	}
	return Overlay(g, files)
}

// at is a file's path in the guest.
func at(name string) string {
	if name == "." {
		return ownTracing
	}
	return ownTracing + "/" + name
}

// call makes a system call of the guest for the files' user: its effects are recorded, and files
// that wait are notified that guest code has run.
func (g *guestTree) call(name string, args ...any) (int64, error) {
	n, err := g.make(nil, name, args...)
	g.tell()
	return n, err
}

// serve makes a system call that only serves a file: nothing of it is recorded.
func (g *guestTree) serve(name string, args ...any) (int64, error) {
	return g.make(g.quiet, name, args...)
}

// systemCall has the guest's kernel serve a system call.
func (g *guestTree) systemCall(quiet *quieter, name string, args ...any) (n int64, err error) {
	failed := g.live.do(Process{}, func() error {
		return quiet.during(func() (err error) {
			k, err := g.live.lab.Booted()
			if err == nil {
				n, err = k.SystemCall(name, args...)
			}
			return err
		})
	})
	switch {
	case failed != nil:
		g.live.log(fmt.Sprintf("%s in the guest: %v", name, failed))
		return 0, errno.EIO
	case n < 0:
		return 0, errno.Errno(-n)
	}
	return n, nil
}

// sleep makes init leave the CPU for a moment after calls, as a program does now and then: the
// kernel records the names of tasks for the trace when they do, and runs deferred work.
func (g *guestTree) sleep() {
	moment := make([]byte, 16) // struct timespec
	moment[8] = 1
	_, _ = g.serve("nanosleep", moment, 0)
	g.tell()
}

// tell ends the waits of files.
func (g *guestTree) tell() {
	g.ranMu.Lock()
	defer g.ranMu.Unlock()
	close(g.ran)
	g.ran = make(chan struct{})
}

// next is closed when guest code has run.
func (g *guestTree) next() <-chan struct{} {
	g.ranMu.Lock()
	defer g.ranMu.Unlock()
	return g.ran
}

// Flags and numbers of system calls (x86-64).
const (
	atFDCWD       = -100
	atNoFollow    = 0x100
	statSize      = 144
	statMode      = 24
	statBytes     = 48
	direntName    = 19
	direntsAtOnce = 32 << 10
)

// Stat implements tracing.Tree.
func (g *guestTree) Stat(name string) (fs.FileInfo, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrInvalid}
	}
	return g.statAt(at(name), name)
}

func (g *guestTree) statAt(at, name string) (fs.FileInfo, error) {
	b := make([]byte, statSize)
	if _, err := g.serve("newfstatat", atFDCWD, at, b, atNoFollow); err != nil {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: asFS(err)}
	}
	mode := binary.LittleEndian.Uint32(b[statMode:])
	m := fs.FileMode(mode & 0o777)
	switch mode & syscall.S_IFMT {
	case syscall.S_IFDIR:
		m |= fs.ModeDir
	case syscall.S_IFLNK:
		m |= fs.ModeSymlink
	}
	return guestInfo{info{path.Base(name), m}, int64(binary.LittleEndian.Uint64(b[statBytes:]))}, nil
}

// guestInfo holds the attributes of a file in the guest.
type guestInfo struct {
	info
	size int64
}

// Size implements fs.FileInfo.
func (i guestInfo) Size() int64 { return i.size }

// asFS has errors.Is(err, fs.ErrNotExist) hold where the guest says so.
func asFS(err error) error {
	if errors.Is(err, errno.ENOENT) {
		return errors.Join(err, fs.ErrNotExist)
	}
	return err
}

// ReadDir implements tracing.Tree.
func (g *guestTree) ReadDir(name string) ([]fs.DirEntry, error) {
	fd, err := g.serve("openat", atFDCWD, at(name), syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: asFS(err)}
	}
	defer g.serve("close", fd)
	var list []fs.DirEntry
	for b := make([]byte, direntsAtOnce); ; {
		n, err := g.serve("getdents64", fd, b, len(b))
		if err != nil {
			return nil, &fs.PathError{Op: "readdir", Path: name, Err: err}
		}
		if n == 0 || len(list) > guestFolder {
			break
		}
		list = append(list, entries(b[:n])...)
	}
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return list, nil
}

// entries reads the records of getdents64: inode, offset, length, kind, name with a NUL.
func entries(b []byte) (list []fs.DirEntry) {
	for len(b) > direntName {
		n := int(binary.LittleEndian.Uint16(b[16:]))
		if n <= direntName || n > len(b) {
			break
		}
		name, _, _ := bytes.Cut(b[direntName:n], []byte{0})
		var mode fs.FileMode
		switch b[18] {
		case syscall.DT_DIR:
			mode = fs.ModeDir
		case syscall.DT_LNK:
			mode = fs.ModeSymlink
		}
		if s := string(name); s != "." && s != ".." {
			list = append(list, fs.FileInfoToDirEntry(info{s, mode}))
		}
		b = b[n:]
	}
	return list
}

// Mkdir implements Directories: in instances the kernel makes a buffer.
func (g *guestTree) Mkdir(name string) error {
	_, err := g.call("mkdir", at(name), 0o755)
	return err
}

// Rmdir implements Directories.
func (g *guestTree) Rmdir(name string) error {
	_, err := g.call("rmdir", at(name))
	return err
}
