package qemu

import (
	"bytes"
	"fmt"
)

// archive is an initramfs in the form that the kernel unpacks
// (Documentation/driver-api/early-userspace/buffer-format.rst, "newc").
type archive struct {
	b     bytes.Buffer
	inode int
}

// File types and permissions of the archive's entries (stat(2), st_mode).
const (
	modeExecutable = 0o100755
	modeFile       = 0o100644
	modeFolder     = 0o040755
	modeDevice     = 0o020600
)

// add appends an entry; major and minor are a device's numbers.
func (a *archive) add(name string, mode int, data []byte, major, minor int) {
	a.inode++
	// Magic, then inode, mode, owner, group, links, time, size, the device it
	// lies on, the device it is, the name's length with its NUL, no checksum.
	fmt.Fprintf(&a.b, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%s\x00",
		a.inode, mode, 0, 0, 1, 0, len(data), 0, 0, major, minor, len(name)+1, 0, name)
	a.align()
	a.b.Write(data)
	a.align()
}

func (a *archive) align() {
	for a.b.Len()%4 != 0 {
		a.b.WriteByte(0)
	}
}

// initramfs makes an archive with the init program, a console for it, and the
// files by their absolute paths in the guest.
func initramfs(init []byte, files map[string][]byte) []byte {
	var a archive
	a.add("dev", modeFolder, nil, 0, 0)
	a.add("dev/console", modeDevice, nil, 5, 1)
	// Go's runtime opens it when it starts without standard files.
	a.add("dev/null", modeDevice, nil, 1, 3)
	a.add("init", modeExecutable, init, 0, 0)
	for name, data := range files {
		a.add(name[1:], modeFile, data, 0, 0)
	}
	a.add("TRAILER!!!", 0, nil, 0, 0)
	return a.b.Bytes()
}
