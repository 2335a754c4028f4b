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
	for n := Errno(1); n <= 133; n++ {
		switch n {
		case 41, 58: // EWOULDBLOCK and EDEADLOCK are other names of 11 and 35
			require.False(t, n.Known(), "%d", int(n))
		default:
			require.True(t, n.Known(), "%d", int(n))
			require.NotContains(t, n.Text(), "Unknown", "%d", int(n))
			require.Equal(t, n.Text()[1:], n.Error()[1:])
		}
	}
}

func TestNamesAndTexts(t *testing.T) {
	for n, want := range map[Errno][3]string{
		0:             {"errno 0", "Success", "errno 0"},
		EILSEQ:        {"EILSEQ", "Invalid or incomplete multibyte or wide character", "invalid or incomplete multibyte or wide character"},
		EOPNOTSUPP:    {"EOPNOTSUPP", "Operation not supported", "operation not supported"},
		EADDRNOTAVAIL: {"EADDRNOTAVAIL", "Cannot assign requested address", "cannot assign requested address"},
		ENOTSUPP:      {"ENOTSUPP", "Unknown error 524", "errno 524"},
		73:            {"EDOTDOT", "RFS specific error", "RFS specific error"},
		41:            {"errno 41", "Unknown error 41", "errno 41"},
		-2:            {"errno -2", "Unknown error -2", "errno -2"},
		1000:          {"errno 1000", "Unknown error 1000", "errno 1000"},
	} {
		require.Equal(t, want, [3]string{n.Name(), n.Text(), n.Error()}, "%d", int(n))
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
	for e := Errno(1); e <= 132; e++ { // the library of Go ends there
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
