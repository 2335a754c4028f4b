package qemu

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/x86"
)

func TestIDTInTheListOfRegisters(t *testing.T) {
	at, err := idt("RIP=0\nGDT=     fffffe0000001000 0000007f\nIDT=     fffffe0000000000 00000fff\nCR0=80050033\n")
	require.NoError(t, err)
	require.Equal(t, x86.Addr(0xfffffe0000000000), at)
	for _, text := range []string{"", "IDT=", "IDT= none", "GDT=1 2"} {
		_, err := idt(text)
		require.Error(t, err, text)
	}
}
