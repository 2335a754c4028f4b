package boot

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"kprobelab/hostfiles"
	"kprobelab/internal/qemu"
)

// File is a file, a folder or a link of the guest.
type File struct{ entry qemu.Entry }

// Regular makes a file of the guest.
func Regular(name string, perm fs.FileMode, data []byte) File {
	return File{qemu.Entry{Name: name, Mode: qemu.ModeFile | uint32(perm.Perm()), Data: data}}
}

// ErrFiles is a text that is not HOST:GUEST.
var ErrFiles = errors.New("not HOST:GUEST with an absolute path of the guest")

// ParseFiles reads HOST:GUEST, and returns the files as Files does.
func ParseFiles(text string) ([]File, error) {
	host, guest, ok := strings.Cut(text, ":")
	if !ok || host == "" || !strings.HasPrefix(guest, "/") {
		return nil, fmt.Errorf("%q is %w", text, ErrFiles)
	}
	return Files(host, guest)
}

// Files returns a file or a folder of the host, with everything in it, for a path of the guest.
// Permissions are kept; entries other than files, folders and links are left out.
func Files(host, guest string) ([]File, error) {
	var list []File
	err := hostfiles.Walk(host, guest, func(f hostfiles.File) error {
		e := qemu.Entry{Name: f.Path, Mode: uint32(f.Mode.Perm()), From: f.From, Data: []byte(f.Link)}
		switch {
		case f.Mode.IsDir():
			e.Mode |= qemu.ModeFolder
		case f.Link != "":
			e.Mode |= qemu.ModeLink
		default:
			e.Mode |= qemu.ModeFile
		}
		list = append(list, File{e})
		return nil
	})
	return list, err
}

// folders adds the folders that the files lie in, and puts them all in an order in which
// the kernel can unpack them. Of two entries of one name, the later one counts.
func folders(files []File) []qemu.Entry {
	all := map[string]qemu.Entry{}
	for _, f := range files {
		e := f.entry
		e.Name = path.Clean(e.Name)
		all[e.Name] = e
		for dir := path.Dir(e.Name); dir != "/"; dir = path.Dir(dir) {
			if _, there := all[dir]; !there {
				all[dir] = qemu.Entry{Name: dir, Mode: qemu.ModeFolder | 0o755}
			}
		}
	}
	delete(all, "/")
	var list []qemu.Entry
	for _, e := range all {
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b qemu.Entry) int { return cmp.Compare(order(a.Name), order(b.Name)) })
	return list
}

// Has reports whether a guest with these files has one at an absolute path before any of its
// programs has run. What a link leads to is not looked at: it counts as there.
func Has(files []File, name string) bool {
	name = path.Clean(name)
	if strings.HasPrefix(name, "/proc/") {
		return true
	}
	return slices.ContainsFunc(files, func(f File) bool {
		at := path.Clean(f.entry.Name)
		link := f.entry.Mode&0o170000 == qemu.ModeLink && strings.HasPrefix(name, at+"/")
		return at == name || link
	})
}

// order sorts a folder before its content.
func order(name string) string { return strings.ReplaceAll(name, "/", "\x00") }
