package selfcheck

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/decoder"
	"kprobelab/internal/own"
	"kprobelab/kimage"
	"kprobelab/uprobes"
	"kprobelab/x86"
)

// uprobeImages are the kernels under test: the kernels that were fetched for other tests, and
// the ones that match the pattern $KPROBELAB_KERNELS.
func uprobeImages(t *testing.T) (list []string) {
	for _, pattern := range []string{"../../.cache/kernel/*/vmlinuz-*", os.Getenv("KPROBELAB_KERNELS")} {
		found, err := filepath.Glob(pattern)
		require.NoError(t, err)
		list = append(list, found...)
	}
	return list
}

// Rule: the rules for an instruction under a uprobe give the answer of the image's own
// function: errno, operations, their parameters, the copy, whether a nop can be optimized.
func TestUprobesAgainstImage(t *testing.T) {
	list := uprobeImages(t)
	if len(list) == 0 {
		t.Skip("no kernel image here (make demo fetches one)")
	}
	for _, name := range list {
		t.Run(filepath.Base(name), func(t *testing.T) {
			img, err := kimage.Open(name, nil)
			require.NoError(t, err)
			k, err := own.Open(img, 0)
			require.NoError(t, err)
			defer k.Close()
			if !k.Has("arch_uprobe_analyze_insn") {
				t.Skip("this kernel has no uprobes")
			}
			var different []string
			same := func(code []byte, at x86.Addr) {
				what, err := Uprobe(k, code, at)
				require.NoError(t, err, "%x", code)
				if what != "" {
					different = append(different, what)
				}
			}
			n, drawn := 250, 5000
			switch {
			case os.Getenv("KPROBELAB_SOAK") != "":
				n, drawn = 2000, 40000
			case testing.Short():
				n, drawn = 60, 1500
			}
			random := rand.New(rand.NewPCG(1, 2))
			prefixes := []byte{0x66, 0x67, 0xf2, 0xf3, 0x2e, 0x3e, 0x64, 0x65, 0xf0, 0x48, 0x41, 0x44, 0x4d}
			for e := decoder.EncPrimary; e < decoder.EncNone; e++ {
				for _, b := range decoder.Samples(e, n) {
					same(b, 0x401000)
					same(append([]byte{prefixes[random.IntN(len(prefixes))]}, b...), 0x401000)
				}
			}
			for range drawn {
				b := make([]byte, uprobes.InsnSize)
				for i := range b {
					b[i] = byte(random.Uint32())
					if random.IntN(3) == 0 {
						b[i] = 0
					}
				}
				if random.IntN(4) == 0 {
					copy(b, [][]byte{{0x0f, 0x1f}, {0x90}, {0x66, 0x2e, 0x0f, 0x1f, 0x84}, {0x48, 0x8d}, {0x48, 0x89}, {0xeb}, {0xff}, {0x8e}}[random.IntN(8)])
				}
				same(b, x86.Addr(0x401000+random.IntN(4096)))
			}
			require.Empty(t, different)
		})
	}
}
