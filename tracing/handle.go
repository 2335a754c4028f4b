package tracing

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"os"

	"kprobelab/errno"
)

const errBadHandle = errno.EBADF

// textHandle is an open file whose content is a text, made when its first byte is read.
type textHandle struct {
	t    *Tracing
	n    *node
	flag int
	// text is nil until something was read. mu protects it.
	text []byte
}

// ReadAt reads the text; a read at the start makes it anew.
func (h *textHandle) ReadAt(ctx context.Context, b []byte, off int64) (int, error) {
	if !wants(h.flag, os.O_RDONLY) || h.n.read == nil {
		return 0, errBadHandle
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	h.t.mu.Lock()
	defer h.t.mu.Unlock()
	if err := h.t.usable(); err != nil {
		return 0, err
	}
	if h.text == nil || off == 0 {
		text := h.n.read()
		if err := h.t.memory.take(len(text) - len(h.text)); err != nil {
			return 0, err
		}
		h.text = append([]byte{}, text...)
	}
	if off < 0 || off >= int64(len(h.text)) {
		return 0, nil
	}
	return copy(b, h.text[off:]), nil
}

// WriteAt is one write; the offset does not matter to any tracing file.
func (h *textHandle) WriteAt(b []byte, _ int64) (int, error) {
	if !wants(h.flag, os.O_WRONLY) || h.n.write == nil {
		return 0, errBadHandle
	}
	h.t.mu.Lock()
	defer h.t.mu.Unlock()
	if err := h.t.usable(); err != nil {
		return 0, err
	}
	return h.n.write(b)
}

// Close ends the use of the file.
func (h *textHandle) Close() error {
	h.t.mu.Lock()
	defer h.t.mu.Unlock()
	h.t.memory.give(len(h.text))
	h.text = nil
	return nil
}

// Open implements fs.FS.
func (t *Tracing) Open(name string) (fs.File, error) {
	n, err := t.locked("open", name)
	if err != nil {
		return nil, err
	}
	if n.list != nil {
		list, err := t.ReadDir(name)
		return &dirFile{info: info{name: n.name, mode: n.mode}, rest: list}, err
	}
	h, err := t.OpenFile(name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	b, err := readAll(h)
	if err = firstError(err, h.Close()); err != nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return &textFile{Reader: bytes.NewReader(b), info: info{name: n.name, mode: n.mode}}, nil
}

// readAll reads the available content, and does not wait.
func readAll(h Handle) ([]byte, error) {
	if p, ok := h.(interface{ noWait() }); ok {
		p.noWait()
	}
	var all []byte
	buf := make([]byte, 64<<10)
	for {
		n, err := h.ReadAt(context.Background(), buf, int64(len(all)))
		all = append(all, buf[:n]...)
		if n == 0 || err != nil {
			return all, err
		}
	}
}

// textFile is a file that was read whole.
type textFile struct {
	*bytes.Reader
	info info
}

func (f *textFile) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *textFile) Close() error               { return nil }

// dirFile is an open folder.
type dirFile struct {
	info info
	rest []fs.DirEntry
}

func (f *dirFile) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *dirFile) Close() error               { return nil }
func (f *dirFile) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: f.info.name, Err: errno.EISDIR}
}

// ReadDir implements fs.ReadDirFile.
func (f *dirFile) ReadDir(n int) ([]fs.DirEntry, error) {
	if n <= 0 {
		n = len(f.rest)
	} else if len(f.rest) == 0 {
		return nil, io.EOF
	}
	n = min(n, len(f.rest))
	list := f.rest[:n]
	f.rest = f.rest[n:]
	return list, nil
}
