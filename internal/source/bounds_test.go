package source

import (
	"bytes"
	"debug/dwarf"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/bounded"
)

// unitOf is a file of one unit of DWARF 4 with these bytes of entries. Its abbreviations are 1: a unit with children, 2: a
// block with children, 3: a block without.
func unitOf(t *testing.T, entries []byte) *File {
	info := binary.LittleEndian.AppendUint32(nil, uint32(7+len(entries)))
	info = append(info, 4, 0, 0, 0, 0, 0, 8)
	info = append(info, entries...)
	f := &File{debug: map[string][]byte{"debug_info": info, "debug_abbrev": {1, 0x11, 1, 0, 0, 2, 0x0b, 1, 0, 0, 3, 0x0b, 0, 0, 0, 0}}, abbrevs: map[uint64]abbrevs{}}
	require.NoError(t, f.readHeaders())
	var err error
	f.dwarf, err = dwarf.New(f.debug["debug_abbrev"], nil, nil, info, nil, nil, nil, nil)
	require.NoError(t, err)
	f.left = bounded.EntriesRead
	return f
}

// A file, and its sections together, have no more bytes than are read.
func TestFilesOfDebuggingInformationThatAreTooLong(t *testing.T) {
	name := filepath.Join(t.TempDir(), "long")
	require.NoError(t, os.WriteFile(name, nil, 0o600))
	for size, want := range map[int64]error{bounded.SourceFile: ErrNone, bounded.SourceFile + 1: ErrTooMuch} {
		require.NoError(t, os.Truncate(name, size))
		_, err := Open(name)
		require.ErrorIs(t, err, want, "%d", size)
	}
	section := func(name string, size uint64) *elf.Section {
		s := &elf.Section{SectionHeader: elf.SectionHeader{Name: name, Type: elf.SHT_PROGBITS, Size: size, FileSize: size}}
		s.ReaderAt = bytes.NewReader(nil)
		return s
	}
	for name, c := range map[string]struct {
		info, other uint64
		want        error
	}{
		"as_many":        {bounded.DebugSections - 8, 8, ErrDamaged}, // the file has none of it
		"one_more":       {bounded.DebugSections - 8, 9, ErrTooMuch},
		"one_section":    {bounded.DebugSections + 1, 0, ErrTooMuch},
		"sum_turns_over": {1<<64 - 8, 16, ErrTooMuch},
	} {
		t.Run(name, func(t *testing.T) {
			e := &elf.File{Sections: []*elf.Section{section(".debug_info", c.info), section(".debug_abbrev", c.other)}}
			f := &File{debug: map[string][]byte{}}
			err := f.sections(e, &layout{at: make([]uint64, 2)}, 100)
			require.ErrorIs(t, err, c.want)
		})
	}
}

// Entries of a unit that are too many, or too deep, end the question.
func TestEntriesWithoutEnd(t *testing.T) {
	flat := func(n int) []byte { return append([]byte{1}, bytes.Repeat([]byte{3}, n-1)...) }
	deep := func(n int) []byte {
		return append([]byte{1}, append(bytes.Repeat([]byte{2}, n-1), make([]byte, n)...)...)
	}
	for name, c := range map[string]struct {
		make func(n int) []byte
		most int
		want string
	}{
		"UnitEntries": {flat, bounded.UnitEntries, "the unit at 0x0 is not read to its end"},
		"UnitDepth":   {deep, bounded.UnitDepth, "entries are nested deeper than 256"},
	} {
		t.Run(name, func(t *testing.T) {
			f := unitOf(t, c.make(c.most))
			u, err := f.unit(&f.headers[0])
			require.NoError(t, err)
			require.Len(t, u.byOff, c.most)
			f = unitOf(t, c.make(c.most+1))
			_, err = f.unit(&f.headers[0])
			require.ErrorIs(t, err, ErrTooMuch)
			require.ErrorContains(t, err, c.want)
		})
	}
	t.Run("EntriesRead", func(t *testing.T) {
		f := unitOf(t, flat(10))
		f.left = 10
		_, err := f.unit(&f.headers[0])
		require.NoError(t, err)
		f.recent, f.left = nil, 9
		_, err = f.unit(&f.headers[0])
		require.ErrorIs(t, err, ErrTooMuch)
		f = opened(t, forms["dwarf_5"]...)
		for name, question := range map[string]func() error{
			"places":     func() error { return f.Places(Where{Function: "work"}, func(*Place) error { return nil }) },
			"lines":      func() error { _, err := f.Lines(Where{Function: "work"}, 0, -1); return err },
			"statements": func() error { return f.Statements(Statements{Function: "work"}, func(*Place) error { return nil }) },
			"function":   func() error { _, err := f.FunctionAt(0x401000); return err },
			"place":      func() error { _, err := f.At(0x401010); return err },
		} {
			f.recent, f.left = nil, 0 // each question has its own
			err := question()
			require.NotErrorIs(t, err, ErrTooMuch, name)
			require.Less(t, f.left, bounded.EntriesRead, name)
			require.Greater(t, f.left, bounded.EntriesRead-1000, name)
		}
	})
	t.Run("Units", func(t *testing.T) {
		one := []byte{8, 0, 0, 0, 4, 0, 0, 0, 0, 0, 8, 0}
		f := &File{debug: map[string][]byte{"debug_info": bytes.Repeat(one, bounded.Units)}}
		require.NoError(t, f.readHeaders())
		f = &File{debug: map[string][]byte{"debug_info": bytes.Repeat(one, bounded.Units+1)}}
		err := f.readHeaders()
		require.ErrorIs(t, err, ErrTooMuch)
		require.ErrorContains(t, err, "more than 262144 units")
	})
	t.Run("Abbreviations", func(t *testing.T) {
		var raw []byte
		for i := range uint64(bounded.Abbreviations + 100) {
			raw = append(binary.AppendUvarint(raw, i+1), 0x0b, 0, 0, 0)
		}
		f := &File{debug: map[string][]byte{"debug_abbrev": append(raw, 0)}, abbrevs: map[uint64]abbrevs{}}
		list, err := f.abbrevsAt(0)
		require.NoError(t, err)
		require.Len(t, list, bounded.Abbreviations)
	})
}

// References from entry to entry are followed so far, in a ring too.
func TestReferencesWithoutEnd(t *testing.T) {
	chain := func(n int, ring bool) *node { // the last of n has the name
		u := &Unit{f: &File{}, h: &header{version: 4, addrSize: 8}, byOff: map[dwarf.Offset]*node{}}
		for i := range n {
			e := &dwarf.Entry{Offset: dwarf.Offset(i + 1), Field: []dwarf.Field{{Attr: dwarf.AttrAbstractOrigin, Val: dwarf.Offset((i+1)%n + 1)}}}
			if i == n-1 && !ring {
				e.Field = []dwarf.Field{{Attr: dwarf.AttrName, Val: "f"}}
			}
			u.byOff[e.Offset] = &node{unit: u, Entry: e}
		}
		return u.byOff[1]
	}
	require.Equal(t, "f", chain(bounded.References, false).name())
	require.Empty(t, chain(bounded.References+1, false).name())
	require.Empty(t, chain(3, true).name())

	c := calls{names: map[uint64]string{bounded.References: "f"}, origins: map[uint64]uint64{}}
	for i := range uint64(bounded.References) {
		c.origins[i] = i + 1
	}
	require.Equal(t, "f", c.nameOf(1))
	require.Empty(t, c.nameOf(0))
}

// Lists and expressions have no more parts than are read.
func TestExpressionsWithoutEnd(t *testing.T) {
	u := &Unit{root: &node{Entry: &dwarf.Entry{}}, h: &header{version: 5, addrSize: 8}}
	t.Run("LocationSpans", func(t *testing.T) {
		f := &File{debug: map[string][]byte{"debug_loclists": bytes.Repeat([]byte{4, 1, 2, 1, 0x50}, bounded.LocationSpans+10)}}
		require.Len(t, f.loclist(u, 0), bounded.LocationSpans)
		old := append(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, 1), 2), 1, 0, 0x50)
		f = &File{debug: map[string][]byte{"debug_loc": bytes.Repeat(old, bounded.LocationSpans+10)}}
		require.Len(t, f.oldLoclist(u, 0), bounded.LocationSpans)
	})
	f := &File{debug: map[string][]byte{}}
	t.Run("Operations", func(t *testing.T) {
		_, known := f.ops(u.h, bytes.Repeat([]byte{opNop}, bounded.Operations))
		require.True(t, known)
		list, known := f.ops(u.h, bytes.Repeat([]byte{opNop}, bounded.Operations+1))
		require.False(t, known)
		require.Len(t, list, bounded.Operations)
	})
	t.Run("FormulaNodes", func(t *testing.T) {
		p, v := &Place{fn: &node{Entry: &dwarf.Entry{}, unit: u}}, &node{Entry: &dwarf.Entry{}, unit: u}
		raw := []byte{opBreg0 + 5, 0}
		for range 7 {
			raw = append(raw, opDup, opPlus) // 255 parts
		}
		for name, more := range map[string][]byte{"255": nil, "256": {opDeref}} {
			ops, _ := f.ops(u.h, append(raw[:len(raw):len(raw)], more...))
			require.NotNil(t, p.formula(v, ops), name)
		}
		ops, _ := f.ops(u.h, append(raw, opDeref, opDeref))
		require.Nil(t, p.formula(v, ops), "257")
	})
	t.Run("FrameStates", func(t *testing.T) {
		c := &cie{codeAlign: 1}
		program := func(n int) []byte { return append(bytes.Repeat([]byte{0x0a}, n), 0x0c, 7, 8) } // remember_state, def_cfa
		_, _, ok := c.run(program(bounded.FrameStates), 0)
		require.True(t, ok)
		_, _, ok = c.run(program(bounded.FrameStates+1), 0)
		require.False(t, ok)
	})
}

// Each offset of .debug_abbrev is a table of its own, and tables may overlap: a small file can have many long ones.
func TestTablesOfAbbreviationsThatOverlap(t *testing.T) {
	file := func(units, length int) *File {
		f := &File{debug: map[string][]byte{"debug_abbrev": append(bytes.Repeat([]byte{1, 0x0b, 0, 0, 0}, length), 0)}}
		for i := range units {
			info := binary.LittleEndian.AppendUint32(f.debug["debug_info"], 8)
			info = append(info, 4, 0)
			f.debug["debug_info"] = append(binary.LittleEndian.AppendUint32(info, uint32(5*(i%length))), 8, 0)
		}
		return f
	}
	const long = 1 << 16
	fits := bounded.AbbreviationTables / (5*long + 1)
	require.NoError(t, file(fits, long).readHeaders())
	f := file(2*fits, long)
	err := f.readHeaders()
	require.ErrorIs(t, err, ErrTooMuch)
	require.ErrorContains(t, err, "its units' tables of abbreviations have more than 32 MiB")
	f = file(1<<12, 3)
	require.NoError(t, f.readHeaders(), "many units that share a few tables")
	f = file(1, 3)
	f.debug["debug_abbrev"] = f.debug["debug_abbrev"][:7]
	require.NoError(t, f.readHeaders(), "who asks for the table is told that it is damaged")
}
