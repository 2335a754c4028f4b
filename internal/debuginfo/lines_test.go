package debuginfo

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/bounded"
)

// The source that lines are shown of has a bound.
func TestSourcesThatAreTooLong(t *testing.T) {
	dir := t.TempDir()
	source := filepath.Join(dir, "a.c")
	for size, read := range map[int64]bool{bounded.SourceText: true, bounded.SourceText + 1: false} {
		require.NoError(t, os.WriteFile(source, nil, 0o600))
		require.NoError(t, os.Truncate(source, size))
		_, b := sourceText("a.c", dir, "")
		require.Equal(t, read, b != nil, size)
		_, b = sourceText("a.c", "", filepath.Join(dir, "object"))
		require.Equal(t, read, b != nil, size)
	}
}
