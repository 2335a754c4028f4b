package decoder

import (
	"bytes"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/arch/x86/x86asm"

	"kprobelab/internal/integration/oracle"
	"kprobelab/profile"
)

// realCode returns code to decode: the recorded kernel's, or this test program's own if the
// recordings are absent.
func realCode(b *testing.B) []byte {
	b.Helper()
	if oracle.Here("oracle") {
		return oracle.LiveText(b, "oracle").Bytes
	}
	name, err := os.Executable()
	require.NoError(b, err)
	f, err := elf.Open(name)
	require.NoError(b, err)
	defer f.Close()
	code, err := f.Section(".text").Data()
	require.NoError(b, err)
	b.Logf("no recordings: the code is that of %s", filepath.Base(name))
	return code
}

// kernelText is real code without its padding, cut into instructions: the
// windows to decode.
func kernelText(b *testing.B) [][]byte {
	b.Helper()
	var windows [][]byte
	code := realCode(b)
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
	require.Greater(b, len(windows), 100_000)
	return windows
}

// zydisMinimal returns the nanoseconds that Zydis takes for a window in minimal mode, by the
// program that make deps-test builds; 0 if that program is absent.
func zydisMinimal(b *testing.B, windows [][]byte) float64 {
	b.Helper()
	cmd := exec.Command("../.cache/decoders/bin/zydis", "speed", "5")
	cmd.Stdin = bytes.NewReader(bytes.Join(windows, nil))
	out, err := cmd.Output()
	if err != nil {
		b.Logf("not compared with Zydis (make deps-test): %v", err)
		return 0
	}
	ns, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
	require.NoError(b, err)
	return ns
}

// piece is the number of windows that are timed at a time.
const piece = 10_000

// BenchmarkKernelText decodes the whole text of Debian's 6.1 kernel, without the int3 padding: by
// Zydis in minimal mode, x86asm and our two views, in one run. ns/insn is of the best pass over
// each piece, so that other load on the machine counts little.
func BenchmarkKernelText(b *testing.B) {
	windows := kernelText(b)
	b.Run("zydis-minimal", func(b *testing.B) {
		ns := 0.0
		for b.Loop() {
			ns = zydisMinimal(b, windows)
		}
		b.ReportMetric(ns, "ns/insn")
	})
	d := profile.Decoder{EVEX: true, EmulatePrefix: true, Errors: true, AMX: true, PushIz: true}
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
		{"reader-x86asm", func(w []byte) int { return X86asm{}.Read(w, 0).Length }},
		{"reader-tables", func(w []byte) int { return Tables{}.Read(w, 0).Length }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			sum := 0
			best := make([]time.Duration, (len(windows)+piece-1)/piece)
			for b.Loop() {
				for n := range best {
					began := time.Now()
					for _, w := range windows[n*piece : min(len(windows), (n+1)*piece)] {
						sum += c.decode(w)
					}
					if d := time.Since(began); best[n] == 0 || d < best[n] {
						best[n] = d
					}
				}
			}
			require.Positive(b, sum)
			total := time.Duration(0)
			for _, d := range best {
				total += d
			}
			b.ReportMetric(float64(total.Nanoseconds())/float64(len(windows)), "ns/insn")
		})
	}
}
