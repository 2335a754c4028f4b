package attach

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/bounded"
	"kprobelab/x86"
)

// The process of a command is looked for so many parents up, in whatever a dump has in their place.
func TestParentsWithoutEnd(t *testing.T) {
	o := taskOffsets{parent: 0x10, tgid: 0x20}
	const size = 0x100
	// The task n has n parents up to init, whose number is 1.
	load := func(at x86.Addr, _ int) uint64 {
		n := uint64(at) / size
		switch at % size {
		case 0x10:
			return (n - 1) * size
		case 0x20:
			return n
		}
		return 0
	}
	require.EqualValues(t, 2, o.child(2*size, load), "a child of init")
	require.EqualValues(t, 2, o.child((bounded.TaskParents+1)*size, load))
	require.Zero(t, o.child((bounded.TaskParents+2)*size, load))
	require.Zero(t, o.child(size, load), "init")
	ring := func(at x86.Addr, n int) uint64 {
		if at%size == 0x10 && at/size == 2 {
			return 3 * size
		}
		return load(at, n)
	}
	require.Zero(t, o.child(3*size, ring), "parents of each other")
}
