package kimage

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTypes(t *testing.T) {
	img, err := FromBytes("guest", guestFile(t, "guest.elf"), nil)
	require.NoError(t, err)
	params, ret, ok := img.Types().ProtoTypes("vfs_read")
	require.True(t, ok)
	require.Len(t, params, 4)
	size, signed, ok := ret.Int()
	require.True(t, ok && signed)
	require.Equal(t, 8, size)

	file, ok := params[0].Target()
	require.True(t, ok)
	path, ok := file.Member("f_path")
	require.True(t, ok)
	dentry, ok := path.Type.Member("dentry")
	require.True(t, ok)
	require.Zero(t, dentry.Bits)
	_, ok = dentry.Type.Target()
	require.True(t, ok)
	_, ok = file.Member("nosuch")
	require.False(t, ok)

	char, ok := params[1].Target()
	require.True(t, ok && char.Char())
	_, ok = params[2].Target()
	require.False(t, ok)
	_, ok = char.Elem()
	require.False(t, ok)
	s, ok := img.Types().Struct("dentry")
	require.True(t, ok)
	name, ok := s.Member("d_name")
	require.True(t, ok)
	require.Zero(t, name.Offset%8)
	_, _, ok = img.Types().ProtoTypes("nosuch")
	require.False(t, ok)
}
