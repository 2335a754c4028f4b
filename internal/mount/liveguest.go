//go:build linux

package mount

import (
	"fmt"
	"os"
	"strings"
	"sync"

	"kprobelab"
	"kprobelab/machine"
)

// guest drives the guest kernel's file functions and kernel_clone. With an image that has none of
// them it does nothing (a real kernel's need a booted system).
type guest struct {
	live *Live
	// current is the process for which guest code runs, under the tracing
	// lock.
	current Process
	// files are the paths that the guest has, dirs the dentries of the tracing
	// folders; mu protects them and broken.
	mu    sync.Mutex
	files map[string]bool
	dirs  map[string]int64
	// has says which of the functions exist.
	has map[string]bool
	// broken is the last error, so that each is logged once.
	broken string
}

var _ Guest = (*guest)(nil)

// functions are the entries that can be called.
var functions = []string{
	"sys_fork", "sys_open", "sys_read", "sys_write", "sys_close", "sys_mkdir", "sys_rmdir", "sys_symlink", "sys_unlink",
	"tracefs_create_dir", "tracefs_remove",
}

// find looks up the functions that can be called: only functions of the guest kernel inside the
// program. A real kernel's functions of these names cannot be called from outside.
func (g *guest) find() {
	g.files, g.dirs, g.has = map[string]bool{}, map[string]int64{}, map[string]bool{}
	if g.live.lab.Image.Name() != kprobelab.GuestKernel {
		return
	}
	for _, name := range functions {
		g.has[name] = len(g.live.lab.Image.Lookup(name)) > 0
	}
	// There before the disk is full.
	if v, err := g.live.lab.Machine.Call("sys_open", machine.UserString(otherFile), os.O_CREATE, openMode); err == nil {
		_, _ = g.live.lab.Machine.Call("sys_close", v)
	}
}

// task names who runs, for the records: the process for which a call is made.
func (g *guest) task(n int) (pid int, comm string) {
	if n == 0 && g.current.PID != 0 {
		return g.current.PID, g.current.Comm
	}
	return n + 1, fmt.Sprintf("task-%d", n)
}

// run calls a function of the guest's. A fault in it is logged, and no system
// call fails for it.
func (g *guest) run(p Process, name string, args ...any) (ret int64, ok bool) {
	if !g.has[name] {
		return 0, false
	}
	err := g.live.do(p, func() error {
		v, err := g.live.lab.Machine.Call(name, args...)
		ret = int64(v)
		return err
	})
	if err != nil {
		g.tell(fmt.Sprintf("%s: %v", name, err))
	}
	return ret, err == nil
}

func (g *guest) tell(line string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if line != g.broken {
		g.broken = line
		g.live.log(line)
	}
}

// Fork implements Guest.
func (g *guest) Fork(p Process) { g.run(p, "sys_fork") }

// A name in the guest has 63 bytes at most, and its disk has room for some
// files only: files beyond that share one name.
const (
	maxName   = 63
	maxFiles  = 12
	otherFile = "/sys/kernel/tracing/..."
	openMode  = 0o644
)

// guestRoot is the folder of the mount that the guest has as its root.
const guestRoot = "kprobelab/root"

// guestPath is the path in the guest of a path in the  Of a long one it
// is the end.
func guestPath(path string) string {
	if in, ok := strings.CutPrefix(path, "/"+guestRoot+"/"); ok {
		path = "/" + in
	} else {
		path = "/sys/kernel/tracing" + path
	}
	return path[max(0, len(path)-maxName):]
}

// name returns the name of a file in the guest.
func (g *guest) name(path string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if path = guestPath(path); !g.files[path] {
		if len(g.files) >= maxFiles {
			return otherFile
		}
		g.files[path] = true
	}
	return path
}

// Open implements Guest.
func (g *guest) Open(p Process, path string, flag int) int {
	g.live.settle()
	flag = flag&(os.O_RDONLY|os.O_WRONLY|os.O_RDWR) | os.O_CREATE
	name := g.name(path)
	fd, ok := g.run(p, "sys_open", machine.UserString(name), flag, openMode)
	if ok && fd < 0 && name != otherFile { // the disk is full
		fd, ok = g.run(p, "sys_open", machine.UserString(otherFile), flag, openMode)
	}
	if !ok || fd < 0 {
		return -1
	}
	return int(fd)
}

// createDir is called for a new folder in the tracing tree, and removeDir for a removed one.
func (g *guest) createDir(name string) {
	if d, ok := g.run(Process{}, "tracefs_create_dir", name, 0); ok {
		g.mu.Lock()
		g.dirs[name] = d
		g.mu.Unlock()
	}
}

func (g *guest) removeDir(name string) {
	g.mu.Lock()
	d, ok := g.dirs[name]
	delete(g.dirs, name)
	g.mu.Unlock()
	if ok {
		g.run(Process{}, "tracefs_remove", d)
	}
}

// Mkdir implements Guest.
func (g *guest) Mkdir(p Process, path string) {
	g.live.settle()
	g.run(p, "sys_mkdir", machine.UserString(guestPath(path)), 0o755)
}

// Rmdir implements Guest.
func (g *guest) Rmdir(p Process, path string) {
	g.live.settle()
	g.run(p, "sys_rmdir", machine.UserString(guestPath(path)))
}

// Symlink implements Guest.
func (g *guest) Symlink(p Process, target, path string) {
	g.live.settle()
	target = target[:min(len(target), maxName)]
	g.run(p, "sys_symlink", machine.UserString(target), machine.UserString(guestPath(path)))
}

// Unlink implements Guest.
func (g *guest) Unlink(p Process, path string) {
	g.live.settle()
	path = guestPath(path)
	g.mu.Lock()
	delete(g.files, path)
	g.mu.Unlock()
	g.run(p, "sys_unlink", machine.UserString(path))
}

// transfer is the most that one read or write of the guest's moves: its files
// hold 1024 bytes.
const transfer = 256

// Read implements Guest.
func (g *guest) Read(p Process, fd, n int) {
	if fd >= 0 {
		g.run(p, "sys_read", fd, make(machine.User, min(n, transfer)), min(n, transfer))
	}
}

// Write implements Guest.
func (g *guest) Write(p Process, fd int, b []byte) {
	if fd >= 0 && len(b) > 0 {
		b = b[:min(len(b), transfer)]
		g.run(p, "sys_write", fd, append(machine.User(nil), b...), len(b))
	}
}

// Close implements Guest.
func (g *guest) Close(p Process, fd int) {
	if fd >= 0 {
		g.run(p, "sys_close", fd)
	}
}
