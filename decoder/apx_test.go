package decoder

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/x86"
)

// The texts are those of objdump 2.47, except where it uses R4 or B4 for vector registers: there
// these bits have no effect.
func TestAPX(t *testing.T) {
	for _, tt := range []struct{ hazard, bytes, text string }{
		{"nothing_that_needs_it", "d5 00 01 c0", "{rex2} add %eax,%eax"},
		{"base", "d5 10 8b 00", "mov (%r16),%eax"},
		{"index", "d5 20 8b 04 81", "mov (%rcx,%r16,4),%eax"},
		{"index_4_is_one", "d5 20 8b 04 24", "mov (%rsp,%r20,1),%eax"},
		{"reg", "d5 40 8b c1", "mov %ecx,%r16d"},
		{"all_and_W", "d5 5d 8b c1", "mov %r25,%r24"},
		{"low_bytes", "d5 00 88 e0", "{rex2} mov %spl,%al"},
		{"map_0f", "d5 90 af c1", "imul %r17d,%eax"},
		{"X_of_no_use", "d5 02 0b 00", "{rex2 0x2} or (%rax),%eax"},
		{"vector_register_has_no_R4", "d5 c0 58 c1", "{rex2 0xc0} addps %xmm1,%xmm0"},
		{"opcode_register", "d5 11 50", "push %r24"},
		{"pushp", "d5 08 50", "pushp %rax"},
		{"popp_of_16", "d5 18 58", "popp %r16"},
		{"nop_is_xchg", "d5 10 90", "xchg %eax,%r16d"},
		{"after_66", "66 d5 10 01 c0", "add %ax,%r16w"},
		{"after_lock", "f0 d5 10 01 00", "lock add %eax,(%r16)"},
		{"immediate_of_2", "66 d5 10 81 c0 34 12", "add $0x1234,%r16w"},
		{"jmpabs", "d5 00 a1 11 22 33 44 55 66 77 88", "jmpabs $0x8877665544332211"},

		{"new_destination", "62 f4 74 18 01 d8", "add %ebx,%eax,%ecx"},
		{"new_destination_31", "62 f4 04 10 01 d8", "add %ebx,%eax,%r31d"},
		{"no_flags", "62 f4 7c 0c 01 d8", "{nf} add %ebx,%eax"},
		{"neither", "62 f4 7c 08 01 d8", "{evex} add %ebx,%eax"},
		{"operand_size_2", "62 f4 7d 08 81 c0 34 12", "{evex} add $0x1234,%ax"},
		{"operand_size_8", "62 f4 fc 08 81 c0 34 12 00 00", "{evex} add $0x1234,%rax"},
		{"base_and_index", "62 fc 78 08 01 04 88", "add %eax,(%r16,%r17,4)"},
		{"conditional", "62 f4 7c 02 39 d8", "ccmpb {dfv=of, sf, zf, cf} %ebx,%eax"},
		{"no_default_flags", "62 f4 04 0d 84 d8", "ctestge {dfv=} %bl,%al"},
		{"cfcmov_store", "62 f4 7c 0c 44 18", "cfcmove %ebx,(%rax)"},
		{"cfcmov_load", "62 f4 7c 08 44 18", "cfcmove (%rax),%ebx"},
		{"cmov", "62 f4 74 18 44 d8", "cmove %eax,%ebx,%ecx"},
		{"setzu", "62 f4 7f 18 44 c0", "setzue %al"},
		{"imulzu", "62 f4 7c 18 6b c1 05", "imulzu $0x5,%ecx,%eax"},
		{"push2", "62 f4 74 18 ff f0", "push2 %rax,%rcx"},
		{"pop2p", "62 f4 f4 18 8f c0", "pop2p %rax,%rcx"},
		{"vector_with_base", "62 f9 74 48 58 00", "vaddps (%r16),%zmm1,%zmm0"},
		{"general_from_vector", "62 e1 7e 08 2c c1", "vcvttss2si %xmm1,%r16d"},
		{"general_to_vector", "62 f9 7d 08 6e c1", "vmovd %r17d,%xmm0"},
		{"kmov", "62 f9 7d 08 92 c1", "kmovb %r17d,%k0"},
		{"bmi_without_flags", "62 f2 74 0c f2 c2", "{nf} andn %edx,%ecx,%eax"},
		{"cmpccxadd", "62 ea 75 08 e2 04 51", "cmpbxadd %ecx,%r16d,(%r17,%rdx,2)"},
		{"tile", "62 fa 7f 08 4b 0c 51", "tileloadd (%r17,%rdx,2),%tmm1"},
		{"msr_by_immediate", "62 ff 7f 08 f8 c1 78 56 34 12", "urdmsr $0x12345678,%r17"},
	} {
		t.Run(tt.hazard, func(t *testing.T) {
			b := unhex(t, tt.bytes)
			i, err := Decode(b)
			require.NoError(t, err)
			require.Equal(t, len(b), i.Length)
			require.Equal(t, tt.text, i.Text(0))
			require.Equal(t, "APX_F", i.Extension())
			for n := range b {
				_, err := Decode(b[:n])
				require.ErrorIs(t, err, ErrTruncated, "%d bytes", n)
			}
		})
	}
}

func TestJmpabsLeadsToAnAddress(t *testing.T) {
	b := unhex(t, "d5 00 a1 11 22 33 44 55 66 77 08")
	i, err := Decode(b)
	require.NoError(t, err)
	require.Equal(t, ClassJmp, i.Class)
	require.False(t, i.HasTarget)
	target, ok := i.Target(0x1000)
	require.True(t, ok)
	require.Equal(t, x86.Addr(0x0877665544332211), target)
	require.Equal(t, Reading{Length: 11, Kind: KindJump, Target: 0x0877665544332211}, Tables{}.Read(b, 0x1000))
}
