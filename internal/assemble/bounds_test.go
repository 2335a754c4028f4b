package assemble

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/bounded"
)

// A text may have as many lines, and a line as many bytes, as the bound says.
func TestAssemblyIsBounded(t *testing.T) {
	_, err := Code(strings.Repeat("nop\n", bounded.AssemblyLines), 0x1000)
	require.NoError(t, err)
	_, err = Code(strings.Repeat("nop\n", bounded.AssemblyLines+1), 0x1000)
	require.ErrorContains(t, err, "these are more than 500 lines")
	_, err = Code("nop"+strings.Repeat(" ", bounded.AssemblyLine-3), 0x1000)
	require.NoError(t, err)
	_, err = Code(strings.Repeat("a", bounded.AssemblyLine+1), 0x1000)
	require.ErrorContains(t, err, "line 1 has more than 200 characters")
}
