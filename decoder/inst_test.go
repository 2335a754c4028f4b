package decoder

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"kprobelab/x86"
)

func TestDecodeClasses(t *testing.T) {
	for _, tt := range []struct {
		bytes  string
		class  Class
		target x86.Addr // from 0x1000; 0 for none
	}{
		{"90", ClassNone, 0},
		{"e8 10 00 00 00", ClassCall, 0x1015},
		{"e9 fb ff ff ff", ClassJmp, 0x1000},
		{"eb fe", ClassJmp, 0x1000},
		{"74 10", ClassJcc, 0x1012},
		{"0f 8f 10 00 00 00", ClassJcc, 0x1016},
		{"e2 fe", ClassLoop, 0x1000},
		{"67 e3 fe", ClassLoop, 0x1001},
		{"ff d0", ClassIndirectCall, 0},
		{"ff 15 00 00 00 00", ClassIndirectCall, 0},
		{"3e ff e0", ClassIndirectJmp, 0},
		{"ff 28", ClassFar, 0},
		{"48 cf", ClassFar, 0},
		{"cb", ClassFar, 0},
		{"f3 c3", ClassRet, 0},
		{"c2 08 00", ClassRet, 0},
		{"cc", ClassInt, 0},
		{"cd 80", ClassInt, 0},
		{"f1", ClassInt, 0},
		{"0f 05", ClassSyscall, 0},
		{"48 0f 07", ClassSyscall, 0},
		{"0f 0b", ClassUndefined, 0},
		{"0f b9 c0", ClassUndefined, 0},
		{"c7 f8 10 00 00 00", ClassNone, 0x1016}, // xbegin
		{"c5 f8 77", ClassNone, 0},
	} {
		t.Run(tt.bytes, func(t *testing.T) {
			b := unhex(t, tt.bytes)
			i, err := Decode(padded(b))
			require.NoError(t, err)
			require.Equal(t, len(b), i.Length)
			require.Equal(t, tt.class, i.Class)
			target, ok := i.Target(0x1000)
			require.Equal(t, tt.target != 0, ok)
			if ok {
				require.Equal(t, tt.target, target)
			}
		})
	}
}

func TestDecodeErrors(t *testing.T) {
	for _, s := range []string{"", "66", "48", "48 8b 05 00", "e8 00 00", "c5 f8", "c4 e2 79 18 05 00", "62 f1 7c 48", "0f 0f c0", "8f e8 78 c0 c0"} {
		_, err := Decode(unhex(t, s))
		require.ErrorIs(t, err, ErrTruncated, s)
	}
	for _, s := range []string{"06", "1f", "27", "60", "9a", "ea", "d4 0a", "d5 0a 06", "0f 04", "0f 0f c0 00", "66 66 66 66 66 66 66 66 66 66 66 66 66 66 66 90"} {
		_, err := Decode(padded(unhex(t, s)))
		require.Error(t, err, s)
		require.Equal(t, "(bad)", Text(padded(unhex(t, s)), 0), s)
	}
}

// The processor's reasons to refuse, each with an error of its own.
func TestDecodeErrorKinds(t *testing.T) {
	for _, tt := range []struct {
		hazard, bytes string
		err           error
	}{
		{"sixteen_bytes", "66 66 66 66 66 66 66 66 66 66 66 66 66 66 66 90", ErrTooLong},
		{"immediate_past_fifteen", "2e 2e 2e 2e 2e 2e 2e 2e 2e 2e 2e 81 04 25 00 00 00 00", ErrTooLong},
		{"lock_register", "f0 01 c0", ErrPrefix},
		{"lock_load", "f0 8b 00", ErrPrefix},
		{"lock_cmp", "f0 83 38 00", ErrPrefix},
		{"66_before_vex", "66 c5 f8 58 c1", ErrPrefix},
		{"rex_before_evex", "48 62 f1 7c 48 58 c0", ErrPrefix},
		{"lock_before_xop", "f0 8f e8 78 c0 c0 05", ErrPrefix},
		{"vvvv_unused", "c5 80 28 c1", ErrOperands},
		{"gather_index_is_destination", "c4 e2 69 92 04 00", ErrOperands},
		{"tiles_not_distinct", "c4 e2 63 5e c0", ErrOperands},
		{"zeroing_without_mask", "62 f1 7c c8 58 c0", ErrOperands},
		{"gather_without_mask", "62 f2 7d 48 92 04 08", ErrOperands},
		{"cr10", "44 0f 20 d0", ErrOperands},
		{"cr1", "0f 20 c8", ErrUnknown},
		{"register_with_X4", "62 f1 78 48 58 c0", ErrOperands},
		{"vector_index_with_X4", "62 f2 79 49 92 04 08", ErrOperands},
		{"mask_register_with_B4", "62 f9 7c 08 90 c1", ErrOperands},
		{"map4_with_L", "62 f4 7c 28 01 c0", ErrOperands},
		{"map4_with_z", "62 f4 7c 88 01 c0", ErrOperands},
		{"map4_low_bits_of_aaa", "62 f4 7c 09 01 c0", ErrOperands},
		{"map4_vvvv_without_ND", "62 f4 74 08 01 c0", ErrOperands},
		{"adc_keeps_no_flags", "62 f4 7c 0c 11 c0", ErrUnknown},
		{"pop2_of_rsp", "62 f4 74 18 8f c4", ErrOperands},
		{"pop2_of_one_register", "62 f4 74 18 8f c1", ErrOperands},
		{"push2_of_rsp", "62 f4 5c 18 ff f1", ErrOperands},
		{"mvex", "62 f1 78 48 58 c0", ErrUnknown},
		{"vector_of_no_length_in_memory", "62 f2 7f 78 50 00", ErrUnknown},
		{"vector_of_no_length", "62 f2 7d 68 d2 c0", ErrUnknown},
		{"scalar_of_no_length", "62 f1 7e 68 2e c0", ErrUnknown},
		{"conversion_of_no_length", "62 f5 7e 68 6c c0", ErrUnknown},
		{"vex_map_0", "c4 e0 78 58 c0", ErrUnknown},
		{"xop_map_11", "8f eb 78 c0 c0 05", ErrUnknown},
		{"rex_before_rex2", "48 d5 00 90", ErrPrefix},
		{"rex2_before_rex2", "d5 00 d5 00 90", ErrUnknown},
		{"rex2_before_an_escape", "d5 00 0f 05", ErrUnknown},
		{"rex2_before_a_short_branch", "d5 00 74 05", ErrUnknown},
		{"rex2_before_a_near_branch", "d5 00 e8 00 00 00 00", ErrUnknown},
		{"rex2_before_wrmsr", "d5 80 30", ErrUnknown},
		{"rex2_before_a_long_branch", "d5 80 84 00 00 00 00", ErrUnknown},
		{"rex2_before_xsave", "d5 80 ae 20", ErrOperands},
		{"rex2_cr16", "d5 c0 20 c0", ErrOperands},
		{"jmpabs_with_W", "d5 08 a1 11 22 33 44 55 66 77 08", ErrUnknown},
		{"jmpabs_with_66", "66 d5 00 a1 11 22 33 44 55 66 77 08", ErrUnknown},
		{"jmpabs_with_67", "67 d5 00 a1 11 22 33 44 55 66 77 08", ErrPrefix},
		{"locked_rex2_without_memory", "f0 d5 00 01 c0", ErrPrefix},
	} {
		t.Run(tt.hazard, func(t *testing.T) {
			i, err := Decode(padded(unhex(t, tt.bytes)))
			require.ErrorIs(t, err, tt.err)
			require.Equal(t, Inst{}, i)
		})
	}
}

func TestDecodeDoesNotAllocate(t *testing.T) {
	for _, s := range []string{"48 8b 05 10 00 00 00", "e8 01 02 03 04", "c4 e2 79 18 05 01 02 03 04", "62 f1 7c 48 58 c0", "06", "8f e8 78 c0 c0 05"} {
		b := unhex(t, s)
		_, _ = Decode(b) // compiles the tables
		require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = Decode(b) }), s)
	}
}

// Any cut of an instruction is an error: it is not whole.
func TestEveryCutIsTruncated(t *testing.T) {
	for e := EncPrimary; e < numEncodings; e++ {
		for _, w := range Samples(e, 2) {
			i, err := Decode(w)
			require.NoError(t, err)
			for n := range i.Length {
				_, err := Decode(w[:n:n])
				require.ErrorIs(t, err, ErrTruncated, "%d of % x", n, i.Bytes())
			}
		}
	}
}

func TestText(t *testing.T) {
	for _, tt := range []struct{ bytes, want string }{
		{"48 89 e5", "mov %rsp,%rbp"},
		{"e8 00 00 00 00", "call 0x1005"},
		{"f3 0f 1e fa", "endbr64"},
		{"f3 48 0f 1e c8", "rdsspq %rax"},
		{"0f 01 ca", "clac"},
		{"0f 01 c1", "vmcall"},
		{"66 0f ae f1", "tpause %ecx"},
		{"66 48 0f 38 f6 c3", "adcx %rbx,%rax"},
		{"f3 0f 38 f6 44 8b 08", "adox 0x8(%rbx,%rcx,4),%eax"},
		{"66 48 0f 38 f5 45 f8", "wrussq %rax,-0x8(%rbp)"},
		{"66 0f 38 82 05 10 00 00 00", "invpcid 0x10(%rip),%rax"},
		{"0f 0f c1 9e", "pfadd %mm1,%mm0"},
		{"8f e8 78 c0 c0 05", "vprotb $0x5,%xmm0,%xmm0"},
		{"c5 f8 77", "vzeroupper"},
		{"c5 fc 77", "vzeroall"},
		{"81 a6 f4 54 6b da 01 00 00 00", "andl $0x1,-0x2594ab0c(%rsi)"},
		{"48 8b 14 c5 00 71 a0 82", "mov -0x7d5f8f00(,%rax,8),%rdx"},
		{"48 bf 00 10 00 00 80 88 ff ff", "movabs $0xffff888000001000,%rdi"},
		{"65 66 a1 2f 70 02 a3 f8 55 dd c6", "movabs %gs:0xc6dd55f8a302702f,%ax"},
		{"67 a0 41 d8 d0 c6", "addr32 mov 0xc6d0d841,%al"},
		{"67 48 a3 41 d8 d0 c6", "addr32 mov %rax,0xc6d0d841"},
		{"67 64 a2 41 d8 d0 c6", "addr32 mov %al,%fs:0xc6d0d841"},
		{"64 ec", "fs in (%dx),%al"},
		{"67 ed", "addr32 in (%dx),%eax"},
		{"65 6c", "gs insb (%dx),%es:(%rdi)"},
		{"65 6e", "outsb %gs:(%rsi),(%dx)"},
		{"65 aa", "gs stos %al,%es:(%rdi)"},
		{"64 af", "fs scas %es:(%rdi),%eax"},
		{"65 d7", "xlat %gs:(%rbx)"},
		{"a2 58 7f 75 19 d8 c6 c0 c1", "movabs %al,0xc1c0c6d819757f58"},
		{"0f 78 c7", "vmread %rax,%rdi"},
		{"66 0f 78 c4 53 62", "extrq $0x62,$0x53,%xmm4"},
		{"48 0f c7 34 a1", "rex.W vmptrld (%rcx,%riz,4)"},
		// RIP-relative, the address size, segments before VEX and bytes inside it that look like them
		{"c4 c1 7d 10 35 9b 1f 8b 16", "vmovupd 0x168b1f9b(%rip),%ymm6"},
		{"67 c5 fc 10 0d 38 84 ff ee", "vmovups -0x11007bc8(%eip),%ymm1"},
		{"67 c4 21 78 16 68 b3", "vmovhps -0x4d(%eax),%xmm0,%xmm13"},
		{"64 c4 61 bf 2a 04 ae", "vcvtsi2sdq %fs:(%rsi,%rbp,4),%xmm8,%xmm8"},
		{"c5 65 64 57 13", "vpcmpgtb 0x13(%rdi),%ymm3,%ymm10"},
		// W and a scalar's L are ignored, but W where it makes an operand wide
		{"c4 e1 f9 70 fb 9a", "vpshufd $0x9a,%xmm3,%xmm7"},
		{"c5 ff 59 15 00 01 00 00", "vmulsd 0x100(%rip),%xmm0,%xmm2"},
		{"c4 01 fe 2d 3d b0 41 5b d8", "vcvtss2si -0x27a4be50(%rip),%r15"},
		// broadcasts, masks as sources, half vectors, half precision
		{"62 d2 3d 38 27 66 b5", "vptestmd -0x12c(%r14){1to8},%ymm8,%k4"},
		{"62 f1 7d 1d 79 19", "vcvtps2uqq (%rcx){1to2},%xmm3{%k5}"},
		{"62 d3 7c 58 56 9e 59 9b e1 14 44", "vreduceph $0x44,0x14e19b59(%r14){1to32},%zmm3"},
		{"62 62 fe 48 38 f7", "vpmovm2q %k7,%zmm30"},
		{"62 f2 7d 08 13 da", "{evex} vcvtph2ps %xmm2,%xmm3"},
		{"62 f1 7d 08 c5 c3 21", "{evex} vpextrw $0x21,%xmm3,%eax"},
		{"62 f5 7c 48 58 c0", "vaddph %zmm0,%zmm0,%zmm0"},
		{"0f 20 53", "mov %cr2,%rbx"},
		{"66 f7 c8 34 12", "test $0x1234,%ax"},
		{"c0 f4 01", "shl $0x1,%ah"},
		{"48 0f 1d c1", "nop %rcx"},
		// what the rows of 2023 to 2025 say: with other prefixes these are other instructions
		{"f2 0f 00 f0", "lkgs %eax"},
		{"f2 0f 01 ca", "erets"},
		{"f3 0f 01 ca", "eretu"},
		{"d6", "udb"},
		{"c4 e2 79 e0 03", "cmpoxadd %eax,%eax,(%rbx)"},
		{"48 0f 38 8b 03", "movrs (%rbx),%rax"},
		{"f2 0f 38 f8 c1", "urdmsr %rax,%rcx"},
		{"62 f5 7d 58 58 40 01", "vaddbf16 0x2(%rax){1to32},%zmm0,%zmm0"},
		{"62 f2 7e 48 4a c1", "tcvtrowd2ps %eax,%tmm1,%zmm0"},
		// four names, of which x86asm knew one, and what a REX that counts for nothing hid
		{"f3 0f 38 d8 00", "aesencwide128kl (%rax)"},
		{"f3 0f 38 d8 10", "aesencwide256kl (%rax)"},
		{"f3 0f 38 d8 08", "aesdecwide128kl (%rax)"},
		{"f3 0f 38 d8 18", "aesdecwide256kl (%rax)"},
		{"48 66 0f 6e c1", "rex.W movd %ecx,%xmm0"},
		{"4f 66 0f c7 f1", "rex.WRXB rdrand %cx"},
		{"c4 e3 f9 69 c1 20", "vfmaddpd %xmm1,%xmm2,%xmm0,%xmm0"},
		{"66 0f 1a c1", "bndmov %bnd1,%bnd0"},
		{"8f e9 78 01 c8", "blcfill %eax,%eax"},
		{"0f ff c1", "ud0 %ecx,%eax"},
		{"65 66 0f ae 34 25 10 00 00 00", "clwb %gs:0x10"},
		// an immediate that has a name stands in the mnemonic, others do not
		{"0f c2 c1 01", "cmpltps %xmm1,%xmm0"},
		{"66 0f c2 c1 07", "cmpordpd %xmm1,%xmm0"},
		{"f3 0f c2 c1 08", "cmpss $0x8,%xmm1,%xmm0"},
		{"c5 fb c2 c1 1f", "vcmptrue_ussd %xmm1,%xmm0,%xmm0"},
		{"c5 f8 c2 c1 20", "vcmpps $0x20,%xmm1,%xmm0,%xmm0"},
		{"62 f1 7c 18 c2 c1 03", "vcmpunordps {sae},%zmm1,%zmm0,%k0"},
		{"62 f3 7c 38 c2 00 0d", "vcmpgeph (%rax){1to16},%ymm0,%k0"},
		{"62 f3 7f 08 c2 c1 04", "vcmpneqbf16 %xmm1,%xmm0,%k0"},
		{"62 f3 fd 28 1e c1 06", "vpcmpnleuq %ymm1,%ymm0,%k0"},
		{"62 f3 7d 08 3f c1 03", "vpcmpb $0x3,%xmm1,%xmm0,%k0"},
		{"8f e8 78 ec c1 03", "vpcomgeub %xmm1,%xmm0,%xmm0"},
		{"66 0f 3a 44 c1 01", "pclmulhqlqdq %xmm1,%xmm0"},
		{"c4 e3 7d 44 c1 11", "vpclmulhqhqdq %ymm1,%ymm0,%ymm0"},
		{"66 0f 3a 44 c1 02", "pclmulqdq $0x2,%xmm1,%xmm0"},
		// 67 makes a register that has an address one of 32 bits, and MPX takes no notice of it
		{"67 0f 01 c8", "monitor %eax,%ecx,%edx"},
		{"67 0f 01 fa", "monitorx %eax,%ecx,%edx"},
		{"67 f3 0f ae f1", "umonitor %ecx"},
		{"67 66 0f 38 f8 08", "movdir64b (%eax),%ecx"},
		{"67 f2 0f 38 f8 08", "enqcmd (%eax),%ecx"},
		{"67 f3 0f 38 f8 08", "enqcmds (%eax),%ecx"},
		{"67 f3 0f 1a 02", "addr32 bndcl (%rdx),%bnd0"},
		{"67 66 0f 1b 02", "addr32 bndmov %bnd0,(%rdx)"},
		{"67 e3 00", "jecxz 0x1003"},
		{"e3 00", "jrcxz 0x1002"},
		{"67 e2 00", "loopl 0x1003"},
		{"67 e1 00", "loopel 0x1003"},
		{"67 e0 00", "loopnel 0x1003"},
		{"66 0f ae f8", "data16 sfence"},
	} {
		require.Equal(t, tt.want, Text(unhex(t, tt.bytes), 0x1000), tt.bytes)
	}
}

func TestTemplatesAreChecked(t *testing.T) {
	for _, text := range []string{"", "q: add Gb,Eb", "add Gb,", "add Kb", "add Gb,E?", "add{?} Gb", "m: add Gb,M", "add G", "add M@3", "add M@V/16", "add Ib,Izz", "w: add Gb,M | r: add Gb,Rb"} {
		_, err := readTemplates(text)
		require.Error(t, err, text)
	}
}

// TestTextAtZero: an address of 0 is one, too.
func TestTextAtZero(t *testing.T) {
	require.Equal(t, "call 0x15", Text(unhex(t, "e8 10 00 00 00"), 0))
	require.Equal(t, "jmp 0x0", Text(unhex(t, "eb fe"), 0))
}

// TestDecodePrefixIndependence: bytes after an instruction change nothing.
func TestDecodePrefixIndependence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOfN(rapid.Byte(), 15, 15).Draw(t, "bytes")
		i, err := Decode(b)
		if err != nil {
			return
		}
		short, err := Decode(b[:i.Length])
		require.NoError(t, err)
		require.Equal(t, i.Length, short.Length)
		require.Equal(t, i.Class, short.Class)
	})
}

func FuzzDecode(f *testing.F) {
	text, err := os.ReadFile("../testdata/vectors/instructions.txt")
	require.NoError(f, err)
	for line := range strings.Lines(string(text)) {
		if head, _, ok := strings.Cut(line, " | "); ok && line[0] != '#' {
			f.Add(unhex(f, head))
		}
	}
	for e := EncPrimary; e < numEncodings; e++ {
		for _, w := range Samples(e, 1) {
			f.Add(w)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		i, err := Decode(b)
		if err != nil {
			require.True(t, errors.Is(err, ErrTruncated) || errors.Is(err, ErrUnknown) || errors.Is(err, ErrTooLong))
			return
		}
		require.Positive(t, i.Length)
		require.LessOrEqual(t, i.Length, min(len(b), MaxInsnSize))
		require.LessOrEqual(t, int(i.ImmOff+i.ImmLen), i.Length)
		require.NotEmpty(t, i.Text(0x1000))
	})
}

func BenchmarkDecode(b *testing.B) {
	code := unhex(b, "f30f1efa554889e54883ec18488b0510000000"+
		"8b45fc0f1f440000e8010203047410c744240801000000418b94249c0000000fb6c0c3")
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		for at := 0; at < len(code); {
			i, err := Decode(code[at:])
			if err != nil {
				b.Fatal(err)
			}
			at += i.Length
			n++
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/insn")
}
