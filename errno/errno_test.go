package errno

import (
	"errors"
	"fmt"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTableHasNoHoles(t *testing.T) {
	for e, text := range texts {
		require.NotEmpty(t, text[0], "%d", int(e))
		require.NotEmpty(t, text[1], "%d", int(e))
	}
}

func TestOf(t *testing.T) {
	require.Zero(t, Of(nil))
	require.Equal(t, EILSEQ, Of(fmt.Errorf("probe f+0x1: %w", EILSEQ)))
	require.Equal(t, EINVAL, Of(errors.New("no number")))
}

func TestIsTheHostsNumberOnLinux(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("other systems number their errors otherwise")
	}
	for e := range texts {
		require.ErrorIs(t, fmt.Errorf("wrapped: %w", e), syscall.Errno(e))
		require.Equal(t, syscall.Errno(e).Error(), e.Error(), e.Name())
	}
	require.NotErrorIs(t, EILSEQ, syscall.EINVAL)
}

func ExampleErrno_Name() {
	err := fmt.Errorf("probe vfs_read+0x3: not at an instruction boundary: %w", EILSEQ)
	fmt.Println(errors.Is(err, EILSEQ), Of(err).Name())
	// Output: true EILSEQ
}
