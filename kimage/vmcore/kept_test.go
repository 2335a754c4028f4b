package vmcore

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/bounded"
	"kprobelab/x86"
)

// chained is physical memory of end bytes: each entry leads to another page. It counts the reads.
type chained struct {
	end   uint64
	reads int
}

func (m *chained) ReadPhys(phys uint64, b []byte) error {
	m.reads++
	if phys+uint64(len(b)) > m.end {
		return &AbsentError{m.end}
	}
	for i := 0; i+8 <= len(b); i += 8 {
		index := (phys + uint64(i)) % PageSize / 8
		le.PutUint64(b[i:], (phys&^(PageSize-1)+PageSize*(1+index))|entryPresent)
	}
	return nil
}

// TestTablesOfAFileAreBounded: many tables are read, and few kept; the answers are those of a reader that keeps none.
func TestTablesOfAFileAreBounded(t *testing.T) {
	m := &chained{end: 1 << 40}
	keeps, each := NewSpace(m, 0, 4), NewSpace(m, 0, 4)
	keeps.kept = keptTables{}
	for i := range x86.Addr(3 * bounded.DumpTables) {
		va := i << 21 // another table of the lowest level
		got, err := keeps.Translate(va)
		require.NoError(t, err)
		want, err := each.Translate(va)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.LessOrEqual(t, len(keeps.kept), bounded.DumpTables)
	}
	m.reads = 0
	for range 10 {
		_, err := keeps.Translate(5 << 12)
		require.NoError(t, err)
	}
	require.LessOrEqual(t, m.reads, 4)
}

// TestTablesThatTheFileHasInPart: the entries that are there are read, the others are absent.
func TestTablesThatTheFileHasInPart(t *testing.T) {
	m := &chained{end: 16}
	s := NewSpace(m, 0, 1)
	s.kept = keptTables{}
	_, err := s.Translate(1 << 12)
	require.NoError(t, err)
	var absent *AbsentError
	_, err = s.Translate(2 << 12)
	require.ErrorAs(t, err, &absent)
	require.Empty(t, s.kept)
}
