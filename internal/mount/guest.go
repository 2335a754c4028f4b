package mount

// Guest is the guest kernel, which repeats the operations on the files: its vfs_open, vfs_read,
// vfs_write and kernel_clone run before the tree acts, so that probes on them fire. Calls may come
// from several goroutines.
type Guest interface {
	// Fork reports that a process has made another one, somewhere on the host. If many come at once
	// only some are reported.
	Fork(p Process)
	// Open returns a number for the opened file, for the other calls.
	Open(p Process, path string, flag int) int
	// Read gets the number of bytes that can be read, Write the written bytes.
	Read(p Process, fd, n int)
	Write(p Process, fd int, b []byte)
	Close(p Process, fd int)
	// Mkdir, Rmdir, Symlink and Unlink report a new or removed name.
	Mkdir(p Process, path string)
	Rmdir(p Process, path string)
	Symlink(p Process, target, path string)
	Unlink(p Process, path string)
}

// Process is a process of the host.
type Process struct {
	PID int
	// Comm is its name, 15 bytes at most; empty where the host does not tell.
	Comm string
}

// noGuest is a Guest in which nothing happens.
type noGuest struct{}

func (noGuest) Fork(Process)                    {}
func (noGuest) Open(Process, string, int) int   { return -1 }
func (noGuest) Read(Process, int, int)          {}
func (noGuest) Write(Process, int, []byte)      {}
func (noGuest) Close(Process, int)              {}
func (noGuest) Mkdir(Process, string)           {}
func (noGuest) Rmdir(Process, string)           {}
func (noGuest) Symlink(Process, string, string) {}
func (noGuest) Unlink(Process, string)          {}
