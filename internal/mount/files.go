//go:build linux

package mount

import (
	"errors"
	"os"
	"syscall"

	"kprobelab/errno"
)

// regularFile is the size of a file of the host, which a uprobe may be in.
func regularFile(name string) (int64, error) {
	i, err := os.Stat(name)
	var no syscall.Errno
	switch {
	case errors.As(err, &no):
		return 0, errno.Errno(no)
	case err != nil:
		return 0, errno.ENOENT
	case !i.Mode().IsRegular():
		return 0, errno.EINVAL
	}
	return i.Size(), nil
}
