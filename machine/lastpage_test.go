package machine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/errno"
	"kprobelab/kimage"
	. "kprobelab/machine"
	"kprobelab/x86"
)

// edgeImage has more segments, and an end of its modules.
type edgeImage struct {
	*tinyImage
	more      []kimage.Segment
	moduleEnd x86.Addr
}

func (e edgeImage) Segments() []kimage.Segment { return append(e.tinyImage.Segments(), e.more...) }
func (e edgeImage) ModuleEnd() x86.Addr        { return e.moduleEnd }

// TestSegmentInTheLastPage: a segment that reaches into the last page is refused; one that ends
// before it is ordinary memory.
func TestSegmentInTheLastPage(t *testing.T) {
	const top = ^x86.Addr(0)
	boot := func(at x86.Addr, size uint64, end x86.Addr) (*Machine, error) {
		img := edgeImage{&tinyImage{}, nil, end}
		img.Add("ret", 0xc3)
		if size > 0 {
			img.more = []kimage.Segment{{Name: "edge", Addr: at, Data: []byte{0xc3}, Size: size, Exec: true, Write: true}}
		}
		return open(img, nil)
	}
	for _, c := range []struct {
		at   x86.Addr
		size uint64
		end  x86.Addr
	}{
		{LastPage, 1, 0}, {LastPage, PageSize, 0}, {LastPage, PageSize - 1, 0}, {LastPage, PageSize + 1, 0},
		{top, 1, 0}, {top, 2, 0}, {LastPage - 1, 2, 0}, {LastPage - PageSize, PageSize + 1, 0}, {LastPage - 1<<30, 1<<30 + 1, 0},
		{top, 1 << 40, 0}, {0, 0, top}, {0, 0, LastPage}, {0, 0, LastPage + 1}, {0, 0, LastPage - PageSize},
	} {
		m, err := boot(c.at, c.size, c.end)
		if err == nil {
			m.Close()
		}
		require.ErrorIs(t, err, ErrLayout)
		require.ErrorIs(t, err, errno.EINVAL, "%s %#x %s", c.at, c.size, c.end)
	}
	at := LastPage - PageSize
	m, err := boot(at, PageSize, 0)
	require.NoError(t, err)
	defer m.Close()
	_, err = m.CallAddr(at)
	require.NoError(t, err)
	s, err := m.Snapshot()
	require.NoError(t, err)
	last := LastPage - 1
	require.NoError(t, m.WriteMem(last, []byte{0xc3}))
	require.NoError(t, m.PokeText(last, []byte{0xc3}))
	_, err = m.CallAddr(last)
	require.NoError(t, err)
	require.Equal(t, []x86.Range{{Start: at, End: LastPage}}, m.Dirty(s))
	require.NoError(t, m.Restore(s))
	for _, a := range []x86.Addr{LastPage - 1, LastPage, top} {
		require.ErrorIs(t, m.WriteMem(a, []byte{1, 2}), errno.EFAULT)
		require.ErrorIs(t, m.ReadMem(a, make([]byte, 2)), errno.EFAULT)
		require.ErrorIs(t, m.PokeText(a, []byte{1, 2}), errno.EFAULT)
		_, err := m.CallAddr(a + 1)
		require.Error(t, err)
	}
}
