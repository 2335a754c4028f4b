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
	EMFILE        Errno = 24
	ENOTTY        Errno = 25
	ENOSPC        Errno = 28
	ESPIPE        Errno = 29
	ERANGE        Errno = 34
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

var texts = map[Errno][2]string{
	EPERM:         {"EPERM", "operation not permitted"},
	ENOENT:        {"ENOENT", "no such file or directory"},
	ESRCH:         {"ESRCH", "no such process"},
	EINTR:         {"EINTR", "interrupted system call"},
	EIO:           {"EIO", "input/output error"},
	ENXIO:         {"ENXIO", "no such device or address"},
	E2BIG:         {"E2BIG", "argument list too long"},
	ENOEXEC:       {"ENOEXEC", "exec format error"},
	EBADF:         {"EBADF", "bad file descriptor"},
	ECHILD:        {"ECHILD", "no child processes"},
	EAGAIN:        {"EAGAIN", "resource temporarily unavailable"},
	ENOMEM:        {"ENOMEM", "cannot allocate memory"},
	EACCES:        {"EACCES", "permission denied"},
	EFAULT:        {"EFAULT", "bad address"},
	EBUSY:         {"EBUSY", "device or resource busy"},
	EEXIST:        {"EEXIST", "file exists"},
	ENODEV:        {"ENODEV", "no such device"},
	ENOTDIR:       {"ENOTDIR", "not a directory"},
	EISDIR:        {"EISDIR", "is a directory"},
	EINVAL:        {"EINVAL", "invalid argument"},
	EMFILE:        {"EMFILE", "too many open files"},
	ENOTTY:        {"ENOTTY", "inappropriate ioctl for device"},
	ENOSPC:        {"ENOSPC", "no space left on device"},
	ESPIPE:        {"ESPIPE", "illegal seek"},
	ERANGE:        {"ERANGE", "numerical result out of range"},
	ENOSYS:        {"ENOSYS", "function not implemented"},
	ENOTEMPTY:     {"ENOTEMPTY", "directory not empty"},
	ELOOP:         {"ELOOP", "too many levels of symbolic links"},
	ENODATA:       {"ENODATA", "no data available"},
	EPROTO:        {"EPROTO", "protocol error"},
	EILSEQ:        {"EILSEQ", "invalid or incomplete multibyte or wide character"},
	EOPNOTSUPP:    {"EOPNOTSUPP", "operation not supported"},
	EADDRNOTAVAIL: {"EADDRNOTAVAIL", "cannot assign requested address"},
	ETIMEDOUT:     {"ETIMEDOUT", "connection timed out"},
	ECANCELED:     {"ECANCELED", "operation canceled"},
	ENOTSUPP:      {"ENOTSUPP", "errno 524"},
}

// Name is the symbolic name, such as "EILSEQ", or "errno N" for a number that
// this package does not list.
func (e Errno) Name() string {
	if t, ok := texts[e]; ok {
		return t[0]
	}
	return "errno " + strconv.Itoa(int(e))
}

// Error is the text that strerror gives, in lower case.
func (e Errno) Error() string {
	if t, ok := texts[e]; ok {
		return t[1]
	}
	return e.Name()
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
