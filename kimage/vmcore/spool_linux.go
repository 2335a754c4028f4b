package vmcore

import (
	"os"

	"golang.org/x/sys/unix"
)

// hiddenFile makes a file in memory.
func hiddenFile() (*os.File, error) {
	fd, err := unix.MemfdCreate("dump", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	return os.NewFile(uintptr(fd), "memfd:dump"), nil
}
