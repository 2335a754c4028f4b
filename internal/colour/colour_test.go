package colour

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStyle(t *testing.T) {
	require.Equal(t, "x", Style(false).Red("x"))
	require.Equal(t, "\x1b[31mx\x1b[0m", Style(true).Red("x"))
	require.Equal(t, "\x1b[1mx\x1b[0m", Style(true).Bold("x"))
	require.Equal(t, "\x1b[36mx\x1b[0m", Style(true).Cyan("x"))
}
