package decoder

import (
	"encoding/hex"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"kprobelab/errno"
	"kprobelab/profile"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	require.NoError(t, err)
	return b
}

// padded returns the bytes, followed by nops.
func padded(b []byte) []byte {
	return append(append([]byte{}, b...), []byte(strings.Repeat("\x90", 15))...)
}

func TestKernelGoldenVectors(t *testing.T) {
	text, err := os.ReadFile("../testdata/vectors/instructions.txt")
	require.NoError(t, err)
	n := 0
	for line := range strings.Lines(string(text)) {
		if line == "\n" || line[0] == '#' {
			continue
		}
		n++
		f := strings.Split(strings.TrimSpace(line), " | ")
		k, err := DecodeKernel(padded(unhex(t, f[0])), nil)
		want, numErr := strconv.Atoi(f[2])
		if numErr != nil {
			require.ErrorIs(t, err, errno.ENODATA, line)
			continue
		}
		require.NoError(t, err, line)
		require.Equal(t, want, k.Length, line)
	}
	require.Greater(t, n, 80)
}

func TestKernelFields(t *testing.T) {
	tests := []struct {
		name, bytes string
		check       func(*testing.T, Kernel)
	}{
		{"mov_rip_relative", "48 8b 05 f0 ff ff ff", func(t *testing.T, k Kernel) {
			require.True(t, k.RIPRelative())
			require.EqualValues(t, -16, k.Disp)
			require.Equal(t, [2]int{3, 4}, [2]int{k.DispOff, k.DispLen})
			require.Equal(t, 8, k.OpSize)
		}},
		{"eip_relative_counts", "67 8b 05 00 00 00 00", func(t *testing.T, k Kernel) {
			require.True(t, k.RIPRelative())
			require.Equal(t, 4, k.AddrSize)
		}},
		{"cmp_imm_after_disp", "80 3d 01 00 00 00 80", func(t *testing.T, k Kernel) {
			require.Equal(t, [2]int{6, 1}, [2]int{k.ImmOff, k.ImmLen})
			require.EqualValues(t, -128, k.Imm)
		}},
		{"sib_base5_has_disp32", "8b 04 65 01 02 03 04", func(t *testing.T, k Kernel) {
			require.True(t, k.HasSIB)
			require.Equal(t, 4, k.DispLen)
			require.False(t, k.RIPRelative())
		}},
		{"movabs_imm64", "48 b8 01 02 03 04 05 06 07 88", func(t *testing.T, k Kernel) {
			require.Equal(t, uint64(0x8807060504030201), uint64(k.Imm))
		}},
		{"repeated_prefix_toggles_once", "66 66 b8 01 02", func(t *testing.T, k Kernel) {
			require.Equal(t, [2]int{2, 2}, [2]int{k.PrefixLen, k.OpSize})
			require.Equal(t, [4]byte{0x66}, k.Prefixes)
		}},
		{"rex_w_overrides_66", "66 48 05 01 02 03 04", func(t *testing.T, k Kernel) {
			require.Equal(t, [2]int{4, 8}, [2]int{k.ImmLen, k.OpSize})
		}},
		{"second_rex_is_opcode", "48 49", func(t *testing.T, k Kernel) {
			require.EqualValues(t, 0x49, k.Opcode[0])
		}},
		{"prefix_after_rex_is_opcode", "48 66", func(t *testing.T, k Kernel) {
			require.EqualValues(t, 0x66, k.Opcode[0])
		}},
		{"vzeroupper_opcode_is_one_byte", "c5 f8 77", func(t *testing.T, k Kernel) {
			require.Equal(t, [3]byte{0x77}, k.Opcode)
			require.Equal(t, 2, k.VexLen)
			require.True(t, k.IsRelativeJump())
		}},
		{"evex_w_is_read_from_byte_3", "62 f1 7c c8 58 c0", func(t *testing.T, k Kernel) {
			require.Equal(t, 8, k.OpSize)
		}},
		{"xen_prefix_is_part_of_the_length", "0f 0b 78 65 6e 0f a2", func(t *testing.T, k Kernel) {
			require.Equal(t, [2]int{5, 7}, [2]int{k.EmulateLen, k.OpcodeOff + k.OpcodeLen})
		}},
		{"enter_second_immediate", "c8 10 00 01", func(t *testing.T, k Kernel) {
			require.Equal(t, [2]int{2, 1}, [2]int{k.ImmLen, k.Imm2Len})
			require.EqualValues(t, 1, k.Imm2)
		}},
		{"notrack_jmp_is_indirect", "3e ff e0", func(t *testing.T, k Kernel) {
			require.True(t, k.IsIndirectJump())
			require.True(t, k.HasPrefix(0x3E))
			require.False(t, k.HasPrefix(0))
		}},
		{"jmp_far_is_indirect", "ff 2d 00 00 00 00", func(t *testing.T, k Kernel) { require.True(t, k.IsIndirectJump()) }},
		{"call_is_no_jump", "e8 00 00 00 00", func(t *testing.T, k Kernel) { require.False(t, k.IsRelativeJump()) }},
		{"jcc_near_backwards", "0f 84 fa ff ff ff", func(t *testing.T, k Kernel) {
			require.True(t, k.IsRelativeJump())
			require.EqualValues(t, 0x1000, k.Target(0x1000))
		}},
		{"mov_ss_masks", "8e d0", func(t *testing.T, k Kernel) { require.True(t, k.MasksExceptions()) }},
		{"mov_ds_does_not_mask", "8e d8", func(t *testing.T, k Kernel) { require.False(t, k.MasksExceptions()) }},
		{"rex_b_extends_rm", "41 ff d3", func(t *testing.T, k Kernel) { require.Equal(t, 11, k.RM()) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := unhex(t, tt.bytes)
			k, err := DecodeKernel(b, nil)
			require.NoError(t, err)
			require.Equal(t, len(b), k.Length)
			tt.check(t, k)
		})
	}
}

func TestKernelErrors(t *testing.T) {
	for name, tt := range map[string]struct {
		bytes string
		want  error
	}{
		"empty":                     {"", ErrTruncated},
		"prefixes_only":             {"66 f3", ErrTruncated},
		"vex_cut_off":               {"c4 e2", ErrTruncated},
		"disp_cut_off":              {"48 8b 05 00 00", ErrTruncated},
		"imm_cut_off":               {"e8 00 00 00", ErrTruncated},
		"sixteen_bytes":             {"66 66 66 66 66 66 66 66 66 66 66 66 66 66 66 90", ErrTruncated},
		"far_pointer_with_rex_w":    {"48 9a 00 00 00 00 00 00", ErrTruncated},
		"vex_unknown_map":           {"c4 e9 79 18 05 00 00 00 00", ErrBadVEX},
		"vex_opcode_without_vex":    {"c5 f8 0b c0", ErrBadVEX},
		"andn_needs_vex":            {"0f 38 f2 c0", ErrBadVEX},
		"evex_only_with_vex":        {"c4 e2 79 1f c0", ErrBadVEX},
		"group_member_without_vex":  {"c5 f8 ae c0", ErrBadVEX},
		"evex_only_without_any_vex": {"66 0f 38 1f c0", ErrBadVEX},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := DecodeKernel(unhex(t, tt.bytes), nil)
			require.ErrorIs(t, err, tt.want)
		})
	}
	require.Equal(t, errno.ENODATA, errno.Of(ErrTruncated))
	require.Equal(t, errno.EINVAL, errno.Of(ErrBadVEX))
}

func TestKernelReleases(t *testing.T) {
	for name, tt := range map[string]struct {
		kernel, bytes string
		length        int
	}{
		"evex_unknown_in_44":           {"4.4", "62 f1 7c 48 58 c0", 2},
		"bad_vex_is_no_error_in_58":    {"5.8", "c5 f8 0b c0", 3},
		"cut_off_is_no_error_in_58":    {"5.8", "66 66 66 66 66 66 66 66 66 66 66 66 66 66 66 90", 15},
		"emulate_prefix_absent_in_44":  {"4.4", "0f 0b 78 65 6e 90", 2},
		"d5_is_aad_in_61":              {"6.1", "d5 0a 90 90 90 90", 2},
		"rex2_mov_in_612":              {"6.12", "d5 18 8b 04 08 90 90", 5},
		"rex2_map_0f_in_612":           {"6.12", "d5 90 b6 c0 90", 4},
		"rex2_w_movabs_in_612":         {"6.12", "d5 18 b8 01 02 03 04 05 06 07 08", 11},
		"evex_map4_add_in_612":         {"6.12", "62 f4 7c 18 01 c0", 6},
		"evex_map4_66_add_imm_in_612":  {"6.12", "62 f4 7d 18 81 c0 01 02", 8},
		"evex_map4_test_f7_imm_in_612": {"6.12", "62 f4 7c 08 f7 c0 01 02 03 04", 10},
	} {
		t.Run(name, func(t *testing.T) {
			c, ok := profile.Named(tt.kernel)
			require.True(t, ok)
			k, err := DecodeKernel(unhex(t, tt.bytes), &c.Decoder)
			require.NoError(t, err)
			require.Equal(t, tt.length, k.Length)
		})
	}
}

// checkBounds is the property of the kernel's own sanity test (docs/spec 11.4),
// and that every field lies within the instruction.
func checkBounds(t require.TestingT, b []byte, d *profile.Decoder) {
	k, err := DecodeKernel(b, d)
	require.GreaterOrEqual(t, k.Length, 0)
	require.LessOrEqual(t, k.Length, min(len(b), MaxInsnSize))
	if err != nil {
		require.True(t, errors.Is(err, ErrTruncated) || errors.Is(err, ErrBadVEX))
		return
	}
	// Without errors, a prefix that is cut off may consume nothing; in a full
	// window the position always advances.
	if d.Errors || len(b) >= MaxInsnSize {
		require.Positive(t, k.Length)
	}
	require.LessOrEqual(t, k.OpcodeOff+k.OpcodeLen, k.Length)
	require.LessOrEqual(t, k.DispOff+k.DispLen, k.Length)
	if k.ImmLen > 0 {
		require.Equal(t, k.Length, k.ImmOff+k.ImmLen+k.Imm2Len)
	}
}

// TestKernelPrefixIndependence: bytes after an instruction change nothing, and every shorter prefix
// of it is truncated.
func TestKernelPrefixIndependence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOfN(rapid.Byte(), 15, 15).Draw(t, "bytes")
		k, err := DecodeKernel(b, nil)
		if err != nil {
			return
		}
		short, err := DecodeKernel(b[:k.Length], nil)
		require.NoError(t, err)
		require.Equal(t, k, short)
		if k.EmulateLen != 0 {
			return // without its last byte the prefix is a ud2
		}
		_, err = DecodeKernel(b[:k.Length-1], nil)
		require.ErrorIs(t, err, ErrTruncated)
	})
}

func FuzzKernel(f *testing.F) {
	text, err := os.ReadFile("../testdata/vectors/instructions.txt")
	require.NoError(f, err)
	for line := range strings.Lines(string(text)) {
		if head, _, ok := strings.Cut(line, " | "); ok && line[0] != '#' {
			f.Add(unhex(f, head))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, name := range profile.Names() {
			c, _ := profile.Named(name)
			checkBounds(t, b, &c.Decoder)
		}
	})
}

func TestKernelDoesNotAllocate(t *testing.T) {
	b := unhex(t, "c4 e2 79 18 05 01 02 03 04 90 90 90 90 90 90")
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if _, err := DecodeKernel(b, nil); err != nil {
			panic(err)
		}
	}))
}

func BenchmarkDecodeKernel(b *testing.B) {
	code := unhex(b, "f30f1efa554889e54883ec18488b0510000000"+
		"8b45fc0f1f440000e8010203047410c744240801000000418b94249c0000000fb6c0c3")
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		for at := 0; at < len(code); {
			k, err := DecodeKernel(code[at:], nil)
			if err != nil {
				b.Fatal(err)
			}
			at += k.Length
			n++
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/insn")
}
