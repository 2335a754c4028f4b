package own

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/errno"
	"kprobelab/internal/integration/oracle"
	"kprobelab/kimage"
)

// TestOwnPrepareAgreesWithTheBootedKernel asks the recorded kernels' own
// registration, from the copy of the instruction to the detour buffer, about points
// that the booted kernels were asked about.
func TestOwnPrepareAgreesWithTheBootedKernel(t *testing.T) {
	for name := range oracle.Kernels {
		t.Run(name, func(t *testing.T) {
			img, err := kimage.Open(oracle.Image(t, name), nil)
			require.NoError(t, err)
			k := open(t, img)
			first := img.Blacklist()[0].Start
			on, err := k.Blacklisted(first)
			require.NoError(t, err)
			require.True(t, on, "%s is the first of the list", first)
			listed, prepared, optimized := 0, 0, 0
			for i, p := range oracle.Points(t, name) {
				if i%every(131) != 0 || !img.InText(p.Addr) {
					continue
				}
				at := p.Addr
				on, err := k.Blacklisted(at)
				require.NoError(t, err)
				if _, model := img.Blacklisted(at); model && !img.InEntryText(at) {
					require.True(t, on, "%s+%#x", p.Sym, p.Off)
					listed++
				}
				if on || p.Ftrace || p.Err != 0 && p.Err != -int(errno.EILSEQ) {
					continue
				}
				if s, ok := img.SymbolAt(at); ok && k.Has("arch_adjust_kprobe_addr") {
					at, _, err = k.AdjustAddr(s.Addr, uint64(at-s.Addr))
					require.NoError(t, err)
				}
				got, err := k.Prepare(at)
				if errors.Is(err, ErrReplaced) {
					continue
				}
				require.NoError(t, err)
				require.Equal(t, p.Err, got, "%s+%#x", p.Sym, p.Off)
				prepared++
				if got != 0 {
					continue
				}
				got, err = k.PrepareOptimized(at)
				require.NoError(t, err)
				require.Equal(t, p.Opt, got == 0, "%s+%#x: %d", p.Sym, p.Off, got)
				optimized++
			}
			t.Logf("%d listed, %d prepared, %d optimized", listed, prepared, optimized)
			require.Greater(t, optimized, 10)
		})
	}
}

func TestStandInsThatAreMissing(t *testing.T) {
	const zero = "31 c0 c3"
	k := made(t, map[string]string{"arch_prepare_kprobe": zero, "within_kprobe_blacklist": zero, "init_kprobes": zero})
	_, err := k.Prepare(base)
	require.ErrorIs(t, err, ErrNotThere, "no kmalloc to stand in for")
	_, err = k.Blacklisted(base)
	require.ErrorIs(t, err, ErrNotThere)
	_, err = k.PrepareOptimized(base)
	require.ErrorIs(t, err, ErrNotThere)

	// One whose init_kprobes does nothing, while the image has a list.
	k = made(t, map[string]string{"kmem_cache_alloc_trace": zero + " 90 90 90 90 90 90 90 90 90", "arch_prepare_kprobe": "b8 05 00 00 00 c3"})
	_, err = k.Prepare(0x1000)
	require.ErrorIs(t, err, ErrNonsense)
}
