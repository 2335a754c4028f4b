package booted

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/bounded"
)

// A task that never comes is not waited for without end.
func TestATaskThatDoesNotCome(t *testing.T) {
	asked := 0
	came, err := comes(func() (bool, error) { asked++; return false, nil })
	require.NoError(t, err)
	require.False(t, came)
	require.Equal(t, bounded.TasksPassing, asked)

	asked = 0
	came, err = comes(func() (bool, error) { asked++; return asked == bounded.TasksPassing, nil })
	require.NoError(t, err)
	require.True(t, came)

	broken := errors.New("a fault")
	_, err = comes(func() (bool, error) { return false, broken })
	require.ErrorIs(t, err, broken)
}
