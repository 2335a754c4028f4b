//go:build linux

package mount

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/errno"
)

// fakeKernel is a kernel's system calls on one file, with faults.
type fakeKernel struct {
	open map[int64]bool
	text bytes.Buffer
	// most is the most bytes of one write; room is how many bytes the file takes in all.
	most, room int
	// fails are calls that fail, by name and by how often they were made.
	fails map[string]map[int]errno.Errno
	made  map[string]int
}

func newFakeKernel(most, room int, fails map[string]map[int]errno.Errno) *fakeKernel {
	return &fakeKernel{open: map[int64]bool{0: true, 1: true, 2: true}, most: most, room: room, fails: fails, made: map[string]int{}}
}

// tree is the guest's directory on this kernel.
func (k *fakeKernel) tree() *guestTree {
	g := &guestTree{ran: make(chan struct{})}
	g.make = func(_ *quieter, name string, args ...any) (int64, error) {
		k.made[name]++
		failed := k.fails[name][k.made[name]]
		if name == "close" {
			if fd := args[0].(int64); !k.open[fd] {
				return 0, errno.EBADF
			}
			delete(k.open, args[0].(int64)) // even where it fails (close(2))
		}
		if failed != 0 {
			return 0, failed
		}
		switch name {
		case "openat":
			return k.lowest(0), nil
		case "fcntl":
			return k.lowest(int64(args[2].(int))), nil
		case "write":
			if !k.open[args[0].(int64)] {
				return 0, errno.EBADF
			}
			b := args[1].([]byte)
			b = b[:min(len(b), k.most, k.room)]
			k.room -= len(b)
			k.text.Write(b)
			return int64(len(b)), nil
		}
		return 0, nil
	}
	return g
}

// lowest takes the lowest free number that is not below from.
func (k *fakeKernel) lowest(from int64) int64 {
	for k.open[from] {
		from++
	}
	k.open[from] = true
	return from
}

// A kernel that accepts a part of a write gets the rest. A kernel that accepts no more gives an
// error, and the number of bytes written. Both for files that change on closing.
func TestNothingOfAShortWriteIsLost(t *testing.T) {
	text := "vfs_read vfs_write\nvfs_open\n"
	for name, c := range map[string]struct {
		file       string
		most, room int
		pieces     []string
		fails      map[int]errno.Errno
		want       string
		n          int // of the last piece
		err        error
	}{
		"whole":                         {"set_ftrace_filter", 100, 100, []string{text}, nil, text, len(text), nil},
		"a_byte_at_a_time":              {"set_ftrace_filter", 1, 100, []string{text}, nil, text, len(text), nil},
		"a_word_in_two_pieces":          {"set_ftrace_filter", 3, 100, []string{"vfs_read vfs_", "write\nvfs_op", "en\n"}, nil, text, 3, nil},
		"the_last_word_is_written_late": {"set_graph_function", 3, 100, []string{"vfs_read vfs_", "write"}, nil, "vfs_read vfs_write", 5, nil},
		"no_room":                       {"set_ftrace_filter", 4, 10, []string{text}, nil, text[:10], 10, errno.EIO},
		"no_room_in_a_later_piece":      {"set_ftrace_filter", 4, 12, []string{"vfs_read vfs_", "write\nvfs_op"}, nil, text[:12], 0, errno.EIO},
		"the_second_write_fails":        {"set_ftrace_filter", 4, 100, []string{text}, map[int]errno.Errno{2: errno.EINVAL}, text[:4], 4, errno.EINVAL},
		"another_file_says_how_much":    {"kprobe_events", 4, 100, []string{"p vfs_read\n"}, nil, "p vf", 4, nil},
	} {
		t.Run(name, func(t *testing.T) {
			k := newFakeKernel(c.most, c.room, map[string]map[int]errno.Errno{"write": c.fails})
			h, err := k.tree().OpenFile(c.file, os.O_WRONLY)
			require.NoError(t, err)
			n := 0
			for _, piece := range c.pieces {
				require.NoError(t, err)
				n, err = h.WriteAt([]byte(piece), 0)
			}
			if c.err == nil {
				require.NoError(t, err)
				require.NoError(t, h.(interface{ Flush() error }).Flush())
			}
			require.ErrorIs(t, err, c.err)
			require.Equal(t, c.n, n)
			require.Equal(t, c.want, k.text.String())
			require.NoError(t, h.Close())
			require.Len(t, k.open, 3)
		})
	}
}

// Whichever call fails while a file is opened, committed or closed, its error is returned, and init has the
// descriptors that it had.
func TestAFailedCallLeaksNoDescriptor(t *testing.T) {
	for name, c := range map[string]struct {
		call string
		nth  int
		open bool // is refused
		err  bool // comes with the write
	}{
		"open":                          {"openat", 1, true, false},
		"a_high_number":                 {"fcntl", 1, true, false},
		"close_of_the_low_number":       {"close", 1, true, false},
		"close_before_the_changes":      {"close", 2, false, true},
		"open_after_the_changes":        {"openat", 2, false, true},
		"a_high_number_after_them":      {"fcntl", 2, false, true},
		"close_of_the_low_number_later": {"close", 3, false, true},
		"close_at_the_end":              {"close", 4, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			k := newFakeKernel(100, 1000, map[string]map[int]errno.Errno{c.call: {c.nth: errno.EINTR}})
			g := k.tree()
			h, err := g.OpenFile("set_ftrace_filter", os.O_WRONLY|os.O_TRUNC)
			if c.open {
				require.ErrorIs(t, err, errno.EINTR)
				require.Len(t, k.open, 3)
				require.Zero(t, g.open)
				return
			}
			require.NoError(t, err)
			_, err = h.WriteAt([]byte("vfs_read\n"), 0)
			if c.err {
				require.ErrorIs(t, err, errno.EINTR)
			} else {
				require.NoError(t, err)
			}
			require.LessOrEqual(t, len(k.open), 4)
			if err := h.Close(); c.call == "close" && c.nth == 4 {
				require.ErrorIs(t, err, errno.EINTR)
			} else {
				require.NoError(t, err)
			}
			require.Len(t, k.open, 3)
			require.Zero(t, g.open)
		})
	}
}

// A transfer has an end, so that a large text is written by several calls.
func TestALargeWriteIsCut(t *testing.T) {
	text := strings.Repeat("vfs_read ", guestTransfer/4)
	k := newFakeKernel(1<<20, 1<<20, nil)
	h, err := k.tree().OpenFile("set_ftrace_filter", os.O_WRONLY)
	require.NoError(t, err)
	n, err := h.WriteAt([]byte(text), 0)
	require.NoError(t, err)
	require.Equal(t, len(text), n)
	require.Equal(t, (len(text)+guestTransfer-1)/guestTransfer, k.made["write"])
	require.Equal(t, text, k.text.String())
}
