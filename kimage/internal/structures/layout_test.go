package structures

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/kimage/btf"
	"kprobelab/kimage/internal/opened"
	"kprobelab/x86"
)

// madeTasks are tasks in memory, a page each: their list at 0x40, pid at 0x100, tgid after
// it, the name at 0x180.
type madeTasks []byte

const madeAt = 0xffff888000000000

func makeTasks(names ...string) madeTasks {
	m := make(madeTasks, len(names)*maxTaskStruct)
	link := func(i int) uint64 { return madeAt + uint64((i+len(names))%len(names)*maxTaskStruct+0x40) }
	for i, name := range names {
		task := m[i*maxTaskStruct:]
		binary.LittleEndian.PutUint64(task[0x40:], link(i+1))
		binary.LittleEndian.PutUint64(task[0x48:], link(i-1))
		binary.LittleEndian.PutUint32(task[0x100:], uint32(i))
		binary.LittleEndian.PutUint32(task[0x104:], uint32(i))
		copy(task[0x180:], name)
	}
	return m
}

func (m madeTasks) read(at x86.Addr, b []byte) error {
	off := at.Sub(madeAt)
	if off < 0 || off+int64(len(b)) > int64(len(m)) {
		return errors.New("nothing is there")
	}
	copy(b, m[off:])
	return nil
}

// TestTaskLayoutIsNotGuessed: if the tasks do not tell the layout, there is no answer.
func TestTaskLayoutIsNotGuessed(t *testing.T) {
	names := []string{"swapper/0", "init", "kthreadd", "sh"}
	for name, c := range map[string]struct {
		change func(m madeTasks) madeTasks
		ok     bool
	}{
		"as_they_are":            {nil, true},
		"plain_swapper":          {func(madeTasks) madeTasks { return makeTasks("swapper", "init", "kthreadd") }, true},
		"one_process":            {func(madeTasks) madeTasks { return makeTasks("swapper/0", "init") }, false},
		"another_first_task":     {func(madeTasks) madeTasks { return makeTasks("idle", "init", "kthreadd") }, false},
		"swapper_twice":          {func(m madeTasks) madeTasks { copy(m[0x800:], "swapper"); return m }, false},
		"swappers_cousin":        {func(m madeTasks) madeTasks { copy(m[0x180:], "swapperd"); return m }, false},
		"a_name_of_other_bytes":  {func(m madeTasks) madeTasks { m[maxTaskStruct+0x180] = 1; return m }, false},
		"a_name_without_an_end":  {func(m madeTasks) madeTasks { copy(m[maxTaskStruct+0x180:], "aaaaaaaaaaaaaaaa"); return m }, false},
		"a_number_twice":         {func(m madeTasks) madeTasks { m[3*maxTaskStruct+0x100], m[3*maxTaskStruct+0x104] = 1, 1; return m }, false},
		"first_two_turned_round": {func(m madeTasks) madeTasks { m[maxTaskStruct+0x100], m[maxTaskStruct+0x104] = 2, 2; return m }, false},
		"two_places_for_numbers": {func(m madeTasks) madeTasks {
			for i := range 4 {
				copy(m[i*maxTaskStruct+0x200:], m[i*maxTaskStruct+0x100:][:8])
			}
			return m
		}, false},
		"broken_list":     {func(m madeTasks) madeTasks { m[maxTaskStruct+0x48]++; return m }, false},
		"list_to_nowhere": {func(m madeTasks) madeTasks { binary.LittleEndian.PutUint64(m[maxTaskStruct+0x40:], 8); return m }, false},
		"list_into_itself": {func(m madeTasks) madeTasks {
			binary.LittleEndian.PutUint64(m[3*maxTaskStruct+0x40:], madeAt+maxTaskStruct+0x40)
			return m
		}, false},
		"no_memory": {func(madeTasks) madeTasks { return nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := makeTasks(names...)
			if c.change != nil {
				m = c.change(m)
			}
			got, list, ok := (&Kernel{Memory: m.read}).searchLayout(madeAt)
			require.Equal(t, c.ok, ok)
			if ok {
				require.Equal(t, TaskLayout{0x100, 0x104, 0x180}, got)
				require.Equal(t, 0x40, list)
			}
		})
	}
}

// named is an image that has symbols alone.
type named struct {
	opened.Image
	symbols map[string]x86.Addr
}

func (n named) SymbolAddr(name string) (x86.Addr, bool) { at, ok := n.symbols[name]; return at, ok }
func (named) Lookup(string) []opened.Symbol             { return nil }

func untyped() *btf.Types { return &btf.Types{} }

// If type information is missing and the kernel's code has no such functions, the places of members are
// unknown, and the error names what is missing.
func TestTasksWithoutTypeInformation(t *testing.T) {
	m := makeTasks("swapper/0", "init", "kthreadd")
	k := &Kernel{Image: named{symbols: map[string]x86.Addr{"init_task": madeAt}}, Types: untyped, Memory: m.read}
	places, _, err := k.TaskPlaces()
	require.Empty(t, places)
	require.ErrorContains(t, err, "no type information about task_struct.tasks, and its offset cannot be found: 0 places fit task_struct.__state")
	l, searched, ok := k.Layout()
	require.True(t, searched && ok)
	require.Equal(t, TaskLayout{0x100, 0x104, 0x180}, l)

	k.Image = named{}
	places, _, err = k.TaskPlaces()
	require.Empty(t, places)
	require.EqualError(t, err, "no type information about task_struct.tasks")
	_, _, ok = k.Layout()
	require.False(t, ok)
}
