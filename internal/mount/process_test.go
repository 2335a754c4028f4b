//go:build linux

package mount

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/bounded"
)

// The processes that use a mount are remembered up to the bound; then all are forgotten, and count
// as new once more.
func TestProcessesThatComeToAMount(t *testing.T) {
	p := newProcesses()
	for i := range bounded.MountProcesses - 1 {
		p.seen[-i-1] = true // there is none of these numbers
	}
	c, _ := p.look(os.Getpid())
	require.True(t, c.isNew)
	require.Len(t, p.seen, bounded.MountProcesses)
	c, _ = p.look(os.Getpid())
	require.False(t, c.isNew)
	c, _ = p.look(os.Getppid())
	require.True(t, c.isNew)
	require.Len(t, p.seen, 1)
	c, _ = p.look(os.Getpid())
	require.True(t, c.isNew)
}
