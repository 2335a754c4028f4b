package boot

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kprobelab/booted"
)

func TestReportsOfABoot(t *testing.T) {
	p := &Plan{Options: Options{Kernel: &Kernel{Name: "vmlinuz", Release: "6.1"}, CPU: "qemu64", CPUs: 2}, Exec: &booted.Program{Args: []string{"/bin/x", "a"}}, Dump: &Dump{File: "k.core", Format: ELF}}
	r := p.Report(&Done{Boot: 1500 * time.Millisecond, Saved: &Saved{Memory: 1 << 20, Bytes: 5}, Exit: &Exit{Code: 137, Signal: 9}}, "10.0")
	var b strings.Builder
	require.NoError(t, r.WriteJSON(&b))
	for _, field := range []string{`"image":"vmlinuz"`, `"kernel":"6.1"`, `"qemu":"10.0"`, `"cpus":2`, `"boot_seconds":1.5`, `"output":"k.core"`, `"memory_bytes":1048576`,
		`"exec":{"args":["/bin/x","a"],"exit_code":137,"signal":9,"stdout":"","stderr":""}`} {
		require.Contains(t, b.String(), field)
	}
	require.NotContains(t, b.String(), "kaslr_offset")
	p.KASLR = true
	require.NotNil(t, p.Report(&Done{Slide: 0}, "").KASLR)
}
