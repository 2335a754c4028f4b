package archive

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A field of the rules that had another type when the file was made is no damage: what it
// said cannot be read any more.
func TestRulesInAnotherForm(t *testing.T) {
	_, err := readProfile("6.1", []byte(`{"Kret":{"FrameCheck":true}}`))
	require.ErrorIs(t, err, ErrOlder)
	require.NotErrorIs(t, err, ErrFormat)
	require.ErrorContains(t, err, "FrameCheck")
	_, err = readProfile("6.1", []byte(`{"Kret":`))
	require.ErrorIs(t, err, ErrFormat)
	c, err := readProfile("6.1", []byte(`{}`))
	require.NoError(t, err)
	require.Equal(t, "6.1", c.Name)

	// Nor is a kernel packed already that has such a file.
	made, err := newContents()
	require.NoError(t, err)
	made.add("kernel", []byte(`{"profile":{"Kret":{"FrameCheck":true}}}`))
	b, err := made.bytes()
	require.NoError(t, err)
	name := filepath.Join(t.TempDir(), "older"+Suffix)
	require.NoError(t, os.WriteFile(name, b, 0o666))
	_, err = ReadHeader(name)
	require.ErrorIs(t, err, ErrOlder)
}
