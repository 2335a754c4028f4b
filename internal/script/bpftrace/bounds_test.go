package bpftrace

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/bounded"
	"kprobelab/internal/script/host"
)

// A type that a script defines has no more members, and is no larger, than the bounds.
func TestDefinitionsThatAreTooLarge(t *testing.T) {
	members := func(n int) (text string) {
		for i := range n {
			text += fmt.Sprintf("char m%d; ", i)
		}
		return "struct s { " + text + "}"
	}
	of := func(format string, n int) string { return fmt.Sprintf(format, n) }
	const most = bounded.DefinitionSize
	for name, c := range map[string]struct{ fits, past, want string }{
		"DefinitionFields": {members(bounded.DefinitionFields), members(bounded.DefinitionFields + 1), "a structure has too many members"},
		"elements":         {of("struct s { char a[%d]; }", most), of("struct s { char a[%d]; }", most+1), "an array is too large"},
		"elements_of_two":  {of("struct s { char a[2][%d]; }", most/2), of("struct s { char a[2][%d]; }", most/2+1), "an array is too large"},
		"size_of_elements": {of("struct s { long a[%d]; }", most/8), of("struct s { long a[%d]; }", most/8+1), "an array is too large"},
		"size_of_members":  {of("struct s { char a[%d]; char b; }", most-1), of("struct s { char a[%d]; char b; }", most), "struct s is larger than 65536 bytes"},
		"size_of_a_union":  {of("union s { char a[%d]; long b; }", most), of("union s { char a[%d]; long b; }", most-1) + of("struct t { union s a; char b[%d]; }", 9), "struct t is larger than 65536 bytes"},
		"size_of_nesting":  {of("struct s { struct { char a[%d]; } b; char c; }", most-1), of("struct s { struct { char a[%d]; } b; char c; }", most), "struct s is larger than 65536 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			const rest = "\nBEGIN { $x = (uint64)1; }"
			_, err := Analyze("stdin", c.fits+rest, &Options{}, nil)
			require.NoError(t, err)
			_, err = Analyze("stdin", c.past+rest, &Options{}, nil)
			require.ErrorContains(t, err, c.want)
		})
	}
}

// chained is a kernel's memory: fields are the words at their places of each object, from the object's address on. An object
// takes 4 kB.
type chained struct {
	host.System
	fields map[uint64]uint64
}

func (c *chained) Read(at uint64, b []byte, _ bool) bool {
	var word [8]byte
	if v, ok := c.fields[at%0x1000]; ok {
		binary.LittleEndian.PutUint64(word[:], at&^0xfff+v)
	}
	copy(b, word[:])
	return true
}

func (*chained) Task(host.TaskWord) int64 { return -1 << 40 }

// A path that has no beginning, in a damaged kernel or a hostile one, has so many folders and mounts.
func TestPathsWithoutBeginning(t *testing.T) {
	p := &paths{dentry: 8, mnt: 16, parent: 24, name: 32, text: 0, size: 8, hash: 48, op: 56, inode: 64, dname: 72, top: 80, above: 96, mountpoint: 104, fs: 112, root: 120}
	const object = 0xffff800000000000
	for name, c := range map[string]struct {
		fields map[uint64]uint64
		want   string
	}{
		"folder_in_folder": {map[uint64]uint64{8: 0x1000, 16: 0x2000, 24: 0x1000, 32: 0, 48: 1}, strings.Repeat("/", bounded.PathSteps)},
		// A mount's own folder is where it is mounted, in another such mount.
		"mount_on_mount": {map[uint64]uint64{8: 0x1000, 16: 0x1000, 24: 0x1000, 48: 1, 80: 0, 96: 0x1000, 104: 0x1000}, "/"},
	} {
		t.Run(name, func(t *testing.T) {
			var room [maxPath]byte
			require.Equal(t, c.want, string(p.of(&chained{fields: c.fields}, object, &room)))
		})
	}
}
