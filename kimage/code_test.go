package kimage_test

// Nothing that imports kimage is imported here: go test would compile all of it again, for these tests alone.

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/decoder"
	"kprobelab/kimage"
	"kprobelab/x86"
)

func TestCode(t *testing.T) {
	img, err := kimage.Open("../testdata/guest.elf", nil)
	require.NoError(t, err)
	s := img.Lookup("strlen")[0]
	next := s.Addr
	img.Walk("strlen", func(at x86.Addr, i *decoder.Inst) bool {
		require.Equal(t, next, at)
		next = at.Add(int64(i.Length))
		return true
	})
	require.Equal(t, s.Addr.Add(int64(s.Size)), next)
	img.Walk("no_such_function", func(x86.Addr, *decoder.Inst) bool {
		require.Fail(t, "visited")
		return false
	})
	require.True(t, img.Compares("strlen", 0))
	require.False(t, img.Compares("strlen", 0x55))
	require.Zero(t, img.ReturnOf("strlen", "no_such_function"))
	require.False(t, img.Moves("no_such_function", 0))
}
