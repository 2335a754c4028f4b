package mount

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"time"

	"kprobelab/errno"
	"kprobelab/tracing"
)

// OpenFile implements tracing.Tree.
func (t *MemTree) OpenFile(name string, flag int) (tracing.Handle, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e, err := t.find(name)
	switch {
	case err != nil:
	case e.mode.IsDir():
		err = errno.EISDIR
	case flag&os.O_TRUNC != 0 && !e.null:
		err = t.resize(e, 0)
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return &memHandle{t: t, e: e, name: name, atEnd: flag&os.O_APPEND != 0}, nil
}

// memHandle is an open file.
type memHandle struct {
	t     *MemTree
	e     *entry
	name  string
	atEnd bool
}

// ReadAt implements tracing.Handle.
func (h *memHandle) ReadAt(_ context.Context, b []byte, off int64) (int, error) {
	h.t.mu.Lock()
	defer h.t.mu.Unlock()
	if off < 0 || off >= int64(len(h.e.data)) {
		return 0, nil
	}
	return copy(b, h.e.data[off:]), nil
}

// WriteAt implements tracing.Handle.
func (h *memHandle) WriteAt(b []byte, off int64) (int, error) {
	h.t.mu.Lock()
	defer h.t.mu.Unlock()
	if h.e.null {
		return len(b), nil
	}
	if h.atEnd {
		off = int64(len(h.e.data))
	}
	if end := off + int64(len(b)); end > int64(len(h.e.data)) {
		if err := h.t.resize(h.e, end); err != nil {
			return 0, err
		}
	}
	return copy(h.e.data[off:], b), nil
}

// Stat describes the file, which may have no name any more.
func (h *memHandle) Stat() (fs.FileInfo, error) {
	h.t.mu.Lock()
	defer h.t.mu.Unlock()
	return h.e.info(h.name), nil
}

// Close implements tracing.Handle.
func (h *memHandle) Close() error { return nil }

// memInfo is the result of Stat and ReadDir.
type memInfo struct {
	name string
	mode fs.FileMode
	size int64
}

func (e *entry) info(name string) memInfo {
	return memInfo{path.Base(name), e.mode, int64(len(e.data) + len(e.target))}
}

func (i memInfo) Name() string       { return i.name }
func (i memInfo) Size() int64        { return i.size }
func (i memInfo) Mode() fs.FileMode  { return i.mode }
func (i memInfo) ModTime() time.Time { return time.Time{} }
func (i memInfo) IsDir() bool        { return i.mode.IsDir() }
func (i memInfo) Sys() any           { return nil }

// Open implements fs.FS: a file as it is at that moment.
func (t *MemTree) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	e, err := t.find(name)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return &file{bytes.NewReader(slices.Clone(e.data)), e.info(name), t.list(name)}, nil
}

// file is a file or a folder that Open gave.
type file struct {
	*bytes.Reader
	info memInfo
	rest []fs.DirEntry
}

func (f *file) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *file) Close() error               { return nil }

// ReadDir implements fs.ReadDirFile.
func (f *file) ReadDir(n int) ([]fs.DirEntry, error) {
	switch {
	case n <= 0:
		n = len(f.rest)
	case len(f.rest) == 0:
		return nil, io.EOF
	}
	n = min(n, len(f.rest))
	list := f.rest[:n]
	f.rest = f.rest[n:]
	return list, nil
}

// noEntry is ENOENT, to Go's file systems too.
type noEntry struct{}

func (noEntry) Error() string   { return errno.ENOENT.Error() }
func (noEntry) Unwrap() []error { return []error{errno.ENOENT, fs.ErrNotExist} }
