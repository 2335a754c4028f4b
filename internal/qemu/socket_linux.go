package qemu

import (
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// longestSocket is the longest path of a socket (struct sockaddr_un).
const longestSocket = 107

// shortSocket is a shorter path of a socket whose own path is too long.
func shortSocket(path string) (short string, done func()) {
	nothing := func() {}
	if len(path) <= longestSocket {
		return path, nothing
	}
	dir, err := unix.Open(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return path, nothing
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", dir, filepath.Base(path)), func() { _ = unix.Close(dir) }
}
