package compare

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/decoder"
)

// TestCausesOfRealCodeMutated: strings of real programs, with many prefixes before them, cut off,
// or with a bit changed: an answer of the version, with its cause; and other answers, which have
// none.
func TestCausesOfRealCodeMutated(t *testing.T) {
	jcc, jmp, none := decoder.ClassJcc, decoder.ClassJmp, decoder.ClassNone
	for _, c := range []struct {
		name, version, code string
		theirs              Answer
		cause               string
	}{
		{"immediate_of_64_bits_with_small_low_half", "iced", "49 bf 03 00 00 00 48 8d 15 02", Answer{Length: 10, Class: &none, Text: "movabs $3,%r15"}, "number-cut"},
		{"immediate_with_a_low_half_of_0", "iced", "48 bd 00 00 00 00 ff ff ff ff", Answer{Length: 10, Class: &none, Text: "movabs $0,%rbp"}, "number-cut"},
		{"address_of_64_bits", "iced", "48 a1 09 00 00 00 48 00 00 00", Answer{Length: 10, Class: &none, Text: "movabs 9,%rax"}, "number-cut"},
		{"another_number", "iced", "49 bf 03 00 00 00 48 8d 15 02", Answer{Length: 10, Class: &none, Text: "movabs $4,%r15"}, ""},
		{"low_half_of_10", "iced", "49 bf 0a 00 00 00 48 8d 15 02", Answer{Length: 10, Class: &none, Text: "movabs $10,%r15"}, ""},
		{"another_version", "zydis", "49 bf 03 00 00 00 48 8d 15 02", Answer{Length: 10, Class: &none, Text: "movabs $3,%r15"}, ""},
		{"jcc_with_66_cut_off", "llvm", "66 41 0f 84 5f 04", Answer{Length: 6, Class: &jcc, HasTarget: true, Target: 0x465}, "near-branch-66"},
		{"jmp_with_66_cut_off", "llvm", "66 41 e9 65 f7", Answer{Length: 5, Class: &jmp, HasTarget: true, Target: -2203}, "near-branch-66"},
		{"jmp_without_66_cut_off", "llvm", "41 e9 65 f7", Answer{Length: 4, Class: &jmp, HasTarget: true, Target: -2203}, ""},
		{"cmov_of_map_4_cut_off", "llvm", "62 a4 95 1e 48 8b 05", Answer{Length: 6, Class: &none, Text: "cmovsq (%rbx), %r17, %r13"}, "cut-off"},
		{"cmov_of_map_4_with_8_bits_cut_off", "llvm", "62 a4 95 1e 48 4b", Answer{Length: 6, Class: &none, Text: "cmovsq (%rbx), %r17, %r13"}, "cut-off"},
		{"evex_map_6_cut_off", "llvm", "62 26 38 be ba 84", Answer{Length: 6, Class: &none, Text: "vfmsub231bf16 (,%riz,0){1to16}, %ymm8, %ymm24 {%k6} {z}"}, "cut-off"},
		{"F2_after_F3", "llvm", "f3 4f f2 2e 0f b8 42 0f", Answer{Length: 8, Class: &none, Text: "popcntl %cs:15(%rdx), %eax"}, "prefix-of-no-row"},
		{"cmp_cut_off", "llvm", "48 39 8b 05", Answer{Length: 3, Class: &none, Text: "cmpq %rcx, (%rbx)"}, ""},
		{"66_before_REX2_of_a_vector", "llvm", "40 66 d5 cd 5c 30", Answer{Length: 6, Class: &none, Text: "subps (%r8), %xmm30"}, "prefix-passed-over"},
		{"F3_before_REX2_of_a_vector", "llvm", "f3 d5 cd 58 30", Answer{Length: 5, Class: &none, Text: "addps (%r8), %xmm30"}, "prefix-passed-over"},
		{"66_before_REX2_of_a_vector_as_another", "llvm", "40 66 d5 cd 5c 30", Answer{Length: 6, Class: &none, Text: "addps (%r8), %xmm30"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			q, err := hex.DecodeString(strings.ReplaceAll(c.code, " ", ""))
			require.NoError(t, err)
			ours := make([]Answer, 1)
			Ours([][]byte{q}, ours)
			if c.theirs.Text != "" && ours[0].Length > 0 {
				ours[0].Text = decoder.Text(q, 0)
			}
			require.NotEmpty(t, whatDiffers(ours[0], c.theirs))
			require.Equal(t, c.cause, Cause(&Known{Name: c.version}, q, ours[0], c.theirs))
		})
	}
}
