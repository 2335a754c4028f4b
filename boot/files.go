package boot

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"kprobelab/internal/bounded"
	"kprobelab/internal/qemu"
)

// File is a file, a folder or a link of the guest.
type File struct{ entry qemu.Entry }

// Regular makes a file of the guest.
func Regular(name string, perm fs.FileMode, data []byte) File {
	return File{qemu.Entry{Name: name, Mode: qemu.ModeFile | uint32(perm.Perm()), Data: data}}
}

// Files returns a file or a folder of the host, with everything in it, for a path of the
// guest. Permissions are kept; what is neither a file, a folder nor a link is
// left out.
func Files(host, guest string) ([]File, error) {
	if !path.IsAbs(guest) {
		return nil, fmt.Errorf("%q is no absolute path of the guest", guest)
	}
	// The file that is named may be a link; links in a folder stay links.
	root, err := filepath.EvalSymlinks(host)
	if err != nil {
		return nil, err
	}
	var list []File
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		e := qemu.Entry{Name: path.Join(guest, filepath.ToSlash(inside)), Mode: uint32(info.Mode().Perm())}
		switch {
		case info.IsDir():
			e.Mode |= qemu.ModeFolder
		case info.Mode().IsRegular():
			e.Mode |= qemu.ModeFile
			e.From = name
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(name)
			if err != nil {
				return err
			}
			e.Mode, e.Data = qemu.ModeLink|0o777, []byte(to)
		default:
			return nil
		}
		if list = append(list, File{e}); len(list) > bounded.GuestFiles {
			return fmt.Errorf("%s has more than %d files", host, bounded.GuestFiles)
		}
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

// order sorts a folder before what is in it.
func order(name string) string { return strings.ReplaceAll(name, "/", "\x00") }
