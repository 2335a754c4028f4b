package qemu

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

// Entry is a file of the initramfs.
type Entry struct {
	// Name is its path in the guest.
	Name string
	// Mode is its type and permissions (stat(2), st_mode).
	Mode uint32
	// Data is its content, unless From is set, the path of a file of the host. The data of a link
	// is its target.
	Data []byte
	From string
	// Major and Minor are a device's numbers.
	Major, Minor uint32
}

// File types and permissions of the archive's entries (stat(2), st_mode).
const (
	ModeFile   = 0o100000
	ModeFolder = 0o040000
	ModeLink   = 0o120000
	ModeDevice = 0o020000
)

// archive writes an initramfs in the form that the kernel unpacks
// (Documentation/driver-api/early-userspace/buffer-format.rst, "newc").
type archive struct {
	w     *bufio.Writer
	n     int64
	inode int
}

// maxFile is the longest file that the form can say.
const maxFile = 1<<32 - 1

// add appends an entry.
func (a *archive) add(e Entry) error {
	data, size := io.Reader(strings.NewReader(string(e.Data))), int64(len(e.Data))
	if e.From != "" {
		f, n, err := openFile(e.From)
		if err != nil {
			return err
		}
		defer f.Close()
		data, size = f, n
	}
	a.inode++
	// Magic, then inode, mode, owner, group, links, time, size, the device it
	// lies on, the device it is, the name's length with its NUL, no checksum.
	head := fmt.Sprintf("070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%s\x00",
		a.inode, e.Mode, 0, 0, 1, 0, size, 0, 0, e.Major, e.Minor, len(e.Name)+1, 0, e.Name)
	if err := a.put(strings.NewReader(head), int64(len(head)), e.Name); err != nil {
		return err
	}
	return a.put(data, size, e.Name)
}

// put appends so many bytes, and the padding after them.
func (a *archive) put(r io.Reader, n int64, name string) error {
	got, err := io.CopyN(a.w, r, n)
	if err == io.EOF {
		err = fmt.Errorf("%s: it became shorter while it was read", name)
	}
	if err != nil {
		return err
	}
	for a.n += got; a.n%4 != 0; a.n++ {
		if err := a.w.WriteByte(0); err != nil {
			return err
		}
	}
	return nil
}

// openFile opens a regular file, and returns its size.
func openFile(name string) (io.ReadCloser, int64, error) {
	f, err := os.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = fmt.Errorf("%s is no regular file", name)
	case info.Size() > maxFile:
		err = fmt.Errorf("%s is longer than an initramfs can have it", name)
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// writeInitramfs writes an archive with the init program, a console for it, and the files, in
// order; a folder comes before its content.
func writeInitramfs(w io.Writer, init []byte, files []Entry) error {
	a := archive{w: bufio.NewWriter(w)}
	for _, e := range slices.Concat([]Entry{
		{Name: "dev", Mode: ModeFolder | 0o755},
		{Name: "dev/console", Mode: ModeDevice | 0o600, Major: 5, Minor: 1},
		// Go's runtime opens it when it starts without standard files.
		{Name: "dev/null", Mode: ModeDevice | 0o600, Major: 1, Minor: 3},
		{Name: "init", Mode: ModeFile | 0o755, Data: init},
	}, files, []Entry{{Name: "TRAILER!!!"}}) {
		e.Name = strings.TrimPrefix(e.Name, "/")
		if err := a.add(e); err != nil {
			return err
		}
	}
	return a.w.Flush()
}

// entries are files by their absolute paths in the guest, in order.
func entries(files map[string][]byte) (list []Entry) {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		list = append(list, Entry{Name: name, Mode: ModeFile | 0o644, Data: files[name]})
	}
	return list
}
