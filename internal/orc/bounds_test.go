package orc

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/bounded"
	"kprobelab/x86"
)

// Modules whose list does not end are so many, and each table has no more entries than are read.
func TestModulesWithoutEnd(t *testing.T) {
	const head, first = 0xffffffff83000000, 0xffffffffa0000000
	l := now
	l.modulesKnown, l.moduleList, l.moduleIPs, l.moduleEntries, l.moduleOrcs = true, 0, 8, 16, 24
	for orcs, want := range map[uint32]int{7: 7, bounded.OrcEntries: bounded.OrcEntries, bounded.OrcEntries + 1: bounded.OrcEntries} {
		u := &Unwinder{layout: l, modules: head, read: func(at x86.Addr, b []byte) error {
			if len(b) == 4 {
				binary.LittleEndian.PutUint32(b, orcs)
				return nil
			}
			next := uint64(at&^0xfff + 0x1000)
			if at == head {
				next = first
			}
			binary.LittleEndian.PutUint64(b, next)
			return nil
		}}
		n := 0
		u.eachModule(func(t2 table) {
			n++
			require.Equal(t, want, t2.n)
		})
		require.Equal(t, bounded.OrcModules, n)
	}
}
