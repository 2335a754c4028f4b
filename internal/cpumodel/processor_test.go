package cpumodel_test

import (
	"encoding/hex"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/decoder"
	"kprobelab/internal/cpumodel"
)

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	require.NoError(t, err)
	return b
}

// TestEveryExtensionOfTheRowsHasAnAnswer: none is there by default, and no line of the
// table is about what no row has.
func TestEveryExtensionOfTheRowsHasAnAnswer(t *testing.T) {
	text, err := os.ReadFile("extensions.txt")
	require.NoError(t, err)
	known := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if names, _, ok := strings.Cut(line, " : "); ok && line[0] != '#' {
			for _, name := range strings.Fields(names) {
				require.False(t, known[name], "%s is there twice", name)
				known[name] = true
			}
		}
	}
	of := map[string]bool{"AVX512VL": true} // of no row alone
	for _, e := range decoder.Encodings() {
		for _, r := range decoder.Rows(e) {
			require.True(t, known[r.Extension], "%v %02x %s: %s", e, r.Opcode, r.Mnemonic, r.Extension)
			of[r.Extension], of["="+r.Mnemonic] = true, true
		}
	}
	for name := range known {
		require.True(t, of[name], "no row is of %s", name)
	}
}

// TestEveryRowIsExecutedSomewhere: with all flags and all answers of cpuid, a processor has
// every form of every row for which a source says it.
func TestEveryRowIsExecutedSomewhere(t *testing.T) {
	all := cpumodel.WithFlags("GenuineIntel", func(string) bool { return true })
	none := cpumodel.WithFlags("GenuineIntel", func(string) bool { return false })
	executed, lacked := 0, 0
	for _, e := range decoder.Encodings() {
		for _, b := range decoder.Forms(e) {
			i, err := decoder.Decode(b)
			require.NoError(t, err)
			if all.Knows(&i) {
				executed++
			}
			if name := none.Lacks(&i); name != "" {
				lacked++
				require.True(t, slices.Contains(i.Extensions(), name), "%s", i.Text(0))
			}
		}
	}
	require.Greater(t, executed, 4000)
	require.Greater(t, lacked, 4000)
}

// TestProcessorsThatLackAnExtension: each instruction, the flags that a processor needs for
// it, in the order in which their want is named.
func TestProcessorsThatLackAnExtension(t *testing.T) {
	for _, c := range []struct{ name, code, flags, lacks string }{
		{"avx512_of_64_bytes", "62 f1 7d 48 fe c1", "avx512f", "AVX512F"},
		{"avx512_of_16_bytes", "62 f1 7d 08 fe c1", "avx512f avx512vl", "AVX512F AVX512VL"},
		{"avx512_scalar", "62 f1 76 08 58 c1", "avx512f", "AVX512F"},
		{"avx512_with_register_16_of_apx", "62 f9 7d 48 6f 00", "avx512f apx", "AVX512F APX_F"},
		{"avx512_bw_of_32_bytes", "62 f1 7d 28 fc c1", "avx512bw avx512vl", "AVX512BW AVX512VL"},
		{"avx512_vbmi2", "62 f2 7d 48 63 c1", "avx512_vbmi2", "AVX512_VBMI2"},
		{"avx512_mask_moves", "c5 f8 90 c1", "avx512f", "AVX512F_KOP"},
		{"apx_by_rex2", "d5 10 89 c3", "apx", "APX_F"},
		{"apx_and_popcnt_by_rex2", "f3 d5 90 b8 c1", "popcnt apx", "POPCNT APX_F"},
		{"apx_and_movbe", "62 f4 7c 08 60 06", "apx movbe", "APX_F MOVBE"},
		{"apx_and_bmi2", "62 f2 74 08 f5 c2", "apx bmi2", "APX_F BMI2"},
		{"apx_jmpabs", "d5 00 a1 00 10 00 00 00 00 00 00", "apx", "APX_F"},
		{"amx_tiles", "c4 e2 7b 49 c0", "amx_tile", "AMX_TILE"},
		{"amx_int8", "c4 e2 63 5e ca", "amx_int8", "AMX_INT8"},
		{"amx_bf16", "c4 e2 62 5c ca", "amx_bf16", "AMX_BF16"},
		{"sha", "0f 38 c8 c1", "sha_ni", "SHA"},
		{"aes_by_vex", "c4 e2 71 dc c2", "avx aes", "AVXAES AVXAES"},
		{"vaes_of_32_bytes", "c4 e2 75 dc c2", "avx vaes", "VAES VAES"},
		{"gfni", "66 0f 38 cf c1", "gfni", "GFNI"},
		{"fma", "c4 e2 71 98 c2", "fma", "FMA"},
		{"fma4", "c4 e3 79 69 c2 30", "fma4", "FMA4"},
		{"xop", "8f e9 78 c1 c0", "xop", "XOP"},
		{"3dnow", "0f 0f c1 9e", "3dnow", "AMD3DNOW"},
		{"3dnow_of_the_athlon", "0f 0f c1 8e", "3dnowext", "AMD3DNOW"},
		{"lkgs", "f2 0f 00 f0", "lkgs", "LKGS"},
		{"cmpccxadd", "c4 e2 79 e0 03", "cmpccxadd", "CMPCCXADD"},
		{"movdiri", "0f 38 f9 06", "movdiri", "MOVDIR"},
		{"movdir64b", "66 0f 38 f8 06", "movdir64b", "MOVDIR"},
		{"wrssd", "0f 38 f6 06", "user_shstk", "CET"},
		{"vmgexit_is_vmmcall_elsewhere", "f3 0f 01 d9", "svm", "SEV_ES"},
		{"x87", "d9 eb", "fpu", "X87"},
		{"mov", "89 c3", "", ""},
		{"tzcnt_is_bsf_elsewhere", "f3 0f bc c1", "", ""},
		{"lzcnt_is_bsr_elsewhere", "f3 0f bd c1", "", ""},
		{"endbr64_is_a_nop_elsewhere", "f3 0f 1e fa", "", ""},
		{"rdsspq_is_a_nop_elsewhere", "f3 48 0f 1e c8", "", ""},
		{"wbnoinvd_is_wbinvd_elsewhere", "f3 0f 09", "", ""},
		{"cldemote_is_a_nop_elsewhere", "0f 1c 00", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			flags, lacks := strings.Fields(c.flags), strings.Fields(c.lacks)
			b := append(unhex(t, c.code), make([]byte, 15)...)
			for n := range flags {
				p := cpumodel.WithFlags("GenuineIntel", func(f string) bool { return slices.Contains(flags[:n], f) })
				_, err := p.Decode(b)
				var l *cpumodel.LacksError
				require.ErrorAs(t, err, &l)
				require.ErrorIs(t, err, decoder.ErrUnknown)
				require.Equal(t, lacks[n], l.Extension)
				require.EqualError(t, err, l.Insn+" needs "+l.Extension+", which the processor does not have")
			}
			p := cpumodel.WithFlags("GenuineIntel", func(f string) bool { return slices.Contains(flags, f) })
			i, err := p.Decode(b)
			require.NoError(t, err)
			require.Equal(t, len(unhex(t, c.code)), i.Length)
		})
	}
}

// TestModelsByCPUID: what the models' answers have, and what they lack.
func TestModelsByCPUID(t *testing.T) {
	for _, c := range []struct{ model, code, lacks string }{
		{"qemu64", "0f 38 f0 06", "MOVBE"},
		{"nehalem", "f3 0f b8 c1", ""},
		{"qemu64", "f3 0f b8 c1", "POPCNT"},
		{"haswell", "0f 38 f0 06", ""},
		{"haswell", "0f 38 c8 c1", "SHA"},
		{"icelake-server", "62 f1 7d 48 fe c1", "AVX512F"},
		{"icelake-server", "c4 e2 63 5e ca", "AMX_INT8"},
		{"icelake-server", "d5 10 89 c3", "APX_F"},
		{"qemu64", "0f c7 0e", ""},
		{"opteron_g1", "48 0f c7 0e", "CMPXCHG16B"},
		{"conroe", "0f 0f c1 9e", "AMD3DNOW"},
		// Leaves that these models do not have: cpuid answers with the highest one's numbers.
		{"conroe", "62 f5 7d 58 58 40 01", "AVX10_2"},
		{"core2duo", "c4 e2 79 e0 03", "CMPCCXADD"},
		{"phenom", "0f 01 fd", "RDPRU"},
	} {
		m, err := cpumodel.Named(c.model)
		require.NoError(t, err)
		_, err = m.Decode(append(unhex(t, c.code), make([]byte, 15)...))
		var l *cpumodel.LacksError
		if c.lacks == "" {
			require.NoError(t, err, "%s %s", c.model, c.code)
			continue
		}
		require.True(t, errors.As(err, &l), "%s %s: %v", c.model, c.code, err)
		require.Equal(t, c.lacks, l.Extension)
	}
}

// TestFlags: the flags by which extensions are known are asked once each.
func TestFlags(t *testing.T) {
	list := cpumodel.Flags()
	require.True(t, slices.IsSorted(list))
	require.Len(t, slices.Compact(slices.Clone(list)), len(list))
	for _, name := range []string{"avx512f", "amx_tile", "apx", "sha_ni", "shstk", "user_shstk"} {
		require.Contains(t, list, name)
	}
}
