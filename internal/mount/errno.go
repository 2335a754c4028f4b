//go:build linux

package mount

import (
	"context"
	"errors"
	"io/fs"
	"syscall"

	"kprobelab/errno"
)

// hostErrno is the one place where errors become the host's numbers. The
// guest's are Linux's on x86-64, and so are the host's, but for what no
// tracing file returns.
func hostErrno(err error) syscall.Errno {
	var e errno.Errno
	switch {
	case err == nil:
		return 0
	case errors.As(err, &e):
		return syscall.Errno(e)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return syscall.EINTR
	case errors.Is(err, fs.ErrNotExist):
		return syscall.ENOENT
	case errors.Is(err, fs.ErrExist):
		return syscall.EEXIST
	case errors.Is(err, fs.ErrPermission):
		return syscall.EACCES
	case errors.Is(err, fs.ErrInvalid):
		return syscall.EINVAL
	case errors.Is(err, fs.ErrClosed):
		return syscall.EBADF
	}
	return syscall.EIO
}
