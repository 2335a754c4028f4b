package boot

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/bounded"
)

// A guest's file has as many bytes as the bound says.
func TestFilesOfTheGuestThatAreTooLong(t *testing.T) {
	var c content
	piece := make([]byte, 1<<20)
	for range bounded.GuestFile / len(piece) {
		require.NoError(t, c.add(1, piece))
	}
	require.EqualError(t, c.add(1, piece[:1]), "it has more than 64 MiB")
	require.Equal(t, bounded.GuestFile, c.Len())
}
