package watch

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/errno"
	"kprobelab/machine"
)

func TestParse(t *testing.T) {
	const (
		r = machine.WatchRead
		w = machine.WatchWrite
		x = machine.WatchExec
	)
	for _, c := range []struct {
		text  string
		want  string // as it is printed
		len   uint32
		kinds uint32
	}{
		{"jiffies", "jiffies:rw", 0, r | w},
		{"jiffies:8", "jiffies:8:rw", 8, r | w},
		{"jiffies+0x4:2:w", "jiffies+0x4:2:w", 2, w},
		{"vfs_read:x", "vfs_read:x", 0, x},
		{"0xffffffff82000000:wr", "0xffffffff82000000:rw", 0, r | w},
		{"mem:0xffffffff82000000", "0xffffffff82000000:rw", 0, r | w},
		{"mem:0x1000/8:w", "0x1000:8:w", 8, w},
		{"mem:jiffies/8:r", "jiffies:8:r", 8, r},
		{"ext4:counter:4", "ext4:counter:4:rw", 4, r | w},
		{"ext4:counter", "ext4:counter:rw", 0, r | w},
		{"data:rr", "data:rr:rw", 0, r | w}, // a symbol of a module
	} {
		p, err := Parse(c.text)
		require.NoError(t, err, c.text)
		require.Equal(t, c.want, p.String(), c.text)
		require.Equal(t, c.len, p.Len, c.text)
		require.Equal(t, c.kinds, p.Kinds, c.text)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{
		"", ":4", ":w", "mem:", "mem:/4", "mem:0x10/x", "mem:0x10/4:q", "mem:0x10:4:w:", "sym:0", "sym:-1", "sym:4x", "sym:256", "sym+x", "0xg", "sym:",
	} {
		_, err := Parse(text)
		require.Error(t, err, text)
	}
}

func TestCheck(t *testing.T) {
	for length := range uint32(20) {
		ok := length == 1 || length == 2 || length == 4 || length == 8
		require.Equal(t, ok, Check(length, machine.WatchWrite) == nil, length)
	}
	require.ErrorIs(t, Check(8, machine.WatchExec|machine.WatchRead), errno.EINVAL)
	require.ErrorIs(t, Check(8, 0), errno.EINVAL)
	require.NoError(t, Check(8, machine.WatchExec))
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"jiffies:8:w", "mem:0x10/4:rw", "a:b:c:4", "mem:x", "+", "0x1+2:8:x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse(text)
		if err != nil {
			return
		}
		again, err := Parse(p.String())
		if err == nil {
			require.Equal(t, p, again)
		}
	})
}
