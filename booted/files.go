package booted

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"time"

	"kprobelab/errno"
	"kprobelab/hostfiles"
	"kprobelab/internal/bounded"
	"kprobelab/x86"
)

// What the kernel's headers say (include/uapi/asm-generic/fcntl.h, include/uapi/linux/fcntl.h, include/uapi/linux/stat.h).
const (
	atCurrent = -100 // AT_FDCWD
	noFollow  = 0x100
	writeOnly = 0x1
	create    = 0x40
	truncate  = 0x200
	closeExec = 0x80000
	folder    = 0o040000
	format    = 0o170000
)

// pieceSize is the number of bytes that one write(2) gets.
const pieceSize = 1 << 20

// FileError is a file that the booted kernel did not take, or did not give. It unwraps to the errno, or to the host's error.
type FileError struct {
	// Path is the file's in the guest.
	Path string
	Err  error
}

// Error is one sentence.
func (e *FileError) Error() string {
	if errors.Is(e.Err, errno.ENOSPC) || errors.Is(e.Err, errno.ENOMEM) {
		return fmt.Sprintf("%s does not fit into the guest's memory (%v)", e.Path, e.Err)
	}
	return fmt.Sprintf("%s in the guest: %v", e.Path, e.Err)
}

// Unwrap is the cause.
func (e *FileError) Unwrap() error { return e.Err }

// Put writes files into the booted kernel's file system, by system calls of init: folders, files with their
// content, permissions and time, and links. Folders that are missing are made. An existing file is replaced; a
// folder is never replaced by a file. The error is a *FileError, or the machine's.
func (k *Kernel) Put(files []hostfiles.File) error {
	for _, f := range hostfiles.Ordered(files) {
		if err := k.put(f); err != nil {
			return err
		}
	}
	return nil
}

func (k *Kernel) put(f hostfiles.File) (err error) {
	switch {
	case f.Mode.IsDir():
		err = k.putFolder(f)
	case f.Mode&fs.ModeSymlink != 0:
		err = k.putLink(f)
	case f.Mode.IsRegular():
		err = k.putFile(f)
	default:
		err = errno.EINVAL
	}
	if err != nil {
		return &FileError{f.Path, err}
	}
	if f.Modified == 0 {
		return nil
	}
	return k.setTime(f)
}

// putFolder makes a folder; one that is there keeps its permissions.
func (k *Kernel) putFolder(f hostfiles.File) error {
	_, err := k.asks("mkdirat", atCurrent, f.Path, int(f.Mode.Perm()))
	if !errors.Is(err, errno.EEXIST) {
		return err
	}
	st, err := k.stat(f.Path, 0)
	if err == nil && st.mode&format != folder {
		err = errno.ENOTDIR
	}
	return err
}

// putLink makes a symbolic link. If what it leads to is already there under its path, by a link of the guest's folders,
// nothing is to be done.
func (k *Kernel) putLink(f hostfiles.File) error {
	to := f.Link
	if !path.IsAbs(to) {
		to = path.Join(path.Dir(f.Path), to)
	}
	if there, err := k.stat(f.Path, noFollow); err == nil {
		if target, err := k.stat(to, noFollow); err == nil && target.same(there) {
			return nil
		}
		if _, err := k.asks("unlinkat", atCurrent, f.Path, 0); err != nil {
			return err
		}
	}
	_, err := k.asks("symlinkat", f.Link, atCurrent, f.Path)
	return err
}

// putFile writes a file.
func (k *Kernel) putFile(f hostfiles.File) (err error) {
	if there, err := k.stat(f.Path, noFollow); err == nil && there.mode&format != folder {
		// A file of its own: no link is followed, and a program that runs keeps the old one.
		if _, err := k.asks("unlinkat", atCurrent, f.Path, 0); err != nil {
			return err
		}
	}
	fd, err := k.asks("openat", atCurrent, f.Path, writeOnly|create|truncate|closeExec, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if _, e := k.asks("close", fd); err == nil {
			err = e
		}
	}()
	if f.From == "" {
		if err := k.write(fd, f.Data); err != nil {
			return err
		}
	} else if err := k.copyFile(fd, f); err != nil {
		return err
	}
	_, err = k.asks("fchmod", fd, int(f.Mode.Perm()))
	return err
}

// copyFile writes the content of the host's file.
func (k *Kernel) copyFile(fd int64, f hostfiles.File) error {
	from, err := bounded.Open(f.From)
	if err != nil {
		return err
	}
	defer from.Close()
	r := io.LimitReader(from, f.Size)
	for b, left := make([]byte, pieceSize), f.Size; left > 0; {
		n, err := io.ReadFull(r, b[:min(pieceSize, left)])
		if err != nil {
			return fmt.Errorf("%s became shorter while it was read", f.From)
		}
		if err := k.write(fd, b[:n]); err != nil {
			return err
		}
		left -= int64(n)
	}
	return nil
}

// write writes bytes to a descriptor of init's, piece by piece.
func (k *Kernel) write(fd int64, b []byte) error {
	for len(b) > 0 {
		piece := b[:min(pieceSize, len(b))]
		if err := k.MapUser(pieceSize); err != nil {
			return err
		}
		if err := k.machine.WriteUser(k.user.at, piece); err != nil {
			return err
		}
		n, err := k.asks("write", fd, k.user.at, len(piece))
		if err != nil {
			return err
		}
		if n <= 0 || int(n) > len(piece) {
			return errno.EIO
		}
		b = b[n:]
	}
	return nil
}

// setTime sets when a file was changed.
func (k *Kernel) setTime(f hostfiles.File) error {
	both := make([]byte, 32) // struct timespec: of access and of change
	for i := range 2 {
		binary.LittleEndian.PutUint64(both[16*i:], uint64(f.Modified))
	}
	if _, err := k.asks("utimensat", atCurrent, f.Path, both, noFollow); err != nil {
		return &FileError{f.Path, err}
	}
	return nil
}

// stat holds the fields of newfstatat(2) that Put and Get use.
type stat struct {
	dev, ino uint64
	mode     uint32
	size     int64
	modified time.Time
}

func (s stat) same(o stat) bool { return s.dev == o.dev && s.ino == o.ino }

func (k *Kernel) stat(name string, flags int) (stat, error) {
	b := make([]byte, 144) // struct stat (arch/x86/include/uapi/asm/stat.h)
	if _, err := k.asks("newfstatat", atCurrent, name, b, flags); err != nil {
		return stat{}, err
	}
	word := func(at int) uint64 { return binary.LittleEndian.Uint64(b[at:]) }
	return stat{word(0), word(8), uint32(word(24)), int64(word(48)), time.Unix(int64(word(88)), 0)}, nil
}

// asks makes a system call as init; a failure is its errno.
func (k *Kernel) asks(name string, args ...any) (int64, error) {
	words := make([]any, len(args))
	for i, a := range args {
		if at, is := a.(x86.Addr); is {
			a = uint64(at)
		}
		words[i] = a
	}
	ret, err := k.SystemCall(name, words...)
	if err == nil && ret < 0 && ret >= -4095 {
		err = errno.Errno(-ret)
	}
	return ret, err
}
