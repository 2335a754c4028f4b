package hostfiles

import (
	"cmp"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// File is a file, a folder or a symbolic link for a guest.
type File struct {
	// Path is its path in the guest: absolute, and clean as path.Clean has it.
	Path string
	// Mode has its type (regular, fs.ModeDir or fs.ModeSymlink) and its permissions.
	Mode fs.FileMode
	// From names the file of the host with its content, Size bytes. If it is empty, Data is the content.
	From string
	Size int64
	Data []byte
	// Link is the target of a symbolic link, "" for other files.
	Link string
	// Modified is the time of its last change in seconds since 1970; 0 leaves it to the guest.
	Modified int64
}

// Ordered sorts files so that each follows the folder it lies in, and adds the folders that no file names. Of two files
// of one path, the later one counts.
func Ordered(files []File) []File {
	all := map[string]File{}
	for _, f := range files {
		f.Path = path.Clean(f.Path)
		all[f.Path] = f
		for dir := path.Dir(f.Path); dir != "/"; dir = path.Dir(dir) {
			if _, there := all[dir]; !there {
				all[dir] = File{Path: dir, Mode: fs.ModeDir | 0o755}
			}
		}
	}
	delete(all, "/")
	var list []File
	for _, f := range all {
		list = append(list, f)
	}
	slices.SortFunc(list, func(a, b File) int { return cmp.Compare(order(a.Path), order(b.Path)) })
	return list
}

// order sorts a folder before its files.
func order(name string) string { return strings.ReplaceAll(name, "/", "\x00") }
