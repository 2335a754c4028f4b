package decoder

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/arch/x86/x86asm"

	"kprobelab/x86"
)

const readAt = x86.Addr(0xffffffff81000000)

func TestReadings(t *testing.T) {
	for _, tt := range []struct {
		bytes  string
		length int
		kind   Kind
		target x86.Addr
	}{
		{"90", 1, KindPlain, 0},
		{"e8 10 00 00 00", 5, KindCall, readAt + 0x15},
		{"ff d0", 2, KindIndirectCall, 0},
		{"c3", 1, KindReturn, 0}, {"c2 08 00", 3, KindReturn, 0}, {"cb", 1, KindPlain, 0},
		{"eb fe", 2, KindJump, readAt}, {"e9 00 01 00 00", 5, KindJump, readAt + 0x105},
		{"74 02", 2, KindJump, readAt + 4}, {"0f 84 00 01 00 00", 6, KindJump, readAt + 0x106},
		{"e2 f0", 2, KindJump, readAt - 14}, {"e3 00", 2, KindJump, readAt + 2},
		{"66 e9 00 01 00 00", 6, KindJump, readAt + 0x106}, // Intel's: 66 is ignored
		{"ff e0", 2, KindIndirectJump, 0}, {"ff 25 00 00 00 00", 6, KindIndirectJump, 0},
		{"ff 28", 2, KindIndirectJump, 0}, {"ff 18", 2, KindPlain, 0}, // far jump, far call
		{"c7 f8 00 01 00 00", 6, KindPlain, 0}, // xbegin
		{"cc", 1, KindInt3, 0}, {"cd 03", 2, KindTrap, 0}, {"f1", 1, KindTrap, 0},
		{"0f 0b", 2, KindTrap, 0}, {"0f b9 c0", 3, KindTrap, 0},
		// Overrides.
		{"f3 0f 1e fa", 4, KindPlain, 0}, {"0f 01 cb", 3, KindPlain, 0}, {"66 0f ae f1", 4, KindPlain, 0},
		// A prefix before VEX.
		{"3e c5 f9 6f c1", 5, KindPlain, 0},
	} {
		want := Reading{tt.length, tt.kind, tt.target}
		b := padded(unhex(t, tt.bytes))
		for _, r := range []Reader{X86asm{}, Tables{}, Alone{Tables{}}} {
			require.Equal(t, want, r.Read(b, readAt), "%v: %s", r, tt.bytes)
		}
		k, err := DecodeKernel(b, nil)
		require.NoError(t, err)
		require.Equal(t, want, k.Reading(readAt), "the kernel: %s", tt.bytes)
	}
}

func TestReadingInWords(t *testing.T) {
	for want, r := range map[string]Reading{
		"no instruction":                        {},
		"1 byte, an int3":                       {1, KindInt3, 0},
		"3 bytes, no branch":                    {3, KindPlain, 0},
		"2 bytes, a jump to 0xffffffff81000000": {2, KindJump, readAt},
		"a panic":                               {Kind: KindPanic},
	} {
		require.Equal(t, want, r.String())
	}
}

// TestReadersRefuse: bytes that are no instruction, or truncated, have no length.
func TestReadersRefuse(t *testing.T) {
	for _, s := range []string{"", "48", "e8 00 00 00", "06", "0f 38", "66 66 66 66 66 66 66 66 66 66 66 66 66 66 66 90"} {
		for _, r := range []Reader{X86asm{}, Tables{}} {
			require.Equal(t, Reading{}, r.Read(unhex(t, s), readAt), "%v: %s", r, s)
		}
	}
}

// TestKernelReadsOtherwise: by the opcode byte alone, a vector instruction may be a jump to the
// kernel (docs/spec 4.3), and it reads ud2 and "xen" as a prefix.
func TestKernelReadsOtherwise(t *testing.T) {
	for s, want := range map[string]Reading{
		"c5 f8 77":             {3, KindJump, readAt + 3},    // vzeroupper
		"c5 f9 70 c0 39":       {5, KindJump, readAt + 0x3e}, // vpshufd
		"62 f1 65 08 72 c3 10": {7, KindJump, readAt + 0x17}, // vprord
		"0f 0b 78 65 6e 0f a2": {7, KindPlain, 0},            // ud2, "xen", cpuid
		"ea a7 08 00 01 08 00": {7, KindIndirectJump, 0},
		"48 66 90":             {2, KindPlain, 0}, // 66 after REX is an opcode to it
		"0f ff c0":             {2, KindTrap, 0},  // ud0 has ModRM
	} {
		k, err := DecodeKernel(padded(unhex(t, s)), nil)
		require.NoError(t, err)
		require.Equal(t, want, k.Reading(readAt), s)
		require.Equal(t, Tables{}.Read(padded(unhex(t, s)), readAt), X86asm{}.Read(padded(unhex(t, s)), readAt))
		require.NotEqual(t, want, X86asm{}.Read(padded(unhex(t, s)), readAt), s)
	}
}

// TestReadersAgreeOnEveryRow: x86asm, put right by its overrides, reads every
// row of opcodes/ as the tables do. Without them it is wrong in many.
func TestReadersAgreeOnEveryRow(t *testing.T) {
	asked, wrong := 0, 0
	for e := EncPrimary; e < numEncodings; e++ {
		rows := opcodesOf(e).rows
		for n := range rows {
			for _, b := range rows[n].samples(e, 96) {
				asked++
				want := Tables{}.Read(b, readAt)
				require.Positive(t, want.Length)
				require.Equal(t, want, X86asm{}.Read(b, readAt), "opcodes/%s.txt:%d: % x", e, rows[n].line, b)
				if (X86asm{Bare: true}).Read(b, readAt) != want {
					wrong++
				}
			}
		}
	}
	t.Logf("%d instructions, of which x86asm alone gets %d wrong", asked, wrong)
	require.Greater(t, wrong, 1000)
}

func TestX86asmPanics(t *testing.T) {
	defer func() { decodeX86asm = x86asm.Decode }()
	decodeX86asm = func(src []byte, _ int) (x86asm.Inst, error) { return x86asm.Inst{Len: int(src[99])}, nil }
	for _, r := range []Reader{X86asm{}, X86asm{Bare: true}} {
		require.Equal(t, Reading{Kind: KindPanic}, r.Read([]byte{0x90}, readAt))
	}
	// x86asm does not read an override's row.
	require.Equal(t, Reading{4, KindPlain, 0}, X86asm{}.Read(unhex(t, "f3 0f 1e fa"), readAt))
}

func TestBareX86asm(t *testing.T) {
	bare := X86asm{Bare: true}
	require.Equal(t, Reading{1, KindPlain, 0}, bare.Read(unhex(t, "f3 0f 1e fa"), readAt)) // endbr64: a prefix alone
	require.Equal(t, Reading{4, KindPlain, 0}, bare.Read(unhex(t, "c5 f8 77 c3"), readAt)) // vzeroupper: a byte too long
	require.Equal(t, Reading{}, bare.Read(unhex(t, "0f 01 ee"), readAt))                   // rdpkru: not known
}

func TestBoth(t *testing.T) {
	b := NewBoth(X86asm{Bare: true}, Tables{})
	require.Equal(t, "bare x86asm", b.String())
	require.Equal(t, Reading{1, KindPlain, 0}, b.Read(unhex(t, "90"), readAt))
	require.Empty(t, b.Differences())
	require.Equal(t, Reading{}, b.Read(padded(unhex(t, "0f 01 ee")), readAt+8))
	for range 2 {
		require.Equal(t, Reading{1, KindPlain, 0}, b.Read(padded(unhex(t, "f3 0f 1e fa")), readAt+4))
	}
	require.EqualValues(t, 4, b.Compared())
	require.Equal(t, []Difference{
		{readAt + 4, unhex(t, "f3 0f 1e fa"), Reading{1, KindPlain, 0}, Reading{4, KindPlain, 0}},
		{readAt + 8, unhex(t, "0f 01 ee"), Reading{}, Reading{3, KindPlain, 0}},
	}, b.Differences())
}

// TestRemember: the same bytes at the same address are read once; other bytes,
// another address and another end of memory are not the same.
func TestRemember(t *testing.T) {
	b := NewBoth(X86asm{}, Tables{})
	for name, r := range map[string]Reader{"plain": Remember(b), "alone": Remember(Alone{b})} {
		t.Run(name, func(t *testing.T) {
			_, alone := r.(Alone)
			require.Equal(t, name == "alone", alone)
			require.Equal(t, "x86asm", r.String())
			jump, nop := padded(unhex(t, "eb 10")), padded(unhex(t, "90"))
			for n, k := range []struct {
				code []byte
				at   x86.Addr
				want Reading
				read int64
			}{
				{jump, readAt, Reading{2, KindJump, readAt + 18}, 1},
				{jump, readAt, Reading{2, KindJump, readAt + 18}, 0},
				{jump, readAt + 2048, Reading{2, KindJump, readAt + 2048 + 18}, 1},
				{nop, readAt, Reading{1, KindPlain, 0}, 1},
				{nop[:1], readAt, Reading{1, KindPlain, 0}, 1},
				{nop[:1], readAt, Reading{1, KindPlain, 0}, 0},
				{nil, readAt, Reading{}, 1},
			} {
				before := b.Compared()
				require.Equal(t, k.want, r.Read(k.code, k.at), n)
				require.Equal(t, k.read, b.Compared()-before, n)
			}
		})
	}
}
