// Package errno has the kernel's error numbers as errors.
//
// A refusal in this project wraps one of them, so that a caller can ask
// errors.Is(err, errno.EILSEQ), or on Linux errors.Is(err, unix.EILSEQ). The
// numbers are the guest kernel's and the same on every host, which the host's
// own syscall package would not give.
//
// It must not know who refuses, or why.
package errno

import (
	"errors"
	"strconv"
	"strings"
)

// Errno is a positive error number of Linux on x86-64.
type Errno int

// The error numbers that the kprobes subsystem and its files return, and what loads
// programs and modules.
const (
	EPERM         Errno = 1
	ENOENT        Errno = 2
	ESRCH         Errno = 3
	EINTR         Errno = 4
	EIO           Errno = 5
	ENXIO         Errno = 6
	E2BIG         Errno = 7
	ENOEXEC       Errno = 8
	EBADF         Errno = 9
	ECHILD        Errno = 10
	EAGAIN        Errno = 11
	ENOMEM        Errno = 12
	EACCES        Errno = 13
	EFAULT        Errno = 14
	EBUSY         Errno = 16
	EEXIST        Errno = 17
	ENODEV        Errno = 19
	ENOTDIR       Errno = 20
	EISDIR        Errno = 21
	EINVAL        Errno = 22
	ENFILE        Errno = 23
	EMFILE        Errno = 24
	ENOTTY        Errno = 25
	EFBIG         Errno = 27
	ENOSPC        Errno = 28
	ESPIPE        Errno = 29
	EROFS         Errno = 30
	EPIPE         Errno = 32
	ERANGE        Errno = 34
	ENAMETOOLONG  Errno = 36
	ENOSYS        Errno = 38
	ENOTEMPTY     Errno = 39
	ELOOP         Errno = 40
	ENODATA       Errno = 61
	EPROTO        Errno = 71
	EILSEQ        Errno = 84
	EOPNOTSUPP    Errno = 95
	EADDRNOTAVAIL Errno = 99
	ETIMEDOUT     Errno = 110
	ECANCELED     Errno = 125
	ENOTSUPP      Errno = 524
)

// Name is the symbolic name, such as "EILSEQ", or "errno N" for a number that
// no error has.
func (e Errno) Name() string {
	if n, ok := names()[e]; ok {
		return n.name
	}
	return "errno " + strconv.Itoa(int(e))
}

// Known says whether Linux has an error of that number.
func (e Errno) Known() bool {
	_, ok := names()[e]
	return ok
}

// Error is Text in lower case, or the number for one of the kernel's own errors,
// which has no text.
func (e Errno) Error() string {
	n, ok := names()[e]
	if !ok || n.text == "" {
		return "errno " + strconv.Itoa(int(e))
	}
	if strings.HasPrefix(n.text, "RFS") {
		return n.text
	}
	return strings.ToLower(n.text[:1]) + n.text[1:]
}

// Text returns the text of the C library's strerror: "Success" for 0, and "Unknown error N"
// for a number that strerror does not know.
func (e Errno) Text() string {
	if e == 0 {
		return "Success"
	}
	if n := names()[e]; n.text != "" {
		return n.text
	}
	return "Unknown error " + strconv.Itoa(int(e))
}

// Is lets errors.Is compare with the host's own number on Linux.
func (e Errno) Is(target error) bool { return isHost(e, target) }

// Of returns the number that err carries, 0 for nil, and EINVAL for an error
// that carries none. It is the one place where an error becomes a number.
func Of(err error) Errno {
	if err == nil {
		return 0
	}
	var e Errno
	if errors.As(err, &e) {
		return e
	}
	return EINVAL
}
