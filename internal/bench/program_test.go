package bench

import (
	"bytes"
	"debug/elf"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestProgram(t *testing.T) {
	b, err := programELF()
	require.NoError(t, err)
	f, err := elf.NewFile(bytes.NewReader(b))
	require.NoError(t, err)
	require.Equal(t, elf.PF_R|elf.PF_X, f.Progs[0].Flags)
	require.EqualValues(t, len(b), f.Progs[0].Filesz)
	require.Equal(t, []byte{0x48, 0x89, 0xe0}, b[stepped.offset():][:3])
	require.Equal(t, []byte{0x0f, 0x1f, 0x44, 0, 0, 0xc3}, b[nop5.offset():][:6])
}
