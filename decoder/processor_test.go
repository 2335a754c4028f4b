package decoder

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/x86"
)

// The bytes that Intel's processors and AMD's read differently, and that MPX changes. "" is no
// instruction.
func TestProcessors(t *testing.T) {
	amd, noMPX := Processor{AMD: true}, Processor{NoMPX: true}
	for _, tt := range []struct {
		hazard, bytes string
		p             Processor
		other, text   string // of the zero Processor, of p
		length        int
	}{
		{"lock_mov_from_cr0", "f0 0f 20 c1", amd, "", "mov %cr8,%rcx", 4},
		{"lock_mov_to_cr0", "f0 0f 22 c1", amd, "", "mov %rcx,%cr8", 4},
		{"lock_mov_cr0_with_rex_b", "f0 41 0f 20 c1", amd, "", "mov %cr8,%r9", 5},
		{"lock_mov_cr8", "f0 44 0f 20 c1", amd, "", "", 0},
		{"lock_mov_cr3", "f0 0f 20 d9", amd, "", "", 0},
		{"no_lock", "0f 20 c1", amd, "mov %cr0,%rcx", "mov %cr0,%rcx", 3},
		{"ud0", "0f ff c0", amd, "ud0 %eax,%eax", "ud0", 2},
		{"ud1_has_modrm", "0f b9 c0", amd, "ud1 %eax,%eax", "ud1 %eax,%eax", 3},
		{"sysenter", "0f 34", amd, "sysenter", "", 0},
		{"sysexit", "48 0f 35", amd, "sysexitq", "", 0},
		{"call_of_16_bits", "66 e8 10 00 00 00", amd, "data16 call 0x12345016", "callw 0x5014", 4},
		{"jmp_of_16_bits", "66 e9 f0 ff 00 00", amd, "data16 jmp 0x12354ff6", "jmpw 0x4ff4", 4},
		{"short_jmp_of_16_bits", "66 eb 10", amd, "data16 jmp 0x12345013", "jmpw 0x5013", 3},
		{"jcc_of_16_bits", "66 0f 84 10 00 00 00", amd, "data16 je 0x12345017", "jew 0x5015", 5},
		{"rex_w_is_64_bits", "66 48 e8 10 00 00 00", amd, "data16 rex.W call 0x12345017", "data16 rex.W call 0x12345017", 7},
		{"xbegin_is_not_a_near_branch", "66 c7 f8 10 00", amd, "xbeginw 0x12345015", "xbeginw 0x12345015", 5},

		{"bndmov", "66 0f 1a c1", noMPX, "bndmov %bnd1,%bnd0", "nop %cx", 4},
		{"bndcl_memory", "f3 0f 1a 00", noMPX, "bndcl (%rax),%bnd0", "repz nopl (%rax)", 4},
		{"bnd4", "66 0f 1a 20", noMPX, "", "nopw (%rax)", 4},
		{"bndstx_of_rip", "0f 1b 05 00 00 00 00", noMPX, "", "nopl 0x0(%rip)", 7},
		{"bndmk_rex", "f3 4c 0f 1b 00", noMPX, "", "repz rex.WR nopq (%rax)", 5},
	} {
		t.Run(tt.hazard, func(t *testing.T) {
			const at = x86.Addr(0x12345000)
			b := padded(unhex(t, tt.bytes))
			text := func(p Processor) (string, int) {
				i, err := p.Decode(b)
				if err != nil {
					return "", 0
				}
				return i.Text(at), i.Length
			}
			other, _ := text(Processor{})
			require.Equal(t, tt.other, other)
			got, length := text(tt.p)
			require.Equal(t, tt.text, got)
			require.Equal(t, tt.length, length)
		})
	}
}
