package hostfiles

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"kprobelab/internal/bounded"
)

// tree is a file system as its programs see it: a folder of the host is its root.
type tree string

// merged are the folders that are links into /usr on most systems. A tree of unpacked packages lacks the links, for a
// package of its own has them.
var merged = map[string]bool{"bin": true, "sbin": true, "lib": true, "lib32": true, "lib64": true}

// host is the file of the host at a path without links.
func (t tree) host(p string) string { return filepath.Join(string(t), filepath.FromSlash(p)) }

// real follows the links of a path as the kernel does for a program whose root is the tree: none leads out of it.
func (t tree) real(p string) (string, error) {
	todo, done, links := strings.Split(p, "/"), "/", 0
	for len(todo) > 0 {
		name := todo[0]
		todo = todo[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			done = path.Dir(done)
			continue
		}
		next := path.Join(done, name)
		if len(next) > bounded.GuestPath {
			return "", &fs.PathError{Op: "open", Path: p, Err: syscall.ENAMETOOLONG}
		}
		info, err := os.Lstat(t.host(next))
		if err != nil && done == "/" && merged[name] && t != "/" {
			if merge, err := os.Stat(t.host("/usr/" + name)); err == nil && merge.IsDir() {
				done = "/usr/" + name
				continue
			}
		}
		if err != nil {
			return "", err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			done = next
			continue
		}
		if links++; links > bounded.GuestLinks {
			return "", &fs.PathError{Op: "open", Path: p, Err: syscall.ELOOP}
		}
		to, err := os.Readlink(t.host(next))
		if err != nil {
			return "", err
		}
		if path.IsAbs(to) {
			done = "/"
		}
		todo = append(strings.Split(to, "/"), todo...)
	}
	return done, nil
}

// regular is the real path of a file, and what the host says of it. Other than regular files are refused.
func (t tree) regular(p string) (string, fs.FileInfo, error) {
	real, err := t.real(p)
	if err != nil {
		return "", nil, err
	}
	info, err := os.Stat(t.host(real))
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("it is %s, no file", kind(info.Mode()))
	}
	return real, info, err
}

// kind names what a file is that is not regular.
func kind(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a folder"
	case m&fs.ModeDevice != 0:
		return "a device"
	case m&fs.ModeNamedPipe != 0:
		return "a pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	}
	return "of no known kind"
}
