//go:build unicorn && cgo && linux && amd64

package engines

import (
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/emu"
	"kprobelab/interp"
	"kprobelab/machine"
)

var update = flag.Bool("update", false, "rewrite internal/cpumodel/cpuid.txt")

// cpuidCode stores the result of cpuid(edi, esi) at rdx.
var cpuidCode = []byte{
	0x49, 0x89, 0xd0, 0x89, 0xf8, 0x89, 0xf1, // mov %rdx,%r8; mov %edi,%eax; mov %esi,%ecx
	0x0f, 0xa2, 0x41, 0x89, 0x00, 0x41, 0x89, 0x58, 0x04, // cpuid; mov %eax,(%r8); mov %ebx,4(%r8)
	0x41, 0x89, 0x48, 0x08, 0x41, 0x89, 0x50, 0x0c, 0xc3, // mov %ecx,8(%r8); mov %edx,12(%r8); ret
}

func cpuid(t testing.TB, m engine, leaf, sub uint32) (r [4]uint32) {
	t.Helper()
	_, err := m.CallAddr(codeBase, uint64(leaf), uint64(sub), uint64(dataBase))
	require.NoError(t, err)
	var b [16]byte
	require.NoError(t, m.ReadMem(dataBase, b[:]))
	for i := range r {
		r[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return r
}

// cpuidLeaves returns the leaves that a model reports.
func cpuidLeaves(t testing.TB, m engine) (list [][2]uint32) {
	t.Helper()
	for _, first := range []uint32{0, 0x80000000} {
		for leaf := first; leaf <= cpuid(t, m, first, 0)[0]; leaf++ {
			subs := uint32(1)
			if slices.Contains([]uint32{4, 7, 0xb, 0xd, 0x14, 0x8000001d}, leaf) {
				subs = 4
				if leaf == 0xd {
					subs = 63
				}
			}
			for sub := range subs {
				list = append(list, [2]uint32{leaf, sub})
			}
		}
	}
	return list
}

// Both engines have the same cpuid in each model. -update runs emu and writes the table of interp.
func TestModelsAnswerCpuidAlike(t *testing.T) {
	var text strings.Builder
	for _, model := range emu.CPUModels() {
		img := &image{code: cpuidCode}
		u, err := emu.New(img, &machine.Options{CPUModel: model, HeapSize: 1 << 20})
		require.NoError(t, err)
		defer u.Close()
		for _, l := range cpuidLeaves(t, u) {
			if r := cpuid(t, u, l[0], l[1]); r != [4]uint32{} {
				fmt.Fprintf(&text, "%s %x %x %x %x %x %x\n", model, l[0], l[1], r[0], r[1], r[2], r[3])
			}
		}
		if *update {
			continue
		}
		g, err := interp.New(img, &machine.Options{CPUModel: model, HeapSize: 1 << 20})
		require.NoError(t, err)
		defer g.Close()
		for _, l := range append(cpuidLeaves(t, u), [2]uint32{0x30, 9}, [2]uint32{0x40000000, 9}, [2]uint32{0x40000001, 9}, [2]uint32{0x40000002, 9}, [2]uint32{0x80000040, 9}, [2]uint32{0xc0000000, 9}, [2]uint32{0xc0000001, 9}) {
			require.Equal(t, cpuid(t, u, l[0], l[1]), cpuid(t, g, l[0], l[1]), "%s, leaf %#x.%d", model, l[0], l[1])
		}
	}
	if *update {
		require.NoError(t, os.WriteFile("../../../internal/cpumodel/cpuid.txt", []byte(text.String()), 0o644))
	}
}
