package session

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/errno"
	"kprobelab/internal/bounded"
)

// A guest's file that uprobes are put into has as many bytes as the bound says.
func TestProgramsOfTheGuestThatAreTooLong(t *testing.T) {
	of := func(size int) func([]byte) (int64, error) {
		return func(b []byte) (int64, error) {
			n := min(size, len(b))
			size -= n
			return int64(n), nil
		}
	}
	text, err := whole("/bin/x", of(bounded.UprobeFile))
	require.NoError(t, err)
	require.Len(t, text, bounded.UprobeFile)
	_, err = whole("/bin/x", of(bounded.UprobeFile+1))
	require.ErrorIs(t, err, errno.ENOMEM)
	require.ErrorContains(t, err, "/bin/x has more than 268435456 bytes")
	_, err = whole("/bin/x", func([]byte) (int64, error) { return 0, errno.EISDIR })
	require.ErrorIs(t, err, errno.EISDIR)
}
