package vmcore

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/x86"
)

// tables is physical memory that page tables are made in.
type tables struct {
	mem  map[uint64]uint64 // entries by their addresses
	next uint64            // the next free page
}

func (m *tables) ReadPhys(phys uint64, b []byte) error {
	if phys >= m.next {
		return &AbsentError{phys}
	}
	if len(b) == 8 {
		le.PutUint64(b, m.mem[phys])
		return nil
	}
	for i := range b {
		b[i] = byte(phys) + byte(i)
	}
	return nil
}

// set maps a page: at level 1 a page of 4 KiB, at 2 and 3 a large page. entry has the
// flags of the last level.
func (m *tables) set(root uint64, levels int, va x86.Addr, level int, entry uint64) {
	table := root
	for l := levels; l > level; l-- {
		at := table + 8*(uint64(va)>>(12+9*(l-1))&511)
		if m.mem[at] == 0 {
			m.mem[at] = m.next | entryPresent | entryWrite | entryUser
			m.next += PageSize
		}
		table = m.mem[at] & entryAddr
	}
	m.mem[table+8*(uint64(va)>>(12+9*(level-1))&511)] = entry
}

func TestTranslate(t *testing.T) {
	const kernel, direct, user x86.Addr = 0xffffffff81000000, 0xffff888000000000, 0x7fff12345000
	for _, levels := range []int{4, 5} {
		m := &tables{mem: map[uint64]uint64{}, next: 0x3000}
		const root = 0x2000
		m.set(root, levels, user, 1, 0x8000|entryPresent|entryUser|entryWrite|entryNoExec)
		m.set(root, levels, kernel, 2, 0x1000000|entryPresent|entryLarge|entryGlobal)
		m.set(root, levels, direct, 3, 0x40000000|entryPresent|entryLarge|entryWrite|entryNoExec)
		s := NewSpace(m, root|0x805|1<<63, levels) // with a PCID and the bit that keeps the TLB
		for _, c := range []struct {
			name string
			at   x86.Addr
			want Translation
		}{
			{"4 KiB", user + 0x678, Translation{Phys: 0x8678, PageSize: 1 << 12, User: true, Write: true}},
			{"2 MiB", kernel + 0x1fffff, Translation{Phys: 0x11fffff, PageSize: 1 << 21, Exec: true, Global: true}},
			{"1 GiB", direct + 0x12345678, Translation{Phys: 0x52345678, PageSize: 1 << 30, Write: true}},
		} {
			got, err := s.Translate(c.at)
			require.NoError(t, err, c.name)
			require.Equal(t, c.want, got, "%s, %d levels", c.name, levels)
		}
		var none *NotMappedError
		_, err := s.Translate(user + 0x1000)
		require.ErrorAs(t, err, &none)
		require.Equal(t, NotMappedError{user + 0x1000, 1}, *none)
		_, err = s.Translate(0x1000)
		require.ErrorContains(t, err, "page table of level")
	}
}

// The bits that are not translated have to repeat the last that is.
func TestCanonical(t *testing.T) {
	m := &tables{mem: map[uint64]uint64{}, next: 0x3000}
	for at, levels := range map[x86.Addr][]int{
		0x0000800000000000: {4},
		0xffff700000000000: {4},
		0x0100000000000000: {4, 5},
		0xfe00000000000000: {4, 5},
		0x00007fffffffffff: nil,
		0xffff800000000000: nil,
	} {
		for _, n := range []int{4, 5} {
			_, err := NewSpace(m, 0x2000, n).Translate(at)
			var none *NotMappedError
			require.ErrorAs(t, err, &none)
			want := n
			for _, l := range levels {
				if l == n {
					want = 0
				}
			}
			require.Equal(t, want, none.Level, "%#x with %d levels", at, n)
		}
	}
}

// Under page table isolation the user's top table follows the kernel's.
func TestHalves(t *testing.T) {
	m := &tables{mem: map[uint64]uint64{}, next: 0x4000}
	const at x86.Addr = 0xffffffff81000000
	m.set(0x2000, 4, at, 2, 0x1000000|entryPresent|entryLarge)
	user := NewSpace(m, 0x3000, 4)
	_, err := user.Translate(at)
	require.Error(t, err)
	tr, err := user.KernelHalf().Translate(at)
	require.NoError(t, err)
	require.EqualValues(t, 0x1000000, tr.Phys)
	require.Equal(t, user.root, user.KernelHalf().UserHalf().root)
}

// A table that is nowhere is an error of its own, and a loop of tables ends.
func TestBadTables(t *testing.T) {
	m := &tables{mem: map[uint64]uint64{}, next: 0x3000}
	m.set(0x2000, 4, 0x1000, 4, 0x7000|entryPresent)
	var absent *AbsentError
	_, err := NewSpace(m, 0x2000, 4).Translate(0x1000)
	require.ErrorAs(t, err, &absent)
	for i := range uint64(512) {
		m.mem[0x2000+8*i] = 0x2000 | entryPresent
	}
	tr, err := NewSpace(m, 0x2000, 4).Translate(0x1234)
	require.NoError(t, err)
	require.EqualValues(t, 0x2234, tr.Phys)
}

// filteredTables is memory of which zeros, or more, were left out.
type filteredTables struct{ level int }

func (m filteredTables) ReadPhys(phys uint64, _ []byte) error { return &FilteredError{phys, m.level} }

func TestFilteredTables(t *testing.T) {
	var none *NotMappedError
	_, err := NewSpace(filteredTables{31}, 0x2000, 4).Translate(0x1000)
	require.ErrorAs(t, err, &none)
	var filtered *FilteredError
	_, err = NewSpace(filteredTables{30}, 0x2000, 4).Translate(0x1000)
	require.ErrorAs(t, err, &filtered)
}

func TestReadAcrossPages(t *testing.T) {
	m := &tables{mem: map[uint64]uint64{}, next: 0x3000}
	m.set(0x2000, 4, 0x1000, 1, 0x1000|entryPresent)
	m.set(0x2000, 4, 0x2000, 1, 0x0000|entryPresent)
	s := NewSpace(m, 0x2000, 4)
	b := make([]byte, 6)
	require.NoError(t, s.Read(0x1ffd, b))
	require.Equal(t, []byte{0xfd, 0xfe, 0xff, 0, 1, 2}, b)
	var none *NotMappedError
	require.ErrorAs(t, s.Read(0x2ffd, b), &none)
	require.EqualValues(t, 0x3000, none.Addr)
}
