//go:build linux

package mount

import (
	"context"
	iofs "io/fs"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

var (
	_ fs.NodeCreater    = (*node)(nil)
	_ fs.NodeSymlinker  = (*node)(nil)
	_ fs.NodeReadlinker = (*node)(nil)
	_ fs.NodeUnlinker   = (*node)(nil)
	_ fs.NodeRenamer    = (*node)(nil)
)

// maker is the tree, if things can be made in it; in a tree without Maker
// nothing can.
func (n *node) maker() (Maker, syscall.Errno) {
	if n.m.ended() {
		return nil, syscall.ENODEV
	}
	if k, ok := n.m.tree.(Maker); ok {
		return k, 0
	}
	return nil, syscall.EACCES
}

// Create implements fs.NodeCreater.
func (n *node) Create(ctx context.Context, name string, flags, mode uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	k, no := n.maker()
	if no != 0 {
		return nil, nil, 0, no
	}
	at := n.child(name)
	if err := k.Create(at, iofs.FileMode(mode).Perm()); err != nil {
		return nil, nil, 0, hostErrno(err)
	}
	made, no := n.entry(ctx, at, &out.Attr)
	if no != 0 {
		return nil, nil, 0, no
	}
	h, how, no := made.Operations().(*node).Open(ctx, flags)
	return made, h, how, no
}

// Symlink implements fs.NodeSymlinker.
func (n *node) Symlink(ctx context.Context, target, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	k, no := n.maker()
	if no != 0 {
		return nil, no
	}
	at := n.child(name)
	if err := k.Symlink(target, at); err != nil {
		return nil, hostErrno(err)
	}
	n.m.guest.Symlink(n.m.caller(ctx), target, "/"+at)
	return n.entry(ctx, at, &out.Attr)
}

// Readlink implements fs.NodeReadlinker.
func (n *node) Readlink(context.Context) ([]byte, syscall.Errno) {
	k, no := n.maker()
	if no != 0 {
		return nil, no
	}
	target, err := k.Readlink(n.path)
	return []byte(target), hostErrno(err)
}

// Unlink implements fs.NodeUnlinker.
func (n *node) Unlink(ctx context.Context, name string) syscall.Errno {
	k, no := n.maker()
	if no != 0 {
		return no
	}
	if err := k.Unlink(n.child(name)); err != nil {
		return hostErrno(err)
	}
	n.m.guest.Unlink(n.m.caller(ctx), "/"+n.child(name))
	return 0
}

// Rename implements fs.NodeRenamer: mv copies instead.
func (n *node) Rename(context.Context, string, fs.InodeEmbedder, string, uint32) syscall.Errno {
	return syscall.EXDEV
}

// truncate changes a file's size, the one thing that a setattr can change.
func (n *node) truncate(in *fuse.SetAttrIn) syscall.Errno {
	size, ok := in.GetSize()
	if !ok {
		return 0
	}
	if i, err := n.m.tree.Stat(n.path); err != nil || i.Size() == int64(size) {
		return hostErrno(err)
	}
	k, ok := n.m.tree.(Maker)
	if !ok {
		return 0
	}
	if err := k.Truncate(n.path, int64(size)); err != nil && hostErrno(err) != syscall.EACCES {
		return hostErrno(err)
	}
	return 0
}
