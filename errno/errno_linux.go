package errno

import "syscall"

func isHost(e Errno, target error) bool {
	t, ok := target.(syscall.Errno)
	return ok && syscall.Errno(e) == t
}
