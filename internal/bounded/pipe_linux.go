package bounded

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

var errNoWriter = errors.New("nothing writes to this FIFO")

// openPipe opens a FIFO once it has a writer that has written something or has
// closed it.
func openPipe(name string, wait time.Duration) (*os.File, error) {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	if err = waitForWriter(fd, wait); err == nil {
		err = unix.SetNonblock(fd, false)
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}

func waitForWriter(fd int, wait time.Duration) error {
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for end := time.Now().Add(wait); ; {
		n, err := unix.Poll(p, int(max(0, time.Until(end).Milliseconds())))
		switch {
		case n > 0:
			return nil
		case err == nil:
			return errNoWriter
		case !errors.Is(err, unix.EINTR):
			return err
		}
	}
}
