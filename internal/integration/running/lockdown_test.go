package running

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/booted"
	"kprobelab/errno"
	"kprobelab/hostfiles"
)

// TestLockdown: what root may in a kernel that is locked down; there is no way back to a lower level.
func TestLockdown(t *testing.T) {
	for _, name := range []string{"5.10", "newest"} {
		k := boot(t, name)
		var files hostfiles.Set
		require.NoError(t, files.Add("../../../testdata/rights.elf", "/tmp/rights"))
		for _, c := range []struct {
			level, said string
			kprobe      errno.Errno
		}{
			{"", "[none] integrity confidentiality\n", 0},
			{"integrity", "none [integrity] confidentiality\n", 0},
			{"confidentiality", "none integrity [confidentiality]\n", errno.EPERM},
		} {
			t.Run(name+"_level_"+c.level, func(t *testing.T) {
				k.restore()
				require.NoError(t, k.Prepare(files.Files()))
				if c.level != "" {
					require.NoError(t, k.SetLockdown(c.level))
					require.ErrorIs(t, k.SetLockdown("integrity"), errno.EPERM)
				}
				state, err := k.Get("/sys/kernel/security/lockdown")
				require.NoError(t, err)
				require.Equal(t, c.said, string(state[0].Data))
				var out bytes.Buffer
				r, err := k.Run(context.Background(), &booted.Session{Program: booted.Program{Args: []string{"/tmp/rights", "8"}, Stdout: &out, Stderr: &out}})
				require.NoError(t, err)
				require.Equal(t, 0, r.Code)
				require.Equal(t, may(0, 0, 0, 0, c.kprobe, 0, 0), out.String())
			})
		}
	}
}
