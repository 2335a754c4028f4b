package interp

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/bounded"
)

// Translated code is kept up to the bound; then all of it is dropped, and is made anew.
func TestTranslatedCodeIsBounded(t *testing.T) {
	var k cache
	k.init()
	const full = bounded.TranslatedCode / maxBlock
	for i := range 3 * full {
		at := uint64(i) * pageSize
		k.add(&block{pc: at, end: at + maxBlockBytes, ops: make([]op, maxBlock)})
		require.LessOrEqual(t, k.ops, bounded.TranslatedCode)
		require.Len(t, k.all, i%full+1)
		require.NotNil(t, k.all[at])
	}
	require.Equal(t, bounded.TranslatedCode, k.ops)
}
