//go:build linux

package mount

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"testing/fstest"

	"kprobelab/errno"
	"kprobelab/tracing"
)

// fakeTree has a file of each sort: hello is read, sink collects writes, busy
// refuses truncation, refusing refuses writes, pipe waits.
type fakeTree struct {
	mu     sync.Mutex
	dirs   []string
	writes []string
	truncs int
	// wakeups lets that many waiting reads go on.
	wakeups chan struct{}
}

func newFakeTree() *fakeTree { return &fakeTree{wakeups: make(chan struct{}, 1000)} }

var (
	_ tracing.Tree = (*fakeTree)(nil)
	_ Directories  = (*fakeTree)(nil)
)

// fsys is the tree as it is now.
func (t *fakeTree) fsys() fstest.MapFS {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := fstest.MapFS{
		"hello": {Data: []byte("hello\n"), Mode: 0o444}, "sink": {Mode: 0o644}, "secret": {Data: []byte("secret\n"), Mode: 0o640}, "busy": {Mode: 0o644},
		"refusing": {Mode: 0o200}, "pipe": {Mode: 0o444}, "events/g/e/enable": {Data: []byte("0\n"), Mode: 0o644},
		"instances": {Mode: fs.ModeDir | 0o755},
	}
	for _, d := range t.dirs {
		m[d] = &fstest.MapFile{Mode: fs.ModeDir | 0o755}
	}
	return m
}

func (t *fakeTree) Open(name string) (fs.File, error)          { return t.fsys().Open(name) }
func (t *fakeTree) ReadDir(name string) ([]fs.DirEntry, error) { return t.fsys().ReadDir(name) }
func (t *fakeTree) Stat(name string) (fs.FileInfo, error)      { return t.fsys().Stat(name) }

func (t *fakeTree) OpenFile(name string, flag int) (tracing.Handle, error) {
	b, err := t.fsys().ReadFile(name)
	if err != nil {
		return nil, err
	}
	if flag&os.O_TRUNC != 0 {
		if name == "busy" {
			return nil, errno.EBUSY
		}
		t.mu.Lock()
		t.truncs++
		t.mu.Unlock()
	}
	return &fakeHandle{t: t, name: name, data: b}, nil
}

func (t *fakeTree) Mkdir(name string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if slices.Contains(t.dirs, name) {
		return errno.EEXIST
	}
	t.dirs = append(t.dirs, name)
	return nil
}

func (t *fakeTree) Rmdir(name string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.Index(t.dirs, name)
	if i < 0 {
		return errno.ENOENT
	}
	t.dirs = slices.Delete(t.dirs, i, i+1)
	return nil
}

// state returns the written texts, and the number of truncations.
func (t *fakeTree) state() (writes string, truncs int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.writes, "|"), t.truncs
}

type fakeHandle struct {
	t    *fakeTree
	name string
	data []byte
}

func (h *fakeHandle) ReadAt(ctx context.Context, b []byte, off int64) (int, error) {
	if h.name == "pipe" {
		select {
		case <-h.t.wakeups:
			return copy(b, "line\n"), nil
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	if off >= int64(len(h.data)) {
		return 0, nil
	}
	return bytes.NewReader(h.data).ReadAt(b[:min(len(b), len(h.data)-int(off))], off)
}

func (h *fakeHandle) WriteAt(b []byte, _ int64) (int, error) {
	if h.name == "refusing" {
		return 0, errno.EILSEQ
	}
	h.t.mu.Lock()
	defer h.t.mu.Unlock()
	if len(h.t.writes) < 100 {
		h.t.writes = append(h.t.writes, string(b))
	}
	return len(b), nil
}

func (h *fakeHandle) Close() error { return nil }

// fakeGuest records its calls.
type fakeGuest struct {
	mu    sync.Mutex
	lines []string
}

func (g *fakeGuest) say(line string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lines = append(g.lines, line)
}

func (g *fakeGuest) log() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return strings.Join(g.lines, "\n")
}

func (g *fakeGuest) Fork(p Process) { g.say("fork " + p.Comm) }
func (g *fakeGuest) Open(p Process, path string, flag int) int {
	g.say("open " + p.Comm + " " + path)
	return 7
}
func (g *fakeGuest) Read(p Process, fd, n int)         { g.say("read " + p.Comm) }
func (g *fakeGuest) Write(p Process, fd int, b []byte) { g.say("write " + p.Comm + " " + string(b)) }
func (g *fakeGuest) Close(_ Process, fd int)           { g.say("close") }
func (g *fakeGuest) Mkdir(p Process, path string)      { g.say("mkdir " + p.Comm + " " + path) }
func (g *fakeGuest) Rmdir(p Process, path string)      { g.say("rmdir " + p.Comm + " " + path) }
func (g *fakeGuest) Symlink(p Process, target, path string) {
	g.say("symlink " + p.Comm + " " + target + " " + path)
}
func (g *fakeGuest) Unlink(p Process, path string) { g.say("unlink " + p.Comm + " " + path) }
