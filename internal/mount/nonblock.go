//go:build linux

package mount

import (
	"context"
	"sync"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// fileFlags has facts about the reads under way that the server does not pass to a node, by the
// channel that cancels them: whether the file has O_NONBLOCK at that moment, which fcntl can change
// after the open, and whether the page cache reads.
type fileFlags struct{ reads sync.Map }

// readFlags are the flags of one read.
type readFlags struct{ nonBlocking, cached bool }

func (f *fileFlags) of(ctx context.Context) readFlags {
	v, _ := f.reads.Load(ctx.Done())
	flags, _ := v.(readFlags)
	return flags
}

// flagged is the server's file system, which notes the flags of each read.
type flagged struct {
	fuse.RawFileSystem
	flags *fileFlags
	// old tells the host that its attributes of a file are out of date.
	old func(node uint64)
}

// Read implements fuse.RawFileSystem.
func (r *flagged) Read(cancel <-chan struct{}, in *fuse.ReadIn, b []byte) (fuse.ReadResult, fuse.Status) {
	// A program's read names its lock owner; the page cache's does not.
	flags := readFlags{nonBlocking: in.Flags&syscall.O_NONBLOCK != 0, cached: in.ReadFlags&fuse.READ_LOCKOWNER == 0}
	if flags != (readFlags{}) {
		r.flags.reads.Store(cancel, flags)
		defer r.flags.reads.Delete(cancel)
	}
	return r.RawFileSystem.Read(cancel, in, b)
}
