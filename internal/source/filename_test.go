package source

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestFilesThatAreMeant(t *testing.T) {
	for _, c := range []struct {
		said, path  string
		perf, parts bool
	}{
		{"fs/inode.c", "fs/inode.c", true, true},
		{"inode.c", "fs/inode.c", true, true},
		{"fs/inode.c", "fs/hugetlbfs/inode.c", true, false},
		{"fs/inode.c", "fs/ext4fs/inode.c", true, false}, // the end of a folder's name
		{"node.c", "fs/inode.c", true, false},
		{"/build/linux/fs/inode.c", "fs/inode.c", true, false}, // perf takes either as the end of the other
		{"fs/*.c", "/build/fs/ext4/inode.c", false, true},      // a star is slashes, too
		{"[!f]*.h", "include/linux/fs.h", false, true},
		{"inode.?", "fs/inode.c", false, true},
	} {
		assert.Equal(t, c.perf, Where{File: c.said}.files()(c.path), "perf: %s means %s", c.said, c.path)
		assert.Equal(t, c.parts, Where{File: c.said, All: true}.files()(c.path), "stap: %s means %s", c.said, c.path)
	}
}
