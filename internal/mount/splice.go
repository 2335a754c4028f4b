//go:build linux

package mount

import (
	"path"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// The files report a size of 0 bytes, as tracefs does, and are read without the page cache. But
// sendfile and splice go through the page cache, and end at the size that the host's kernel has
// cached (from 6.5 on). So the host gets a size to cache that it never shows: a lookup, which
// precedes each open, answers with unknownSize, and stat with 0. The host does not cache stat's
// answer, because it has meanwhile been told that its attributes of the file are out of date. When
// a program seeks to the end of a file (lseek), 0 is cached.

// rawPages is the file of a buffer's pages. trace-cmd retries a splice that moves nothing, and
// stops at one that is refused.
const rawPages = "trace_pipe_raw"

// unknownSize is more than a file has.
const unknownSize = 1 << 40

// Lookup implements fuse.RawFileSystem.
func (r *flagged) Lookup(cancel <-chan struct{}, in *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	status := r.RawFileSystem.Lookup(cancel, in, name, out)
	if status.Ok() && sizeless(&out.Attr) && name != rawPages {
		out.Size = unknownSize
	}
	return status
}

// GetAttr implements fuse.RawFileSystem.
func (r *flagged) GetAttr(cancel <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	status := r.RawFileSystem.GetAttr(cancel, in, out)
	if status.Ok() && sizeless(&out.Attr) && in.Flags()&fuse.FUSE_GETATTR_FH == 0 && r.old != nil {
		r.old(in.NodeId)
	}
	return status
}

func sizeless(a *fuse.Attr) bool { return a.Mode&syscall.S_IFMT == syscall.S_IFREG && a.Size == 0 }

// Write implements fuse.RawFileSystem. What is appended comes past the noted size.
func (r *flagged) Write(cancel <-chan struct{}, in *fuse.WriteIn, b []byte) (uint32, fuse.Status) {
	if in.Offset >= unknownSize {
		in.Offset -= unknownSize
	}
	return r.RawFileSystem.Write(cancel, in, b)
}

// waits reports whether reads of a file wait for data. The page cache would take the first piece
// for the whole file: sendfile and splice are refused there with EINVAL, as by files without such
// an operation, and programs read instead.
func waits(name string) bool { return path.Base(name) == "trace_pipe" }
