package bounded

import "golang.org/x/sys/unix"

// roomBeside bounds the growth of Go's heap beside an allocation: it grows by arenas.
const roomBeside = 128 << 20

// hasRoom reserves address space, and releases it.
func hasRoom(n int64) bool {
	b, err := unix.Mmap(-1, 0, int(n+roomBeside), unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	return err == nil && unix.Munmap(b) == nil
}
