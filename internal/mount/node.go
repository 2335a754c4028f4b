//go:build linux

package mount

import (
	"context"
	"hash/fnv"
	iofs "io/fs"
	"path"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"kprobelab/tracing"
)

// node is a file or a folder, known by its path.
type node struct {
	fs.Inode
	m    *Mount
	path string
}

var (
	_ fs.NodeLookuper  = (*node)(nil)
	_ fs.NodeReaddirer = (*node)(nil)
	_ fs.NodeGetattrer = (*node)(nil)
	_ fs.NodeSetattrer = (*node)(nil)
	_ fs.NodeOpener    = (*node)(nil)
	_ fs.NodeMkdirer   = (*node)(nil)
	_ fs.NodeRmdirer   = (*node)(nil)
	_ fs.NodeStatfser  = (*node)(nil)
)

func (n *node) child(name string) string { return path.Join(n.path, name) }

// Lookup implements fs.NodeLookuper.
func (n *node) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	n.m.caller(ctx)
	return n.entry(ctx, n.child(name), &out.Attr)
}

func (n *node) entry(ctx context.Context, at string, out *fuse.Attr) (*fs.Inode, syscall.Errno) {
	i, err := n.m.tree.Stat(at)
	if err != nil {
		return nil, hostErrno(err)
	}
	n.m.attr(i, out)
	return n.NewInode(ctx, &node{m: n.m, path: at}, fs.StableAttr{Mode: out.Mode & syscall.S_IFMT, Ino: inode(at)}), 0
}

// inode is the same number for the same path, so that a file found again is
// the same file.
func inode(at string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(at))
	return h.Sum64() | 2 // 0 means any number, 1 is the root's
}

// attr sets the attributes of a file for stat.
func (m *Mount) attr(i iofs.FileInfo, out *fuse.Attr) {
	out.Mode = uint32(i.Mode().Perm()) | syscall.S_IFREG
	out.Nlink = 1
	out.Size = uint64(i.Size())
	switch {
	case i.IsDir():
		out.Mode = uint32(i.Mode().Perm()) | syscall.S_IFDIR
		out.Nlink, out.Size = 2, 0
	case i.Mode()&iofs.ModeSymlink != 0:
		out.Mode = uint32(i.Mode().Perm()) | syscall.S_IFLNK
	}
	out.Uid, out.Gid = m.uid, m.gid
	t := m.made
	out.SetTimes(&t, &t, &t)
}

// Readdir implements fs.NodeReaddirer.
func (n *node) Readdir(context.Context) (fs.DirStream, syscall.Errno) {
	entries, err := n.m.tree.ReadDir(n.path)
	if err != nil {
		return nil, hostErrno(err)
	}
	list := make([]fuse.DirEntry, len(entries))
	for i, e := range entries {
		list[i] = fuse.DirEntry{Name: e.Name(), Mode: syscall.S_IFREG, Ino: inode(n.child(e.Name()))}
		switch {
		case e.IsDir():
			list[i].Mode = syscall.S_IFDIR
		case e.Type()&iofs.ModeSymlink != 0:
			list[i].Mode = syscall.S_IFLNK
		}
	}
	return fs.NewListDirStream(list), 0
}

// Getattr implements fs.NodeGetattrer. A file that is open may have no name any
// more.
func (n *node) Getattr(_ context.Context, f fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	i, err := n.m.tree.Stat(n.path)
	if open, ok := f.(*handle); ok {
		if s, ok := open.h.(interface{ Stat() (iofs.FileInfo, error) }); ok {
			i, err = s.Stat()
		}
	}
	if err != nil {
		return hostErrno(err)
	}
	n.m.attr(i, &out.Attr)
	return 0
}

// Setattr implements fs.NodeSetattrer: chmod and chown are accepted and change
// nothing; truncate works on files that have a size.
func (n *node) Setattr(ctx context.Context, f fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	if no := n.truncate(in); no != 0 {
		return no
	}
	return n.Getattr(ctx, f, out)
}

// Statfs implements fs.NodeStatfser.
func (n *node) Statfs(_ context.Context, out *fuse.StatfsOut) syscall.Errno {
	*out = fuse.StatfsOut{Bsize: 4096, NameLen: 255}
	return 0
}

// Mkdir implements fs.NodeMkdirer.
func (n *node) Mkdir(ctx context.Context, name string, _ uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	who := n.m.caller(ctx)
	d, ok := n.m.tree.(Directories)
	if !ok {
		return nil, syscall.EPERM
	}
	if err := d.Mkdir(n.child(name)); err != nil {
		return nil, hostErrno(err)
	}
	n.m.guest.Mkdir(who, "/"+n.child(name))
	return n.entry(ctx, n.child(name), &out.Attr)
}

// Rmdir implements fs.NodeRmdirer.
func (n *node) Rmdir(ctx context.Context, name string) syscall.Errno {
	who := n.m.caller(ctx)
	d, ok := n.m.tree.(Directories)
	if !ok {
		return syscall.EPERM
	}
	if err := d.Rmdir(n.child(name)); err != nil {
		return hostErrno(err)
	}
	n.m.guest.Rmdir(who, "/"+n.child(name))
	return 0
}

// Open implements fs.NodeOpener.
func (n *node) Open(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	if n.m.ended() {
		return nil, 0, syscall.ENODEV
	}
	who := n.m.caller(ctx)
	fd := n.m.guest.Open(who, "/"+n.path, int(flags))
	h, err := n.m.tree.OpenFile(n.path, int(flags))
	if err != nil {
		n.m.guest.Close(who, fd)
		return nil, 0, hostErrno(err)
	}
	return &handle{m: n.m, h: h, fd: fd, waits: waits(n.path)}, fuse.FOPEN_DIRECT_IO, 0
}

// handle is an open file.
type handle struct {
	m  *Mount
	h  tracing.Handle
	fd int
	// waits: its reads wait for data.
	waits bool
}

var (
	_ fs.FileReader   = (*handle)(nil)
	_ fs.FileWriter   = (*handle)(nil)
	_ fs.FileReleaser = (*handle)(nil)
	_ fs.FileFlusher  = (*handle)(nil)
)

// Read implements fs.FileReader.
func (h *handle) Read(ctx context.Context, b []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	flags := h.m.flags.of(ctx)
	if flags.cached && h.waits {
		return nil, syscall.EINVAL
	}
	h.m.guest.Read(h.m.caller(ctx), h.fd, len(b))
	if flags.nonBlocking {
		ctx = tracing.NonBlocking(ctx)
	}
	ctx, cancel := h.m.until(ctx)
	defer cancel()
	n, err := h.read(ctx, b, off, flags.cached)
	switch {
	case n > 0:
		err = nil
	case err != nil && h.m.ended():
		// EINTR would make many programs try again, for ever.
		return nil, syscall.ENODEV
	case err != nil:
		return nil, hostErrno(err) // with data, however little, the server forgets the error
	}
	return fuse.ReadResultData(b[:n]), 0
}

// read reads once, or for the page cache, which takes a short read for the file's end, until no
// more comes.
func (h *handle) read(ctx context.Context, b []byte, off int64, whole bool) (n int, err error) {
	for n < len(b) {
		var k int
		k, err = h.h.ReadAt(ctx, b[n:], off+int64(n))
		if n += k; err != nil || k == 0 || !whole {
			break
		}
	}
	return n, err
}

// Write implements fs.FileWriter.
func (h *handle) Write(ctx context.Context, b []byte, off int64) (uint32, syscall.Errno) {
	h.m.guest.Write(h.m.caller(ctx), h.fd, b)
	n, err := h.h.WriteAt(b, off)
	if n > 0 {
		err = nil
	}
	return uint32(n), hostErrno(err)
}

// Flush implements fs.FileFlusher: some files have something left to do at close.
func (h *handle) Flush(context.Context) syscall.Errno {
	if f, ok := h.h.(interface{ Flush() error }); ok {
		return hostErrno(f.Flush())
	}
	return 0
}

// Release implements fs.FileReleaser.
func (h *handle) Release(context.Context) syscall.Errno {
	h.m.guest.Close(Process{}, h.fd)
	return hostErrno(h.h.Close())
}
