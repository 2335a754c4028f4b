package kimage

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReadBootable(t *testing.T) {
	dir := t.TempDir()
	file := func(b []byte) string {
		name := filepath.Join(dir, "image")
		require.NoError(t, os.WriteFile(name, b, 0o600))
		return name
	}
	bz := make([]byte, 0x400)
	le.PutUint16(bz[bzBootFlag:], 0xaa55)
	copy(bz[bzMagic:], "HdrS")
	for name, b := range map[string][]byte{
		"itself": bz, "packed": packGzip(t, bz), "unified": testPE(peAMD64, map[string][]byte{".linux": bz}),
	} {
		got, err := ReadBootable(file(b))
		require.NoError(t, err, name)
		require.Equal(t, bz, got, name)
	}
	for name, b := range map[string][]byte{
		"elf": []byte("\x7fELF\x02\x01\x01"), "text": []byte("hello"), "empty": nil, "program": testPE(peAMD64, nil),
	} {
		_, err := ReadBootable(file(b))
		require.ErrorIs(t, err, ErrFormat, name)
	}
	_, err := ReadBootable(filepath.Join(dir, "missing"))
	require.ErrorIs(t, err, os.ErrNotExist)
}
