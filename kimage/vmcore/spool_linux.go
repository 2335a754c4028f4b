package vmcore

import (
	"os"

	"golang.org/x/sys/unix"
)

// largeFiles is the folder for large temporary files (file-hierarchy(7)).
const largeFiles = "/var/tmp"

// inMemory reports whether a folder's files are in memory.
func inMemory(dir string) bool {
	var s unix.Statfs_t
	return unix.Statfs(dir, &s) == nil && (s.Type == unix.TMPFS_MAGIC || s.Type == unix.RAMFS_MAGIC)
}

// hiddenFile makes a file in memory.
func hiddenFile() (*os.File, error) {
	fd, err := unix.MemfdCreate("dump", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	return os.NewFile(uintptr(fd), "memfd:dump"), nil
}
