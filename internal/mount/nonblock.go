//go:build linux

package mount

import (
	"context"
	"sync"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// fileFlags knows of the reads under way, by the channel that cancels them, what the server does not
// hand to a node: whether the file has O_NONBLOCK at that moment, which fcntl changes after a
// file is open, and whether it is the page cache that reads.
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
	// old tells the host that what it knows of a file is old.
	old func(node uint64)
}

// Read implements fuse.RawFileSystem.
func (r *flagged) Read(cancel <-chan struct{}, in *fuse.ReadIn, b []byte) (fuse.ReadResult, fuse.Status) {
	// A read of a program's names its lock owner; one of the page cache's does not.
	flags := readFlags{nonBlocking: in.Flags&syscall.O_NONBLOCK != 0, cached: in.ReadFlags&fuse.READ_LOCKOWNER == 0}
	if flags != (readFlags{}) {
		r.flags.reads.Store(cancel, flags)
		defer r.flags.reads.Delete(cancel)
	}
	return r.RawFileSystem.Read(cancel, in, b)
}
