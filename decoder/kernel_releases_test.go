package decoder

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/profile"
)

// TestKernelNewerReleases has the length of an instruction for the decoders of 6.12,
// 6.16 and 6.18, -1 for an error: answers of insn_decode in those kernels.
func TestKernelNewerReleases(t *testing.T) {
	v612 := profile.Decoder{EVEX: true, EmulatePrefix: true, Errors: true, AMX: true, PushIz: true, REX2: true}
	v616 := v612
	v616.INV64 = true
	v618 := v616
	v618.XOP = true
	for name, tc := range map[string]struct {
		bytes string
		want  [3]int
	}{
		"inv64_has_no_modrm":            {"82 84 02 03 04 05 06 07", [3]int{8, 1, 1}},
		"inv64_has_no_immediate":        {"d4 c1", [3]int{2, 1, 1}},
		"inv64_far_jump":                {"ea 01 02 03 04 05 06", [3]int{7, 1, 1}},
		"inv64_far_call_66":             {"66 9a 01 02 03 04", [3]int{6, 2, 2}},
		"inv64_far_call_rex_w":          {"48 9a 01 02 03 04", [3]int{-1, 2, 2}},
		"inv64_not_after_rex2":          {"d5 00 d4 01", [3]int{4, 4, 4}},
		"d5_after_rex_is_no_prefix":     {"48 d5 84", [3]int{3, 3, 3}},
		"xop8_imm8":                     {"8f e8 78 c0 c0 01", [3]int{2, 2, 6}},
		"xop8_absent":                   {"8f e8 78 00 c0 01", [3]int{2, 2, -1}},
		"xop9":                          {"8f e9 78 80 c0", [3]int{2, 2, 5}},
		"xop9_group":                    {"8f e9 f9 01 f8", [3]int{2, 2, 5}},
		"xopa_imm32":                    {"8f ea 78 10 c0 01 02 03 04", [3]int{2, 2, 9}},
		"xopa_group_reg1":               {"8f ea 78 12 c8 01 02 03 04", [3]int{2, 2, 9}},
		"xopa_group_reg2":               {"8f ea 78 12 d0", [3]int{2, 2, 5}},
		"xop_memory_operand":            {"8f c8 78 c0 04 25 01 02 03 04 05", [3]int{2, 2, 11}},
		"xop_other_map":                 {"8f e7 78 c0 c0 01", [3]int{2, 2, -1}},
		"xop_of_reg_0_is_pop":           {"8f c0 78", [3]int{2, 2, 2}},
		"xop_after_66":                  {"66 8f e8 78 c0 c0 01", [3]int{3, 3, 7}},
		"xop_after_rex_is_pop":          {"48 8f e8 78", [3]int{3, 3, 3}},
		"xop_after_rex2_is_pop":         {"d5 00 8f e8", [3]int{4, 4, 4}},
		"vex_after_rex_is_looked_for":   {"48 c5 84 02 03 04 05 06", [3]int{-1, -1, 8}},
		"evex_after_rex_is_looked_for":  {"4d 62 06 87", [3]int{-1, -1, 3}},
		"vex_map_number_of_xop_invalid": {"c4 e8 78 c0 c0 01", [3]int{-1, -1, -1}},
	} {
		t.Run(name, func(t *testing.T) {
			for i, d := range []profile.Decoder{v612, v616, v618} {
				k, err := DecodeKernel(padded(unhex(t, tc.bytes)), &d)
				if tc.want[i] < 0 {
					require.Error(t, err, i)
					continue
				}
				require.NoError(t, err, i)
				require.Equal(t, tc.want[i], k.Length, i)
			}
		})
	}
}
