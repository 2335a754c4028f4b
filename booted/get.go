package booted

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"kprobelab/errno"
	"kprobelab/hostfiles"
	"kprobelab/internal/bounded"
	"kprobelab/x86"
)

// ErrOut is a file of the guest that is not taken out: no file, no folder, too large.
var ErrOut = errors.New("it is not taken out of the guest")

// Flags and types of stat(2) and open(2), as the kernel's headers have them.
const (
	readOnly   = 0x0
	nonblock   = 0x800
	noLinks    = 0x20000 // O_NOFOLLOW
	onlyFolder = 0x10000 // O_DIRECTORY
	regular    = 0o100000
	link       = 0o120000
)

// kinds name what else a guest's file can be.
var kinds = map[uint32]string{link: "a link", 0o020000: "a device", 0o060000: "a device", 0o010000: "a pipe", 0o140000: "a socket"}

// Get reads a file of the booted kernel, or a folder with everything in it, by system calls of init. The paths of the
// files begin with the one that is asked for. Links, devices, and files that the bounds do not allow are an ErrOut; the
// error is a *FileError with the path.
func (k *Kernel) Get(guest string) ([]hostfiles.File, error) {
	if _, err := k.toInit(); err != nil {
		return nil, err
	}
	if !path.IsAbs(guest) {
		return nil, &FileError{guest, fmt.Errorf("%w: its path is not absolute", ErrOut)}
	}
	g := &getting{k: k}
	err := g.get(path.Clean(guest), 0)
	return g.files, err
}

// getting holds the files that Get has read so far, and the sum of their bytes.
type getting struct {
	k     *Kernel
	files []hostfiles.File
	bytes int64
}

func (g *getting) get(name string, depth int) error {
	st, err := g.k.stat(name, noFollow)
	if err != nil {
		return &FileError{name, err}
	}
	f := hostfiles.File{Path: name, Mode: fs.FileMode(st.mode & 0o777), Modified: st.modified.Unix()}
	refuse := func(format string, args ...any) error {
		return &FileError{name, fmt.Errorf("%w: "+format, append([]any{ErrOut}, args...)...)}
	}
	switch kind := st.mode & format; {
	case len(g.files) == bounded.GuestFiles:
		return refuse("there are more than %d files", bounded.GuestFiles)
	case len(name) > bounded.GuestPath || depth > bounded.GuestDepth:
		return refuse("its folders lie too deep in each other")
	case kind == folder:
		f.Mode |= fs.ModeDir
		g.files = append(g.files, f)
		return g.folder(name, depth)
	case kind != regular && kinds[kind] != "":
		return refuse("it is %s", kinds[kind])
	case kind != regular:
		return refuse("its mode is %#o", st.mode)
	}
	if f.Data, err = g.file(name, st.size); err != nil {
		return &FileError{name, err}
	}
	g.files = append(g.files, f)
	return nil
}

// file reads a file to its end. The end is not at the file's size, which procfs and its like give as 0; a size that is too large is
// refused before anything is read.
func (g *getting) file(name string, size int64) ([]byte, error) {
	if size > bounded.GuestOut-g.bytes {
		return nil, errLarge
	}
	fd, err := g.k.asks("openat", atCurrent, name, readOnly|nonblock|noLinks|closeExec)
	if err != nil {
		return nil, err
	}
	var all [][]byte
	for {
		b, err := g.k.piece("read", fd)
		if err == nil {
			all = append(all, b)
			if g.bytes += int64(len(b)); g.bytes > bounded.GuestOut {
				err = errLarge
			}
		}
		if err != nil || len(b) == 0 {
			_, closed := g.k.asks("close", fd)
			if err == nil {
				err = closed
			}
			if err != nil {
				return nil, err
			}
			return bytes.Join(all, nil), nil
		}
	}
}

var errLarge = fmt.Errorf("%w: there is more than %d MiB", ErrOut, bounded.GuestOut>>20)

// piece reads what a system call puts into a buffer: read(2), getdents64(2).
func (k *Kernel) piece(call string, fd int64) ([]byte, error) {
	if err := k.MapUser(pieceSize); err != nil {
		return nil, err
	}
	n, err := k.asks(call, fd, k.user.at, pieceSize)
	if err != nil || n == 0 {
		return nil, err
	}
	if n < 0 || n > pieceSize {
		return nil, errno.EIO
	}
	b := make([]byte, n)
	return b, k.machine.ReadUser(x86.Addr(k.user.at), b)
}

// folder reads what is in a folder, in the order of the names.
func (g *getting) folder(name string, depth int) error {
	fd, err := g.k.asks("openat", atCurrent, name, readOnly|onlyFolder|noLinks|closeExec)
	if err != nil {
		return &FileError{name, err}
	}
	var names []string
	for {
		b, err := g.k.piece("getdents64", fd)
		if err == nil {
			var more []string
			more, err = entries(b)
			names = append(names, more...)
		}
		if err == nil && len(names) > bounded.GuestFiles {
			err = fmt.Errorf("%w: it has more than %d files", ErrOut, bounded.GuestFiles)
		}
		if err != nil {
			return &FileError{name, err}
		}
		if len(b) == 0 {
			break
		}
	}
	if _, err := g.k.asks("close", fd); err != nil {
		return &FileError{name, err}
	}
	slices.Sort(names)
	for _, n := range names {
		if err := g.get(path.Join(name, n), depth+1); err != nil {
			return err
		}
	}
	return nil
}

// entries are the names of getdents64(2). A kernel that has been changed may say anything.
func entries(b []byte) (names []string, err error) {
	const head = 19 // of struct linux_dirent64
	for len(b) > 0 {
		if len(b) < head {
			return nil, errno.EIO
		}
		size := int(binary.LittleEndian.Uint16(b[16:]))
		if size < head || size > len(b) {
			return nil, errno.EIO
		}
		name, _, _ := bytes.Cut(b[head:size], []byte{0})
		b = b[size:]
		switch n := string(name); {
		case n == "." || n == "..":
		case n == "" || bytes.ContainsRune(name, '/'):
			return nil, fmt.Errorf("%w: it has a file of the name %q", ErrOut, n)
		default:
			names = append(names, n)
		}
	}
	return names, nil
}
