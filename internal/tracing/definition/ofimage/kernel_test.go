package ofimage_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/errno"
	"kprobelab/internal/tracing/definition/ofimage"
	"kprobelab/kimage"
)

func guest(t *testing.T) *ofimage.Kernel {
	img, err := kimage.FromBytes("guest", kprobelab.GuestELF(), nil)
	require.NoError(t, err)
	return &ofimage.Kernel{View: img, Profile: img.Profile(), Types: img.Types, Loaded: func(string) bool { return false }}
}

func TestEntry(t *testing.T) {
	k := guest(t)
	require.NoError(t, k.Entry("gcd", 0))
	require.ErrorIs(t, k.Entry("gcd", 5), errno.EINVAL)
	require.ErrorIs(t, k.Entry("no_such", 0), errno.ENOENT)
}

func TestCount(t *testing.T) {
	k := guest(t)
	for name, want := range map[string]struct {
		n      int
		loaded bool
	}{"gcd": {1, true}, "no_such": {0, true}, "module:gcd": {0, false}} {
		n, loaded := k.Count(name)
		require.Equal(t, want.n, n, name)
		require.Equal(t, want.loaded, loaded, name)
	}
}

// BTF is asked for the whole name, and a kernel may have none.
func TestProto(t *testing.T) {
	k := guest(t)
	p, ok := k.Proto("gcd")
	require.True(t, ok)
	require.Len(t, p.Params, 2)
	require.NotNil(t, p.Ret)
	_, ok = k.Proto("module:gcd")
	require.False(t, ok)
	k.Types = nil
	_, ok = k.Proto("gcd")
	require.False(t, ok)
	_, ok = k.Struct("file")
	require.False(t, ok)
}
