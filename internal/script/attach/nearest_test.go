package attach

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"kprobelab/kimage"
)

// Names of addresses as bpftrace 0.23.2 gave them on Linux 6.18: data has no names, and what comes after a symbol is
// the symbol's, however far away.
func TestNearestSymbol(t *testing.T) {
	list := codeSymbols([]kimage.Symbol{
		{Name: "absolute", Addr: 0, Type: 'A'}, {Name: "__pi__text", Addr: 0x1000, Type: 'T'}, {Name: "_stext", Addr: 0x1000, Type: 'T'},
		{Name: "__do_sys_getppid", Addr: 0x1100, Type: 't'}, {Name: "__ia32_sys_getppid", Addr: 0x1100, Type: 'T'}, {Name: "__x64_sys_getppid", Addr: 0x1100, Type: 'T'},
		{Name: "of_module", Addr: 0x9000, Type: 't', Module: "m"}, {Name: "sys_call_table", Addr: 0x2000, Type: 'D'}, {Name: "weak", Addr: 0x3000, Type: 'W'},
	})
	for addr, want := range map[uint64]string{
		0: " 0", 5: " 0", 0x1000: "_stext 0", 0x10ff: "_stext 255", 0x1100: "__x64_sys_getppid 0", 0x2000: "__x64_sys_getppid 3840", 0x3008: "weak 8",
		0x8fff: "weak 24575", ^uint64(0): "of_module 18446744073709514751",
	} {
		name, offset, _ := nearest(list, addr)
		assert.Equal(t, want, fmt.Sprint(name, " ", offset), "%#x", addr)
	}
}
