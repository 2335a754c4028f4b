//go:build unix && !solaris && !illumos && !aix

package download

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Lock takes the lock of a name, which no two processes have at once, and returns a function that
// releases it. While another process has it, waiting is called once, if it is not nil.
func Lock(ctx context.Context, name string, waiting func()) (func(), error) {
	for {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			return nil, err
		}
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		for {
			err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
			if err == nil {
				break
			}
			if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
				// A file system without locks.
				return func() { f.Close() }, nil
			}
			if waiting != nil {
				waiting()
				waiting = nil
			}
			select {
			case <-ctx.Done():
				f.Close()
				return nil, context.Cause(ctx)
			case <-time.After(50 * time.Millisecond):
			}
		}
		// Another process may have removed the file meanwhile: then the lock is on a file without a
		// name.
		mine, err1 := f.Stat()
		there, err2 := os.Stat(name)
		if err1 == nil && err2 == nil && os.SameFile(mine, there) {
			return func() { f.Close() }, nil
		}
		f.Close()
	}
}
