package mount

import (
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"kprobelab/errno"
	"kprobelab/internal/bounded"
)

// MemTree is a tree of files in memory: folders, files, links, and files like
// /dev/null. It holds 16 MiB and 4096 names at most: ENOSPC. Its methods
// are safe for concurrent use.
type MemTree struct {
	mu sync.Mutex
	// entries maps paths to entries; "." is the root.
	entries map[string]*entry
	// bytes is the total size of all files.
	bytes int
}

// entry is a file, a folder or a link.
type entry struct {
	mode fs.FileMode
	data []byte
	// target is the target of a link.
	target string
	// null: the file holds nothing, and takes every write. fixed: it cannot be
	// removed. gone: it has no name any more.
	null, fixed, gone bool
}

var _ Store = (*MemTree)(nil)

// New has the root alone.
func NewMemTree() *MemTree {
	return &MemTree{entries: map[string]*entry{".": {mode: fs.ModeDir | 0o755, fixed: true}}}
}

// Fix makes a folder that cannot be removed.
func (t *MemTree) Fix(name string) error {
	return t.add(name, &entry{mode: fs.ModeDir | 0o777, fixed: true})
}

// Null makes a file that holds nothing and takes all, and cannot be removed.
func (t *MemTree) Null(name string) error {
	return t.add(name, &entry{mode: 0o666, null: true, fixed: true})
}

// find returns an existing entry. mu must be held.
func (t *MemTree) find(name string) (*entry, error) {
	if e := t.entries[name]; e != nil {
		return e, nil
	}
	return nil, noEntry{}
}

// add makes an entry in an existing folder.
func (t *MemTree) add(name string, e *entry) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	dir, err := t.find(path.Dir(name))
	switch {
	case err != nil:
		return err
	case !dir.mode.IsDir():
		return errno.ENOTDIR
	case t.entries[name] != nil:
		return errno.EEXIST
	case len(t.entries) >= bounded.MountEntries:
		return errno.ENOSPC
	}
	t.entries[name] = e
	return nil
}

// Create implements Maker.
func (t *MemTree) Create(name string, mode fs.FileMode) error {
	err := t.add(name, &entry{mode: mode})
	if err == errno.EEXIST {
		return nil
	}
	return err
}

// Mkdir implements Directories.
func (t *MemTree) Mkdir(name string) error { return t.add(name, &entry{mode: fs.ModeDir | 0o755}) }

// Symlink implements Maker.
func (t *MemTree) Symlink(target, name string) error {
	return t.add(name, &entry{mode: fs.ModeSymlink | 0o777, target: target})
}

// Readlink implements Maker.
func (t *MemTree) Readlink(name string) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e, err := t.find(name)
	switch {
	case err != nil:
		return "", err
	case e.mode&fs.ModeSymlink == 0:
		return "", errno.EINVAL
	}
	return e.target, nil
}

// Unlink implements Maker.
func (t *MemTree) Unlink(name string) error {
	return t.remove(name, func(e *entry) error {
		if e.mode.IsDir() {
			return errno.EISDIR
		}
		return nil
	})
}

// Rmdir implements Directories.
func (t *MemTree) Rmdir(name string) error {
	return t.remove(name, func(e *entry) error {
		switch {
		case !e.mode.IsDir():
			return errno.ENOTDIR
		case len(t.below(name)) > 0:
			return errno.ENOTEMPTY
		}
		return nil
	})
}

func (t *MemTree) remove(name string, allowed func(*entry) error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	e, err := t.find(name)
	if err == nil {
		err = allowed(e)
	}
	switch {
	case err != nil:
		return err
	case e.fixed:
		return errno.EBUSY
	}
	delete(t.entries, name)
	e.gone = true
	t.bytes -= len(e.data)
	return nil
}

// Truncate implements Maker.
func (t *MemTree) Truncate(name string, size int64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	e, err := t.find(name)
	if err != nil || e.null {
		return err
	}
	return t.resize(e, size)
}

// resize gives a file a size. mu must be held.
func (t *MemTree) resize(e *entry, size int64) error {
	grow := size - int64(len(e.data))
	switch {
	case size < 0:
		return errno.EINVAL
	case int64(t.bytes)+grow > bounded.MountBytes, size > bounded.MountBytes:
		return errno.ENOSPC
	case grow > 0:
		e.data = append(e.data, make([]byte, grow)...)
	default:
		e.data = e.data[:size]
	}
	if !e.gone {
		t.bytes += int(grow)
	}
	return nil
}

// below lists the paths in a folder. mu must be held.
func (t *MemTree) below(dir string) []string {
	var list []string
	for name := range t.entries {
		if name != "." && path.Dir(name) == dir {
			list = append(list, name)
		}
	}
	slices.SortFunc(list, strings.Compare)
	return list
}

// Stat implements tracing.Tree.
func (t *MemTree) Stat(name string) (fs.FileInfo, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e, err := t.find(name)
	if err != nil {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	return e.info(name), nil
}

// ReadDir implements tracing.Tree.
func (t *MemTree) ReadDir(name string) ([]fs.DirEntry, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e, err := t.find(name); err != nil {
		return nil, err
	} else if !e.mode.IsDir() {
		return nil, errno.ENOTDIR
	}
	return t.list(name), nil
}

// list returns the entries of a folder. mu must be held.
func (t *MemTree) list(dir string) []fs.DirEntry {
	var list []fs.DirEntry
	for _, n := range t.below(dir) {
		list = append(list, fs.FileInfoToDirEntry(t.entries[n].info(n)))
	}
	return list
}
