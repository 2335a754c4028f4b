package bpftrace

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/script"
)

// The texts are those of bpftrace 0.27.1's %gr.
func TestGFPFlagsHaveTheToolsNames(t *testing.T) {
	for v, want := range map[uint64]string{
		0: "0", 0xcc0: "GFP_KERNEL", 0xdc0: "GFP_KERNEL|__GFP_ZERO", 0x100cca: "GFP_HIGHUSER|0x8", 0x140cca: "GFP_HIGHUSER|__GFP_COMP|0x8",
		0x8000c: "GFP_DMA32|__GFP_NOMEMALLOC|0x8", 0x1120d0: "__GFP_IO|__GFP_FS|__GFP_NOWARN|__GFP_NORETRY|__GFP_HARDWALL|0x10",
		0x28c0: "GFP_NOWAIT|__GFP_IO|__GFP_FS", 0x2860: "GFP_ATOMIC|__GFP_IO|__GFP_NOWARN", 0x2c00: "GFP_NOIO|__GFP_NOWARN",
		0x21c2cca: "GFP_TRANSHUGE|__GFP_KSWAPD_RECLAIM", 0x3000cca: "GFP_KERNEL|__GFP_HIGHMEM|__GFP_SKIP_ZERO|__GFP_SKIP_KASAN|0x8",
		0x92c40: "GFP_NOFS|__GFP_NOWARN|__GFP_NORETRY|__GFP_NOMEMALLOC", 1 << 32: "0x100000000",
		^uint64(0): "GFP_TRANSHUGE|GFP_ATOMIC|GFP_DMA|GFP_DMA32|__GFP_ZERO|__GFP_WRITE|__GFP_RETRY_MAYFAIL|__GFP_NOFAIL|__GFP_NORETRY|__GFP_MEMALLOC|" +
			"__GFP_THISNODE|__GFP_ACCOUNT|__GFP_ZEROTAGS|__GFP_SKIP_ZERO|__GFP_NO_OBJ_EXT|0xfffffffff8000210",
	} {
		require.Equal(t, want, gfpText(v), "%#x", v)
	}
}

// In a format of 0.23, %gr is text.
func TestGFPFlagsAreOfTheNewestLanguage(t *testing.T) {
	require.Empty(t, Language23.directives("%gr %-9gr"))
	list := Language27.directives("%gr %-9gr %5lgr")
	require.Len(t, list, 3)
	require.Equal(t, 9, list[1].width)
	require.True(t, list[1].left)
	var none *script.Thread
	require.Equal(t, "!{invalid GFP flags conversion: true}", string(showGFP(boolT, list[0])(none, 1, nil, nil)))
	for format, want := range map[string]string{"%9gr|": "  GFP_DMA", "%-9gr": "GFP_DMA  ", "%09gr": "00GFP_DMA", "%.3gr": "GFP_DMA"} {
		require.Equal(t, want, string(showGFP(uint64T, Language27.directives(format)[0])(none, 1, nil, nil)))
	}
}
