package mount

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"kprobelab/tracing"
)

// Maker is an optional interface of a Tree in which files and links can be made. Errors are like
// OpenFile's.
type Maker interface {
	// Create makes an empty file; it does nothing if the file exists.
	Create(name string, mode fs.FileMode) error
	Symlink(target, name string) error
	Readlink(name string) (string, error)
	// Unlink removes a file or a link. Open handles of it stay usable.
	Unlink(name string) error
	// Truncate gives a file a size in bytes.
	Truncate(name string, size int64) error
}

// Store is a tree in which everything can be made.
type Store interface {
	tracing.Tree
	Directories
	Maker
}

// Graft is the tree with another tree at a path, where a folder must exist.
func Graft(t tracing.Tree, at string, s Store) tracing.Tree {
	return &graft{Tree: t, at: at, store: s}
}

type graft struct {
	tracing.Tree
	at    string
	store Store
}

var (
	_ Maker       = (*graft)(nil)
	_ Directories = (*graft)(nil)
)

// within converts a path to a path in the store.
func (g *graft) within(name string) (string, bool) {
	if name == g.at {
		return ".", true
	}
	return strings.CutPrefix(name, g.at+"/")
}

// OpenFile implements tracing.Tree.
func (g *graft) OpenFile(name string, flag int) (tracing.Handle, error) {
	if in, ok := g.within(name); ok {
		return g.store.OpenFile(in, flag)
	}
	return g.Tree.OpenFile(name, flag)
}

// Stat implements tracing.Tree.
func (g *graft) Stat(name string) (fs.FileInfo, error) {
	if in, ok := g.within(name); ok {
		return g.store.Stat(in)
	}
	return g.Tree.Stat(name)
}

// Open implements fs.FS.
func (g *graft) Open(name string) (fs.File, error) {
	if in, ok := g.within(name); ok {
		return g.store.Open(in)
	}
	return g.Tree.Open(name)
}

// ReadDir implements tracing.Tree.
func (g *graft) ReadDir(name string) ([]fs.DirEntry, error) {
	if in, ok := g.within(name); ok {
		return g.store.ReadDir(in)
	}
	list, err := g.Tree.ReadDir(name)
	if err == nil && name == path.Dir(g.at) {
		list = append(list, fs.FileInfoToDirEntry(info{path.Base(g.at), fs.ModeDir | 0o755}))
		slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	}
	return list, err
}

// Mkdir implements Directories, as Rmdir does.
func (g *graft) Mkdir(name string) error {
	return g.directories(name, g.store.Mkdir, Directories.Mkdir)
}

// Rmdir implements Directories.
func (g *graft) Rmdir(name string) error {
	return g.directories(name, g.store.Rmdir, Directories.Rmdir)
}

func (g *graft) directories(name string, inside func(string) error, outside func(Directories, string) error) error {
	if in, ok := g.within(name); ok {
		return inside(in)
	}
	if d, ok := g.Tree.(Directories); ok {
		return outside(d, name)
	}
	return fs.ErrPermission
}

// make makes something at a path. Outside of the graft nothing can be made, as
// in tracefs.
func (g *graft) make(name string, fn func(in string) error) error {
	if in, ok := g.within(name); ok {
		return fn(in)
	}
	return fs.ErrPermission
}

// Create implements Maker.
func (g *graft) Create(name string, mode fs.FileMode) error {
	return g.make(name, func(in string) error { return g.store.Create(in, mode) })
}

// Symlink implements Maker.
func (g *graft) Symlink(target, name string) error {
	return g.make(name, func(in string) error { return g.store.Symlink(target, in) })
}

// Readlink implements Maker.
func (g *graft) Readlink(name string) (target string, err error) {
	err = g.make(name, func(in string) error { target, err = g.store.Readlink(in); return err })
	return target, err
}

// Unlink implements Maker.
func (g *graft) Unlink(name string) error { return g.make(name, g.store.Unlink) }

// Truncate implements Maker.
func (g *graft) Truncate(name string, size int64) error {
	return g.make(name, func(in string) error { return g.store.Truncate(in, size) })
}
