package machine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/errno"
	"kprobelab/kimage"
	. "kprobelab/machine"
)

// No piece of a guest's memory is larger than the bound: the heap, an allocation, and sizes that an
// image has.
func TestPiecesOfMemoryThatAreTooLarge(t *testing.T) {
	img := &tinyImage{}
	img.Add("ret", 0xc3)
	m := boot(t, img, &Options{HeapSize: 1 << 20})
	for name, alloc := range map[string]func(int) error{
		"heap": func(n int) error { _, err := m.Alloc(n); return err },
		"user": func(n int) error { _, err := m.AllocUser(n); return err },
	} {
		require.NoError(t, alloc(1<<10), name)
		require.ErrorIs(t, alloc(MaxRegion), errno.ENOMEM, name)
		require.ErrorIs(t, alloc(MaxRegion+1), errno.EINVAL, name)
	}
	_, err := open(img, &Options{HeapSize: MaxRegion + 1})
	require.ErrorIs(t, err, errno.EINVAL)
	require.EqualError(t, err, "heap of 2147483649 bytes: invalid argument")
	large := edgeImage{tinyImage: img, more: []kimage.Segment{{Name: "large", Addr: dataBase + 1<<30, Size: MaxRegion + 1}}}
	_, err = open(large, &Options{HeapSize: 1 << 20})
	require.ErrorIs(t, err, errno.EINVAL)
	require.ErrorContains(t, err, "segment large at ")
}
