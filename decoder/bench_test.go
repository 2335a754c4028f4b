package decoder

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/arch/x86/x86asm"

	"kprobelab/internal/oracle"
	"kprobelab/profile"
)

// kernelText is real code without its padding, cut into instructions: the
// windows to decode. It is 6.1's where the recordings are, else the vectors.
func kernelText(b *testing.B) [][]byte {
	b.Helper()
	var windows [][]byte
	text := oracle.LiveText(b, "oracle")
	code := text.Bytes
	for at := 0; at+MaxInsnSize <= len(code); {
		i, err := Decode(code[at:])
		if err != nil {
			at++
			continue
		}
		if code[at] != 0xCC {
			windows = append(windows, code[at:at+MaxInsnSize])
		}
		at += i.Length
	}
	require.Greater(b, len(windows), 1_000_000)
	return windows
}

// BenchmarkKernelText has the whole text of Debian's 6.1 kernel, without the
// int3 padding, as x86asm, our two views, and Decode decode it in one run.
func BenchmarkKernelText(b *testing.B) {
	windows := kernelText(b)
	d := profile.Decoder{EVEX: true, EmulatePrefix: true, Errors: true}
	for _, c := range []struct {
		name   string
		decode func([]byte) int
	}{
		{"x86asm", func(w []byte) int {
			i, err := x86asm.Decode(w, 64)
			if err != nil {
				return 1
			}
			return i.Len
		}},
		{"processor", func(w []byte) int {
			i, err := Decode(w)
			if err != nil {
				return 1
			}
			return i.Length
		}},
		{"kernel", func(w []byte) int {
			k, err := DecodeKernel(w, &d)
			if err != nil {
				return 1
			}
			return k.Length
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			sum := 0
			for b.Loop() {
				for _, w := range windows {
					sum += c.decode(w)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(windows)), "ns/insn")
		})
	}
}
