package report

import (
	"bytes"
	gohex "encoding/hex"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/decoder"
	"kprobelab/profile"
)

// TestBare: a function whose second instruction x86asm does not know is wrong from its
// start to its end; the row names that instruction and the correction. A vzeroupper
// differs by the kernel's decoder.
func TestBare(t *testing.T) {
	for name, k := range map[string]struct {
		code          string
		points, wrong int
		insn, cause   string
		uncorrected   int
	}{
		"right":          {"55909090909090c3", 8, 0, "", "", 0},
		"refused":        {"550f01ee9090909090c3", 8, 8, "0f01ee", lineOf(t, "rdpkru"), 0},
		"too_short":      {"55f30f1efa9090909090c3", 8, 8, "f30f1efa", lineOf(t, "endbr64"), 0},
		"kernel_decides": {"55c5f970c0039090909090c3", 8, 2, "c5f970c003", CauseKernel, 0},
	} {
		t.Run(name, func(t *testing.T) {
			code, err := gohex.DecodeString(k.code)
			require.NoError(t, err)
			c, _ := profile.Named("6.1")
			s := NewExample(code, c)
			s.Bare = true
			var rows []ScanRow
			b := s.scanner().bareScanner()
			totals := &BareTotals{}
			b.function(s.Symbols[0], func(r *ScanRow) {
				totals.count(r)
				if !r.right {
					rows = append(rows, *r)
				}
			})
			require.Equal(t, []int{k.points, k.wrong, 0, k.uncorrected}, []int{totals.Points, totals.Wrong, totals.Panics, totals.Uncorrected})
			for _, r := range rows {
				require.Equal(t, k.insn, gohex.EncodeToString(r.Bare.Insn))
				require.Equal(t, k.cause, r.Bare.Cause)
				require.NotEqual(t, r.Bare.Read, r.Bare.Right)
			}
			var text bytes.Buffer
			require.NoError(t, totals.WriteText(&text))
			require.Contains(t, text.String(), "points, of which an uncorrected x86asm gets")
		})
	}
}

// lineOf is the place of a mnemonic's row in the table of 0F.
func lineOf(t *testing.T, mnemonic string) string {
	text, err := os.ReadFile("../../decoder/opcodes/0f.txt")
	require.NoError(t, err)
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		if slices.Contains(strings.Fields(line), mnemonic) {
			return fmt.Sprintf("opcodes/0f.txt:%d", n)
		}
	}
	require.Fail(t, "no such row", mnemonic)
	return ""
}

// TestCauses: what puts a wrong reading right.
func TestCauses(t *testing.T) {
	for want, code := range map[string]string{
		lineOf(t, "rdpkru"): "0f01ee", CausePrefixes: "3ec4e270f2c2", CauseKernel: "c5f970c003",
	} {
		b, err := gohex.DecodeString(code + "909090909090909090")
		require.NoError(t, err)
		require.Equal(t, want, causeOf(b, ExampleBase, decoder.X86asm{Bare: true}.Read(b, ExampleBase)))
	}
}
