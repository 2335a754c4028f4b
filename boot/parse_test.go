package boot

import (
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSizesOfMemory(t *testing.T) {
	for text, want := range map[string]int{"128M": 128, "1G": 1024, "64MiB": 64, "2gb": 2048} {
		n, err := ParseMegabytes(text)
		require.NoError(t, err, text)
		require.Equal(t, want, n, text)
	}
	for _, text := range []string{"", "M", "128", "63M", "-1G", "1T", "99999999999999999999G", "9223372036854775807G"} {
		_, err := ParseMegabytes(text)
		require.ErrorContains(t, err, "such as 256M", text)
	}
}

func TestTextsThatNameNoFiles(t *testing.T) {
	for _, text := range []string{"", "a", ":/b", "a:b", "a:"} {
		_, err := ParseFiles(text)
		require.ErrorIs(t, err, ErrFiles, text)
	}
	_, err := ParseFiles("nosuch:/b")
	require.ErrorIs(t, err, fs.ErrNotExist)
	list, err := ParseFiles("parse_test.go:/b/c")
	require.NoError(t, err)
	require.True(t, Has(list, "/b/c"))
}
