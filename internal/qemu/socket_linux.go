package qemu

import (
	"fmt"
	"os"
	"path/filepath"
)

// longestSocket is how long a socket's path may be (struct sockaddr_un).
const longestSocket = 107

// shortSocket is a shorter path of a socket whose own path is too long.
func shortSocket(path string) (short string, done func()) {
	nothing := func() {}
	if len(path) <= longestSocket {
		return path, nothing
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return path, nothing
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path)), func() { _ = dir.Close() }
}
