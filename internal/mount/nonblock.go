//go:build linux

package mount

import (
	"context"
	"sync"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// fileFlags knows which of the reads under way are of a file with O_NONBLOCK at
// that moment, by the channel that cancels them. The server hands a node neither
// the flag nor the request, and fcntl changes it after a file is open.
type fileFlags struct{ reads sync.Map }

func (f *fileFlags) nonBlocking(ctx context.Context) bool {
	_, ok := f.reads.Load(ctx.Done())
	return ok
}

// flagged is the server's file system, which notes the flag of each read.
type flagged struct {
	fuse.RawFileSystem
	flags *fileFlags
}

// Read implements fuse.RawFileSystem.
func (r *flagged) Read(cancel <-chan struct{}, in *fuse.ReadIn, b []byte) (fuse.ReadResult, fuse.Status) {
	if in.Flags&syscall.O_NONBLOCK != 0 {
		r.flags.reads.Store(cancel, true)
		defer r.flags.reads.Delete(cancel)
	}
	return r.RawFileSystem.Read(cancel, in, b)
}
