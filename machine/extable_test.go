package machine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/tinyguest"
	"kprobelab/kimage"
	"kprobelab/x86"
)

func TestFixupTypes(t *testing.T) {
	start := x86.PtRegs{AX: 1, CX: 2, DX: 3, SP: 0x100, DI: 5}
	for name, c := range map[string]struct {
		data uint32
		want x86.PtRegs
	}{
		"default":    {1, start},
		"fault":      {exFault, x86.PtRegs{AX: 14, CX: 2, DX: 3, SP: 0x100, DI: 5}},
		"efault_reg": {exImmReg | 7<<exRegShift | 0xfff2<<exImmShift, x86.PtRegs{AX: 1, CX: 2, DX: 3, SP: 0x100, DI: ^uint64(13)}},
		"pop_zero":   {exPopReg | 1<<exRegShift, x86.PtRegs{AX: 1, DX: 3, SP: 0x108, DI: 5}},
		"ucopy_len":  {exUCopyLen | 2<<exRegShift | 8<<exImmShift, x86.PtRegs{AX: 1, CX: 19, DX: 3, SP: 0x100, DI: 5}},
		"clear_both": {3 | exClearAX | exClearDX, x86.PtRegs{CX: 2, SP: 0x100, DI: 5}},
	} {
		t.Run(name, func(t *testing.T) {
			got := start
			applyFixup(&got, c.data, VectorPage)
			require.Equal(t, c.want, got)
		})
	}
}

type typedImage struct {
	*tinyguest.Image
	table []kimage.ExceptionEntry
}

func (i typedImage) ExceptionTable() []kimage.ExceptionEntry { return i.table }

func TestHandlersOfOldKernelsAreNoTypes(t *testing.T) {
	entry := kimage.ExceptionEntry{Addr: 1, Fixup: 2, Data: exImmReg}
	require.NotNil(t, exceptionTableOf(typedImage{table: []kimage.ExceptionEntry{entry}}))
	require.Nil(t, exceptionTableOf(typedImage{table: []kimage.ExceptionEntry{entry, {Addr: 3, Data: 0xff123456 | 0x80}}}))
	require.Nil(t, exceptionTableOf(&tinyguest.Image{}))
}
