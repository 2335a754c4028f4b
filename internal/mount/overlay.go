package mount

import (
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"kprobelab/tracing"
)

// File is a file that is laid over a tree.
type File struct {
	// Mode has the permission bits.
	Mode fs.FileMode
	// Open opens it; flag is as of tracing.Tree's OpenFile.
	Open func(flag int) (tracing.Handle, error)
}

// Directories is an optional interface of a Tree in which directories can be made and removed, as
// in instances. Errors are like OpenFile's.
type Directories interface {
	Mkdir(name string) error
	Rmdir(name string) error
}

// Overlay adds the caller's files to the tree, by their paths. It makes the folders of those paths.
func Overlay(t tracing.Tree, files map[string]File) tracing.Tree {
	return &overlay{Tree: t, files: files}
}

type overlay struct {
	tracing.Tree
	files map[string]File
}

// OpenFile implements tracing.Tree.
func (o *overlay) OpenFile(name string, flag int) (tracing.Handle, error) {
	if f, ok := o.files[name]; ok {
		return f.Open(flag)
	}
	return o.Tree.OpenFile(name, flag)
}

// Stat implements tracing.Tree.
func (o *overlay) Stat(name string) (fs.FileInfo, error) {
	if f, ok := o.files[name]; ok {
		return info{path.Base(name), f.Mode}, nil
	}
	i, err := o.Tree.Stat(name)
	if err != nil && len(o.below(name)) > 0 {
		return info{path.Base(name), fs.ModeDir | 0o755}, nil
	}
	return i, err
}

// ReadDir implements tracing.Tree.
func (o *overlay) ReadDir(name string) ([]fs.DirEntry, error) {
	own := o.below(name)
	list, err := o.Tree.ReadDir(name)
	if err != nil && len(own) == 0 {
		return nil, err
	}
	for _, e := range own {
		i := slices.IndexFunc(list, func(d fs.DirEntry) bool { return d.Name() == e.Name() })
		if i < 0 {
			list = append(list, e)
		} else if !list[i].IsDir() {
			list[i] = e
		}
	}
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return list, nil
}

// below lists the overlay's entries in a folder.
func (o *overlay) below(dir string) []fs.DirEntry {
	var list []fs.DirEntry
	seen := map[string]bool{}
	for name, f := range o.files {
		rest := name
		if dir != "." {
			var ok bool
			if rest, ok = strings.CutPrefix(name, dir+"/"); !ok {
				continue
			}
		}
		first, _, deeper := strings.Cut(rest, "/")
		if seen[first] {
			continue
		}
		seen[first] = true
		mode := f.Mode
		if deeper {
			mode = fs.ModeDir | 0o755
		}
		list = append(list, fs.FileInfoToDirEntry(info{first, mode}))
	}
	return list
}

// Mkdir implements Directories where the tree does.
func (o *overlay) Mkdir(name string) error {
	if d, ok := o.Tree.(Directories); ok {
		return d.Mkdir(name)
	}
	return fs.ErrPermission
}

// Rmdir implements Directories where the tree does.
func (o *overlay) Rmdir(name string) error {
	if d, ok := o.Tree.(Directories); ok {
		return d.Rmdir(name)
	}
	return fs.ErrPermission
}

// info is the result of Stat of a file of the overlay.
type info struct {
	name string
	mode fs.FileMode
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return 0 }
func (i info) Mode() fs.FileMode  { return i.mode }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) IsDir() bool        { return i.mode.IsDir() }
func (i info) Sys() any           { return nil }
