package tracing

import (
	"context"
	"io/fs"
)

// Tree is the tree of tracing files, as paths without a leading slash below
// the tracing directory ("kprobe_events", "events/kprobes/p1/enable"). Go
// tests use it as an fs.FS, the run command and the mount through handles.
//
// Open reads a file whole, as it is at that moment; a file that streams (trace_pipe) returns the
// available content and then ends. Errors wrap an errno.Errno (and fs.ErrNotExist where that fits).
// All methods, and the handles' methods, are safe for concurrent use.
type Tree interface {
	fs.FS
	fs.ReadDirFS
	fs.StatFS
	// OpenFile opens a file. flag is a combination of os.O_RDONLY, O_WRONLY,
	// O_RDWR, O_APPEND and O_TRUNC: some files act on truncation
	// (kprobe_events deletes, trace clears), and fail with EBUSY then. EACCES
	// where the file's mode forbids it, EISDIR for a directory, ENOENT.
	OpenFile(name string, flag int) (Handle, error)
}

// Handle is an open file.
type Handle interface {
	// ReadAt reads at an offset; 0 bytes and no error is the end of the file.
	// A file that streams ignores the offset and waits for data, until ctx is
	// done (its error) or the handle is closed.
	ReadAt(ctx context.Context, b []byte, off int64) (int, error)
	// WriteAt is one write system call: tracing files act on each by itself. It
	// returns how many bytes the file took, all of b or fewer, with an error
	// where it refused.
	WriteAt(b []byte, off int64) (int, error)
	// Close ends the use of the file. A read that waits ends with EBADF.
	Close() error
}
