package booted

import (
	"bytes"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/boot"
	"kprobelab/kimage"
	"kprobelab/kimage/vmcore"
)

// TestFormsOfQEMU: a dump that QEMU writes by itself, with page tables or without, and in each
// packing, has the same memory, release, tasks and code as the dump that Save writes.
func TestFormsOfQEMU(t *testing.T) {
	o := machine(t, "oracle")
	dir := t.TempDir()
	require.NoError(t, boot.Boot(t.Context(), o, func(g *boot.Guest) error {
		own := filepath.Join(dir, "own")
		_, err := g.Save(&boot.Dump{File: own, Format: boot.ELF})
		require.NoError(t, err)
		want, err := kimage.Open(own, nil)
		require.NoError(t, err)
		formats, err := g.QEMUFormats()
		require.NoError(t, err)
		require.Contains(t, formats, "elf")
		require.Contains(t, formats, "kdump-zlib")
		formats = slices.DeleteFunc(formats, func(f string) bool { return !strings.HasPrefix(f, "kdump-") && f != "elf" }) // others are Windows'
		for _, format := range append(formats, "elf with paging") {
			t.Run(format, func(t *testing.T) {
				file := filepath.Join(dir, format)
				if format == "elf with paging" {
					require.NoError(t, g.SaveByQEMU(file, true, ""))
				} else {
					require.NoError(t, g.SaveByQEMU(file, false, format))
				}
				got, err := kimage.Open(file, nil)
				require.NoError(t, err)
				require.Equal(t, want.Banner(), got.Banner())
				require.Equal(t, want.Tasks(), got.Tasks())
				require.NotEmpty(t, got.Tasks())
				requireSameCode(t, want, got, "vfs_read")
				requireSameMemory(t, want.Core(), got.Core())
			})
		}
		return nil
	}))
}

func requireSameCode(t *testing.T, want, got *kimage.Image, symbol string) {
	t.Helper()
	s := want.Lookup(symbol)
	require.Len(t, s, 1)
	require.Equal(t, s, got.Lookup(symbol))
	a, b := make([]byte, s[0].Size), make([]byte, s[0].Size)
	require.NoError(t, want.ReadKernel(s[0].Addr, a))
	require.NoError(t, got.ReadKernel(s[0].Addr, b))
	require.Equal(t, a, b)
}

// requireSameMemory compares pages. With paging, memory that no page table maps is missing.
func requireSameMemory(t *testing.T, want, got *vmcore.Core) {
	t.Helper()
	same, missing := 0, 0
	a, b := make([]byte, vmcore.PageSize), make([]byte, vmcore.PageSize)
	for _, r := range want.RAM() {
		for phys := r.Phys; phys < r.End(); phys += vmcore.PageSize {
			require.NoError(t, want.ReadPhys(phys, a))
			var none *vmcore.AbsentError
			if err := got.ReadPhys(phys, b); errors.As(err, &none) {
				missing++
				continue
			} else {
				require.NoError(t, err)
			}
			require.True(t, bytes.Equal(a, b), "%#x", phys)
			same++
		}
	}
	require.Greater(t, same, 30000)
	require.Less(t, missing, 200)
}
