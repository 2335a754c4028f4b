package bpftrace

import (
	"fmt"
	"strings"

	"kprobelab/internal/script"
)

// gfpFlags are the names that 0.27's %gr gives to flags of the kernel's allocators, in the order in which it takes them out of a
// value: first the kernel's combinations, then single flags. It has these bits on every kernel, as Linux 6.18 numbers them.
var gfpFlags = []struct {
	mask uint64
	name string
}{
	{0x21c24ca, "GFP_TRANSHUGE"},
	{0x21c20ca, "GFP_TRANSHUGE_LIGHT"},
	{0x2100cca, "GFP_HIGHUSER_MOVABLE"},
	{0x100cc2, "GFP_HIGHUSER"},
	{0x100cc0, "GFP_USER"},
	{0x400cc0, "GFP_KERNEL_ACCOUNT"},
	{0xcc0, "GFP_KERNEL"},
	{0xc40, "GFP_NOFS"},
	{0x820, "GFP_ATOMIC"},
	{0xc00, "GFP_NOIO"},
	{0x2800, "GFP_NOWAIT"},
	{1 << 0, "GFP_DMA"},
	{1 << 1, "__GFP_HIGHMEM"},
	{1 << 2, "GFP_DMA32"},
	{1 << 5, "__GFP_HIGH"},
	{1 << 6, "__GFP_IO"},
	{1 << 7, "__GFP_FS"},
	{1 << 8, "__GFP_ZERO"},
	{1 << 10, "__GFP_DIRECT_RECLAIM"},
	{1 << 11, "__GFP_KSWAPD_RECLAIM"},
	{1 << 12, "__GFP_WRITE"},
	{1 << 13, "__GFP_NOWARN"},
	{1 << 14, "__GFP_RETRY_MAYFAIL"},
	{1 << 15, "__GFP_NOFAIL"},
	{1 << 16, "__GFP_NORETRY"},
	{1 << 17, "__GFP_MEMALLOC"},
	{1 << 18, "__GFP_COMP"},
	{1 << 19, "__GFP_NOMEMALLOC"},
	{1 << 20, "__GFP_HARDWALL"},
	{1 << 21, "__GFP_THISNODE"},
	{1 << 22, "__GFP_ACCOUNT"},
	{1 << 23, "__GFP_ZEROTAGS"},
	{1 << 24, "__GFP_SKIP_ZERO"},
	{1 << 25, "__GFP_SKIP_KASAN"},
	{1 << 26, "__GFP_NO_OBJ_EXT"},
}

// gfpText names the flags of a value. The bits that have no name stand last, as a number.
func gfpText(v uint64) string {
	var names []string
	for _, f := range gfpFlags {
		if v&f.mask == f.mask {
			names = append(names, f.name)
			v &^= f.mask
		}
	}
	switch {
	case len(names) == 0 && v == 0:
		return "0"
	case v != 0:
		names = append(names, fmt.Sprintf("%#x", v))
	}
	return strings.Join(names, "|")
}

// showGFP is %gr of a value of a type. Zeros fill a width, too.
func showGFP(t *Type, d directive) func(th *script.Thread, num int64, text, dst []byte) []byte {
	return func(_ *script.Thread, num int64, _, dst []byte) []byte {
		text := gfpText(uint64(num))
		if t.Bool {
			text = fmt.Sprintf("!{invalid GFP flags conversion: %t}", num != 0)
		}
		pad := max(d.width-len(text), 0)
		switch {
		case d.left:
			return append(append(dst, text...), strings.Repeat(" ", pad)...)
		case d.zero:
			return append(append(dst, strings.Repeat("0", pad)...), text...)
		}
		return append(append(dst, strings.Repeat(" ", pad)...), text...)
	}
}
