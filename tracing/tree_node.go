package tracing

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"kprobelab/errno"
)

// node is a file or a folder of the tree, made when it is looked up.
type node struct {
	name string
	mode fs.FileMode
	// list are a folder's entries.
	list func() []*node
	// read returns a file's text, write makes one write to it, and trunc acts on an opening with
	// truncation. mu is held in all of them.
	read  func() string
	write func(b []byte) (int, error)
	trunc func() error
	// open makes the handle of a file that is not a text.
	open func(flag int) Handle
}

// Modes of files and folders in tracefs.
const (
	modeRead  = 0o440
	modeWrite = 0o640
	modeOnly  = 0o220
	modeDir   = fs.ModeDir | 0o750
)

func folder(name string, list func() []*node) *node {
	return &node{name: name, mode: modeDir, list: list}
}

func text(name string, read func() string) *node {
	return &node{name: name, mode: modeRead, read: read}
}

// setting is a file that is read as a text, and acts on each write by itself.
func setting(name string, read func() string, write func(text string) error) *node {
	return &node{name: name, mode: modeWrite, read: read, write: func(b []byte) (int, error) {
		if err := write(string(b)); err != nil {
			return 0, err
		}
		return len(b), nil
	}}
}

var _ Tree = (*Tracing)(nil)

// walk finds a path. mu must be held.
func (t *Tracing) walk(name string) (*node, error) {
	if err := t.usable(); err != nil {
		return nil, err
	}
	if !fs.ValidPath(name) {
		return nil, errno.EINVAL
	}
	n := folder(".", t.root)
	if name == "." {
		return n, nil
	}
	for part := range strings.SplitSeq(name, "/") {
		if n.list == nil {
			return nil, errno.ENOTDIR
		}
		entries := n.list()
		i := slices.IndexFunc(entries, func(e *node) bool { return e.name == part })
		if i < 0 {
			return nil, noEntry{}
		}
		n = entries[i]
	}
	return n, nil
}

// noEntry is ENOENT, to Go's file systems too.
type noEntry struct{}

func (noEntry) Error() string   { return errno.ENOENT.Error() }
func (noEntry) Unwrap() []error { return []error{errno.ENOENT, fs.ErrNotExist} }

func (t *Tracing) locked(op, name string) (*node, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, err := t.walk(name)
	if err != nil {
		return nil, &fs.PathError{Op: op, Path: name, Err: err}
	}
	return n, nil
}

// Stat implements Tree. Sizes are 0, as in tracefs.
func (t *Tracing) Stat(name string) (fs.FileInfo, error) {
	n, err := t.locked("stat", name)
	if err != nil {
		return nil, err
	}
	return info{name: path.Base(name), mode: n.mode}, nil
}

// ReadDir implements Tree; entries are sorted by name.
func (t *Tracing) ReadDir(name string) ([]fs.DirEntry, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, err := t.walk(name)
	if err == nil && n.list == nil {
		err = errno.ENOTDIR
	}
	if err != nil {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: err}
	}
	var list []fs.DirEntry
	for _, e := range n.list() {
		list = append(list, fs.FileInfoToDirEntry(info{name: e.name, mode: e.mode}))
	}
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return list, nil
}

// OpenFile implements Tree.
func (t *Tracing) OpenFile(name string, flag int) (Handle, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, err := t.walk(name)
	if err == nil {
		err = n.allows(flag)
	}
	if err == nil && flag&os.O_TRUNC != 0 && n.trunc != nil && wants(flag, os.O_WRONLY) {
		err = n.trunc()
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	if n.open != nil {
		return n.open(flag), nil
	}
	return &textHandle{t: t, n: n, flag: flag}, nil
}

// wants reports whether an open flag includes reading (O_RDONLY) or writing.
func wants(flag, how int) bool {
	access := flag & (os.O_RDONLY | os.O_WRONLY | os.O_RDWR)
	return access == os.O_RDWR || access == how
}

func (n *node) allows(flag int) error {
	switch {
	case n.list != nil:
		return errno.EISDIR
	case wants(flag, os.O_RDONLY) && n.mode&0o400 == 0, wants(flag, os.O_WRONLY) && n.mode&0o200 == 0:
		return errno.EACCES
	}
	return nil
}

// info is the result of Stat and of ReadDir.
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

// Write writes a text to a file as the shell does: "echo text > name", or with add "echo text >>
// name". The rest of a short write is written by further ones. It is for Go tests.
func (t *Tracing) Write(name, text string, add bool) error {
	flag := os.O_WRONLY | os.O_TRUNC
	if add {
		flag = os.O_WRONLY | os.O_APPEND
	}
	h, err := t.OpenFile(name, flag)
	if err != nil {
		return err
	}
	for rest, n := []byte(text), 0; ; {
		if n, err = h.WriteAt(rest, 0); err != nil {
			err = fmt.Errorf("write %s: %w", name, err)
		}
		if rest = rest[n:]; err != nil || len(rest) == 0 || n == 0 {
			return firstError(err, h.Close())
		}
	}
}

func firstError(a, b error) error {
	if a != nil {
		return a
	}
	return b
}
