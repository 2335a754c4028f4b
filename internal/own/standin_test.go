package own

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/errno"
	"kprobelab/internal/integration/oracle"
	"kprobelab/internal/integration/written"
	"kprobelab/kimage"
)

// TestOwnPrepareAgreesWithTheBootedKernel compares the recorded kernels' own
// registration, from the copy of the instruction to the detour buffer, with the booted
// kernels' at the same points.
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

// TestPreparingInThePageItself: to 4.20 a kernel makes the page of copies writable, copies there, and
// makes it read-only again.
func TestPreparingInThePageItself(t *testing.T) {
	const (
		room    = " 90 90 90 90 90 90 90 90 90 90 90 90"
		protect = "0f 0b" + room // ud2: it has no page tables to change
	)
	img := written.Image(t, map[string]string{
		"kmem_cache_alloc_trace": "31 c0 c3" + room, "alloc_insn_page": "31 c0 c3" + room, "set_memory_ro": protect,
		"arch_prepare_kprobe": "31 c0 c3" + room + room + room,
	})
	k := open(t, img)
	a, err := k.aid()
	require.NoError(t, err)
	code := append(load(0xb8, img.Lookup("alloc_insn_page")[0].Addr), 0xff, 0xd0, 0xc6, 0x00, 0x01) // call; movb $1,(%rax)
	code = append(code, load(0xb8, img.Lookup("set_memory_ro")[0].Addr)...)
	require.NoError(t, a.m.WriteText(img.Lookup("arch_prepare_kprobe")[0].Addr, append(code, 0xff, 0xd0, 0xc3))) // call; ret
	require.NoError(t, a.keep())
	got, err := k.Prepare(0x1000)
	require.NoError(t, err)
	require.Zero(t, got)
}
