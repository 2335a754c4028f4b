//go:build linux

package mount

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"sync"
	"syscall"

	"kprobelab/errno"
	"kprobelab/internal/bounded"
	"kprobelab/tracing"
)

// What the guest's files may take of this process.
const (
	guestOpen     = 256      // open files; init may have 1,024 by default
	guestLowest   = 500      // the lowest number of one
	guestTransfer = 64 << 10 // bytes of one system call
	guestFolder   = 1 << 16  // entries of a folder
	guestWhole    = 64 << 20 // bytes of a file that is read whole
)

// onClose are files whose changes the kernel makes when they are closed. The host reports the close
// some time later, so these files are closed and opened again after each write.
var onClose = map[string]bool{
	"set_ftrace_filter": true, "set_ftrace_notrace": true, "set_graph_function": true, "set_graph_notrace": true, "stack_trace_filter": true,
}

// guestHandle is an open file of the guest's. In the guest it never waits: init is to go on
// serving others, and the wait is here.
type guestHandle struct {
	g    *guestTree
	path string
	flag int
	// mu protects the rest.
	mu  sync.Mutex
	fd  int64
	pos int64
	// word holds the text written after the last blank, for a file that the kernel changes on closing;
	// the guest gets it with the text that follows. uncommitted reports that closing would change something.
	word        []byte
	uncommitted bool
	closed      chan struct{}
}

// OpenFile implements tracing.Tree.
func (g *guestTree) OpenFile(name string, flag int) (tracing.Handle, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	return g.openAt(at(name), flag)
}

func (g *guestTree) openAt(at string, flag int) (tracing.Handle, error) {
	g.openMu.Lock()
	defer g.openMu.Unlock()
	if g.open >= guestOpen {
		return nil, errno.EMFILE
	}
	flag &= syscall.O_ACCMODE | os.O_APPEND | os.O_TRUNC
	fd, err := g.descriptor(at, flag)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: at, Err: asFS(err)}
	}
	g.open++
	return &guestHandle{
		g: g, path: at, flag: flag, fd: fd, closed: make(chan struct{}),
		uncommitted: onClose[path.Base(at)] && flag&os.O_TRUNC != 0,
	}, nil
}

// descriptor opens a file. The low numbers are left to the calls of kprobelab/call.
func (g *guestTree) descriptor(at string, flag int) (int64, error) {
	low, err := g.serve("openat", atFDCWD, at, flag|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	fd, err := g.serve("fcntl", low, syscall.F_DUPFD_CLOEXEC, guestLowest)
	_, failed := g.serve("close", low)
	if failed == nil || err != nil {
		return fd, err
	}
	g.serve("close", fd)
	return 0, failed
}

// ReadAt implements tracing.Handle.
func (h *guestHandle) ReadAt(ctx context.Context, b []byte, off int64) (int, error) {
	for {
		next := h.g.next()
		n, err := h.read(b, off)
		if !errors.Is(err, errno.EAGAIN) || tracing.IsNonBlocking(ctx) {
			return n, err
		}
		select {
		case <-next:
		case <-h.closed:
			return 0, errno.EBADF
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

func (h *guestHandle) read(b []byte, off int64) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.seek(off); err != nil {
		return 0, err
	}
	buf := make([]byte, min(len(b), guestTransfer))
	n, err := h.g.serve("read", h.fd, buf, len(buf))
	if err != nil {
		return 0, err
	}
	h.pos += n
	return copy(b, buf[:n]), nil
}

// seek goes to an offset, of a file that has such.
func (h *guestHandle) seek(off int64) error {
	if off == h.pos {
		return nil
	}
	_, err := h.g.serve("lseek", h.fd, off, io.SeekStart)
	if err == nil || errors.Is(err, errno.ESPIPE) || errors.Is(err, errno.EINVAL) { // it streams
		h.pos = off
		return nil
	}
	return err
}

// WriteAt implements tracing.Handle.
func (h *guestHandle) WriteAt(b []byte, _ int64) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !onClose[path.Base(h.path)] {
		return h.write(b)
	}
	h.uncommitted = true
	all := append(h.word, b...)
	end := bytes.LastIndexAny(all, " \t\n") + 1
	h.word = bytes.Clone(all[end:])
	if done, err := h.writeAll(all[:end]); err != nil {
		h.word = nil
		return max(0, done-(len(all)-len(b))), err
	}
	if len(h.word) > 0 {
		return len(b), nil
	}
	return len(b), h.commit()
}

// writeAll writes until nothing is left. A kernel that accepts no more byte gives EIO.
func (h *guestHandle) writeAll(b []byte) (done int, err error) {
	for done < len(b) {
		n, err := h.write(b[done:])
		if done += n; err != nil {
			return done, err
		}
		if n == 0 {
			return done, errno.EIO
		}
	}
	return done, nil
}

// write is one system call.
func (h *guestHandle) write(b []byte) (int, error) {
	b = b[:min(len(b), guestTransfer)]
	n, err := h.g.call("write", h.fd, bytes.Clone(b), len(b))
	return int(n), err
}

// commit makes the kernel apply its changes on closing.
func (h *guestHandle) commit() error {
	if !h.uncommitted {
		return nil
	}
	h.uncommitted = false
	if len(h.word) > 0 {
		_, err := h.writeAll(h.word)
		h.word = nil
		if err != nil {
			return err
		}
	}
	// A descriptor is closed whatever close returns.
	_, closed := h.g.serve("close", h.fd)
	h.fd, h.pos = -1, 0
	fd, err := h.g.descriptor(h.path, h.flag&^os.O_TRUNC)
	if err == nil {
		h.fd = fd
	}
	return errors.Join(closed, err)
}

// Flush is called at each close of a file of the host.
func (h *guestHandle) Flush() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.commit()
}

// Close implements tracing.Handle.
func (h *guestHandle) Close() error {
	close(h.closed)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.g.openMu.Lock()
	h.g.open--
	h.g.openMu.Unlock()
	if h.fd < 0 {
		return nil
	}
	_, err := h.g.serve("close", h.fd)
	h.fd = -1
	return err
}

// Stat returns the attributes of the file while it is open.
func (h *guestHandle) Stat() (fs.FileInfo, error) { return h.g.statAt(h.path, path.Base(h.path)) }

// opened is a file whose content was read when it was opened, or a folder.
type opened struct {
	*bytes.Reader
	info fs.FileInfo
	rest []fs.DirEntry
}

func (f *opened) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *opened) Close() error               { return nil }

// ReadDir implements fs.ReadDirFile.
func (f *opened) ReadDir(n int) ([]fs.DirEntry, error) {
	if n <= 0 {
		list := f.rest
		f.rest = nil
		return list, nil
	}
	if len(f.rest) == 0 {
		return nil, io.EOF
	}
	n = min(n, len(f.rest))
	list := f.rest[:n]
	f.rest = f.rest[n:]
	return list, nil
}

// Open implements fs.FS: a file as it is now.
func (g *guestTree) Open(name string) (fs.File, error) {
	i, err := g.Stat(name)
	if err != nil {
		return nil, err
	}
	if i.IsDir() {
		list, err := g.ReadDir(name)
		return &opened{bytes.NewReader(nil), i, list}, err
	}
	h, err := g.OpenFile(name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	all, err := bounded.ReadAll(sequential{h, new(int64)}, guestWhole)
	if errors.Is(err, errno.EAGAIN) { // it would wait
		err = nil
	}
	return &opened{bytes.NewReader(all), i, nil}, err
}

// sequential reads a handle from its beginning.
type sequential struct {
	h   tracing.Handle
	pos *int64
}

// Read implements io.Reader.
func (s sequential) Read(b []byte) (int, error) {
	n, err := s.h.ReadAt(tracing.NonBlocking(context.Background()), b, *s.pos)
	*s.pos += int64(n)
	if n == 0 && err == nil {
		err = io.EOF
	}
	return n, err
}
