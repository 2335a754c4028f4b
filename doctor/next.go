package doctor

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"kprobelab/errno"
	"kprobelab/internal/debian"
	"kprobelab/internal/download"
	"kprobelab/internal/qemu"
	"kprobelab/kernels"
	"kprobelab/machine"
)

// The next commands, each for a report's line and for the error of the same cause.
const (
	nextImport   = "kprobelab kernels import FILE, with a file that kprobelab kernels export has written elsewhere"
	nextEngine   = "take the release's program for Linux/amd64, or run make build in a checkout"
	nextFolder   = "name a folder of yours: XDG_CACHE_HOME=FOLDER kprobelab ..."
	nextRoom     = "make room: kprobelab kernels list, then kprobelab kernels remove RELEASE; or XDG_CACHE_HOME=FOLDER kprobelab ..."
	nextMemory   = "boot the kernel with more memory: kprobelab kernels boot --memory 512M RELEASE"
	nextNetwork  = "name a proxy or a mirror: http_proxy=URL or KPROBELAB_MIRROR=URL kprobelab ...; without a network: " + nextImport
	nextMirror   = "KPROBELAB_MIRROR=http://deb.debian.org/debian kprobelab ..."
	nextKeys     = "install Debian's package debian-archive-keyring, or name its file: kprobelab kernels --keyring FILE fetch RELEASE"
	nextQEMU     = "install qemu-system-x86 (10 or newer), or name one: KPROBELAB_QEMU=FILE kprobelab ...; without QEMU: " + nextImport
	nextOffline  = "leave out --offline, or kprobelab kernels import FILE"
	nextMount    = "without a mount, kprobelab run has the same events: kprobelab run -e 'p:NAME FUNCTION' --call 'FUNCTION()'"
	nextCompiler = "install gcc and make (apt-get install gcc make)"
	nextImage    = "name a kernel: an IMAGE, --kernel 6.12 (fetched), or - for the guest kernel inside the program"
)

// Next returns what to do after an error; "" where the error's own text says all. The first matching class counts: an error
// of QEMU may wrap one of the network.
func Next(err error) string {
	if p := (*fs.PathError)(nil); errors.As(err, &p) && p.Path == os.Stdout.Name() {
		return "" // the user's own redirection
	}
	if guests := errno.Errno(0); errors.As(err, &guests) { // the full disk, or the refusal, is in the guest
		if guests == errno.ENOSPC {
			return nextMemory
		}
		return ""
	}
	for _, n := range append(nexts, hostNexts...) {
		if errors.Is(err, n.is) {
			return n.next
		}
	}
	return ""
}

// class is a class of errors, and what to do.
type class struct {
	is   error
	next string
}

var nexts = []class{
	{syscall.ENOSPC, nextRoom},
	{kernels.ErrFolder, nextFolder},
	{qemu.ErrNone, nextQEMU},
	{kernels.ErrMirror, nextMirror},
	{debian.ErrKeys, nextKeys},
	{kernels.ErrOffline, nextOffline},
	{download.ErrAnswer, nextNetwork},
	{machine.ErrNeedsUnicorn, nextEngine},
}
