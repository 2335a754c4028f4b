package slot

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"kprobelab/profile"
	"kprobelab/x86"
)

// fakeStack is memory that holds words by address.
type fakeStack map[x86.Addr]uint64

var errNoStack = errors.New("no stack there")

func (m fakeStack) ReadMem(a x86.Addr, b []byte) error {
	v, ok := m[a]
	if !ok {
		return errNoStack
	}
	binary.LittleEndian.PutUint64(b, v)
	return nil
}

func (m fakeStack) WriteMem(a x86.Addr, b []byte) error {
	m[a] = binary.LittleEndian.Uint64(b)
	return nil
}

// hit is regs as the int3 at testAt leaves them.
func hit(edit func(*x86.PtRegs)) x86.PtRegs {
	r := x86.PtRegs{IP: uint64(testAt) + 1, SP: 0x8000, Flags: x86.FlagFixed | x86.FlagIF}
	if edit != nil {
		edit(&r)
	}
	return r
}

func emulation(t require.TestingT, bytes []byte, c *profile.Config) Emulation {
	v := &fakeView{base: testAt, code: append(append([]byte{}, bytes...), make([]byte, 16)...)}
	s, err := Build(v, testAt, testSlot, true, c)
	require.NoError(t, err)
	return s.Emulation
}

// TestEmulate holds docs/spec 2.7.
func TestEmulate(t *testing.T) {
	const top = 0x1122334455667788
	at := uint64(testAt)
	for _, tt := range []struct {
		name, bytes string
		before      func(*x86.PtRegs)
		after       func(*x86.PtRegs)
		pushed      uint64 // at 0x7ff8, 0 for none
	}{
		{"cli", "fa", nil, func(r *x86.PtRegs) { r.IP, r.Flags = at+1, x86.FlagFixed }, 0},
		{"sti", "fb", func(r *x86.PtRegs) { r.Flags = x86.FlagFixed },
			func(r *x86.PtRegs) { r.IP, r.Flags = at+1, x86.FlagFixed|x86.FlagIF }, 0},
		{"pushf", "9c", nil, func(r *x86.PtRegs) { r.IP, r.SP = at+1, 0x7ff8 }, x86.FlagFixed | x86.FlagIF},
		{"pushf_with_66_pushes_8_bytes", "66 9c", nil, func(r *x86.PtRegs) { r.IP, r.SP = at+2, 0x7ff8 }, x86.FlagFixed | x86.FlagIF},
		{"popf_is_unmasked", "9d", nil, func(r *x86.PtRegs) { r.IP, r.SP, r.Flags = at+1, 0x8008, top }, 0},
		{"ret", "c3", nil, func(r *x86.PtRegs) { r.IP, r.SP = top, 0x8008 }, 0},
		{"ret_ignores_immediate", "c2 10 00", nil, func(r *x86.PtRegs) { r.IP, r.SP = top, 0x8008 }, 0},
		{"retf_is_near", "cb", nil, func(r *x86.PtRegs) { r.IP, r.SP = top, 0x8008 }, 0},
		{"call", "e8 10 00 00 00", nil, func(r *x86.PtRegs) { r.IP, r.SP = at+0x15, 0x7ff8 }, at + 5},
		{"call_with_66_pushes_length_5", "66 e8 10 00 00 00", nil, func(r *x86.PtRegs) { r.IP, r.SP = at+0x16, 0x7ff8 }, at + 5},
		{"jmp_rel32_backwards", "e9 fb ff ff ff", nil, func(r *x86.PtRegs) { r.IP = at }, 0},
		{"jmp_rel8", "eb fe", nil, func(r *x86.PtRegs) { r.IP = at }, 0},
		{"jcc_short_taken", "75 10", nil, func(r *x86.PtRegs) { r.IP = at + 0x12 }, 0},
		{"jcc_short_not_taken", "74 10", nil, func(r *x86.PtRegs) { r.IP = at + 2 }, 0},
		{"jcc_near", "0f 84 00 01 00 00", func(r *x86.PtRegs) { r.Flags |= x86.FlagZF },
			func(r *x86.PtRegs) { r.IP = at + 0x106 }, 0},
		{"loop_branches_once_too_often", "e2 10", func(r *x86.PtRegs) { r.CX = 1 },
			func(r *x86.PtRegs) { r.CX, r.IP = 0, at+0x12 }, 0},
		{"loop_counter_0_falls_through", "e2 10", func(r *x86.PtRegs) { r.CX = 0 },
			func(r *x86.PtRegs) { r.CX, r.IP = ^uint64(0), at+2 }, 0},
		{"loop32_keeps_upper_half", "67 e2 10", func(r *x86.PtRegs) { r.CX = 0x500000000 },
			func(r *x86.PtRegs) { r.CX, r.IP = 0x5ffffffff, at+3 }, 0},
		{"loopne_stops_at_zf", "e0 10", func(r *x86.PtRegs) { r.CX, r.Flags = 5, x86.FlagZF },
			func(r *x86.PtRegs) { r.CX, r.IP = 4, at+2 }, 0},
		{"loope_needs_zf", "e1 10", func(r *x86.PtRegs) { r.CX, r.Flags = 5, x86.FlagZF },
			func(r *x86.PtRegs) { r.CX, r.IP = 4, at+0x12 }, 0},
		{"jrcxz", "e3 10", nil, func(r *x86.PtRegs) { r.IP = at + 0x12 }, 0},
		{"jecxz_looks_at_ecx", "67 e3 10", func(r *x86.PtRegs) { r.CX = 1 << 32 },
			func(r *x86.PtRegs) { r.IP = at + 0x13 }, 0},
		{"call_register", "41 ff d3", func(r *x86.PtRegs) { r.R11 = 0x1234 },
			func(r *x86.PtRegs) { r.IP, r.SP = 0x1234, 0x7ff8 }, at + 3},
		{"call_rsp_after_push", "ff d4", nil, func(r *x86.PtRegs) { r.IP, r.SP = 0x7ff8, 0x7ff8 }, at + 2},
		{"jmp_register", "ff e0", func(r *x86.PtRegs) { r.AX = 0x1234 }, func(r *x86.PtRegs) { r.IP = 0x1234 }, 0},
		{"vzeroupper_is_ja_plus_0", "c5 f8 77", nil, func(r *x86.PtRegs) { r.IP = at + 3 }, 0},
		{"vpsubd_is_cli", "c5 f9 fa c1", nil, func(r *x86.PtRegs) { r.IP, r.Flags = at+4, x86.FlagFixed }, 0},
		{"handler_changed_ip", "eb 10", func(r *x86.PtRegs) { r.IP += 0x1000 },
			func(r *x86.PtRegs) { r.IP = at + 0x1012 }, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := kernel(t, "6.1")
			e := emulation(t, unhex(t, tt.bytes), c)
			require.NotEqual(t, EmulateNone, e.Kind)
			regs, m := hit(tt.before), fakeStack{0x8000: top}
			want := regs
			tt.after(&want)
			require.NoError(t, e.Run(&regs, m, c))
			require.Equal(t, want, regs)
			require.Equal(t, tt.pushed, m[0x7ff8])
		})
	}
}

// TestEmulateWithoutStack holds docs/spec 2.7.
func TestEmulateWithoutStack(t *testing.T) {
	c := kernel(t, "6.1")
	e := emulation(t, []byte{0xC3}, c)
	regs := hit(nil)
	require.ErrorIs(t, e.Run(&regs, fakeStack{}, c), errNoStack)
}

// processor turns every deviation from the processor off.
func processor(c *profile.Config) {
	c.Step.LoopTestsBeforeDecrement = false
	c.Step.Loop32KeepsUpper = false
	c.Step.RetIgnoresImm = false
	c.Step.VexAsLegacy = false
	c.Step.FlagsMove8Bytes = false
	c.Step.PopfTakesAll = false
	c.Step.CallReturnsPast5 = false
	c.Step.CallPushesFirst = false
	c.Step.FarRetIsNear = false
}

// Each form that the kernel emulates differently from the processor, with the field that removes
// the difference. See docs/spec 14.5.
func TestEmulateAsTheProcessor(t *testing.T) {
	at := uint64(testAt)
	const flags = x86.FlagFixed | x86.FlagIF
	for _, tt := range []struct {
		name, bytes string
		stack       []byte // at 0x8000
		after       func(*x86.PtRegs)
		pushed      []byte // below 0x8000
	}{
		{"pushfw", "66 9c", nil, func(r *x86.PtRegs) { r.IP, r.SP = at+2, 0x7ffe }, []byte{2, 2}},
		{"popfw", "66 9d", []byte{0x43, 0x02, 9, 9}, func(r *x86.PtRegs) { r.IP, r.SP, r.Flags = at+2, 0x8002, flags|0x41 }, nil},
		{"popf_of_every_bit", "9d", []byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0},
			func(r *x86.PtRegs) { r.IP, r.SP, r.Flags = at+1, 0x8008, 0x247fd7 }, nil},
		{"call_with_prefix", "2e e8 10 00 00 00", nil, func(r *x86.PtRegs) { r.IP, r.SP = at+0x16, 0x7ff8 },
			binary.LittleEndian.AppendUint64(nil, at+6)},
		{"call_rsp", "ff d4", nil, func(r *x86.PtRegs) { r.IP, r.SP = 0x8000, 0x7ff8 }, binary.LittleEndian.AppendUint64(nil, at+2)},
		{"retf_of_64_bits", "48 cb", []byte{1, 2, 0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 0},
			func(r *x86.PtRegs) { r.IP, r.SP, r.CS = 0x201, 0x8010, 0x10 }, nil},
		{"retf_of_32_bits_with_immediate", "ca 04 00", []byte{1, 2, 0, 0, 0x10, 0, 0, 0},
			func(r *x86.PtRegs) { r.IP, r.SP, r.CS = 0x201, 0x800c, 0x10 }, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := kernel(t, "6.1")
			processor(c)
			e := emulation(t, unhex(t, tt.bytes), c)
			regs, m := hit(nil), &fakeBytes{}
			copy(m[0x80:], tt.stack)
			want := regs
			tt.after(&want)
			require.NoError(t, e.Run(&regs, m, c))
			require.Equal(t, want, regs)
			require.Equal(t, string(tt.pushed), string(m[0x80-len(tt.pushed):0x80]))
		})
	}
}

// fakeBytes is memory around 0x8000.
type fakeBytes [0x100]byte

func (m *fakeBytes) ReadMem(a x86.Addr, b []byte) error  { copy(b, m[a-0x7f80:]); return nil }
func (m *fakeBytes) WriteMem(a x86.Addr, b []byte) error { copy(m[a-0x7f80:], b); return nil }

// reference computes the result of each form as the manual defines it, independently of the
// emulation (SDM Vol. 2, "Operation" of each instruction).
type reference struct {
	name  string
	bytes func(rel int8, reg byte) []byte
	run   func(r *x86.PtRegs, m fakeStack, next uint64, rel int8, reg byte)
}

// jccTaken lists each condition as the manual writes it, by flag letters.
func jccTaken(cc byte, f uint64) bool {
	cf, pf, zf := f&1 == 1, f>>2&1 == 1, f>>6&1 == 1
	sf, of := f>>7&1 == 1, f>>11&1 == 1
	return [16]bool{
		of, !of, cf, !cf, zf, !zf, cf || zf, !cf && !zf,
		sf, !sf, pf, !pf, sf != of, sf == of, zf || sf != of, !zf && sf == of,
	}[cc]
}

func references() []reference {
	jump := func(r *x86.PtRegs, next uint64, rel int8, taken bool) {
		r.IP = next
		if taken {
			r.IP += uint64(int64(rel))
		}
	}
	push := func(r *x86.PtRegs, m fakeStack, v uint64) {
		r.SP -= 8
		m[x86.Addr(r.SP)] = v
	}
	refs := []reference{
		{"ret", func(int8, byte) []byte { return []byte{0xC3} },
			func(r *x86.PtRegs, m fakeStack, _ uint64, _ int8, _ byte) { r.IP = m[x86.Addr(r.SP)]; r.SP += 8 }},
		{"ret_imm", func(rel int8, _ byte) []byte { return []byte{0xC2, byte(rel), 0x01} },
			func(r *x86.PtRegs, m fakeStack, _ uint64, rel int8, _ byte) {
				r.IP = m[x86.Addr(r.SP)]
				r.SP += 8 + 0x100 + uint64(byte(rel))
			}},
		{"call", func(rel int8, _ byte) []byte { s := byte(rel >> 7); return []byte{0xE8, byte(rel), s, s, s} },
			func(r *x86.PtRegs, m fakeStack, next uint64, rel int8, _ byte) {
				push(r, m, next)
				jump(r, next, rel, true)
			}},
		{"jmp8", func(rel int8, _ byte) []byte { return []byte{0xEB, byte(rel)} },
			func(r *x86.PtRegs, _ fakeStack, next uint64, rel int8, _ byte) { jump(r, next, rel, true) }},
		{"jcc8", func(rel int8, reg byte) []byte { return []byte{0x70 | reg, byte(rel)} },
			func(r *x86.PtRegs, _ fakeStack, next uint64, rel int8, reg byte) {
				jump(r, next, rel, jccTaken(reg, r.Flags))
			}},
		{"jcc32", func(rel int8, reg byte) []byte {
			s := byte(rel >> 7)
			return []byte{0x0F, 0x80 | reg, byte(rel), s, s, s}
		}, func(r *x86.PtRegs, _ fakeStack, next uint64, rel int8, reg byte) {
			jump(r, next, rel, jccTaken(reg, r.Flags))
		}},
		{"call_reg", func(_ int8, reg byte) []byte { return []byte{0x40 | reg>>3, 0xFF, 0xD0 | reg&7} },
			func(r *x86.PtRegs, m fakeStack, next uint64, _ int8, reg byte) {
				to := *r.Reg(int(reg))
				push(r, m, next)
				r.IP = to
			}},
		{"jmp_reg", func(_ int8, reg byte) []byte { return []byte{0x40 | reg>>3, 0xFF, 0xE0 | reg&7} },
			func(r *x86.PtRegs, _ fakeStack, _ uint64, _ int8, reg byte) { r.IP = *r.Reg(int(reg)) }},
		{"flags", func(_ int8, reg byte) []byte { return []byte{0xFA | reg&1} },
			func(r *x86.PtRegs, _ fakeStack, next uint64, _ int8, reg byte) {
				r.IP = next
				r.Flags = r.Flags&^0x200 | uint64(reg&1)<<9
			}},
		{"pushf", func(int8, byte) []byte { return []byte{0x9C} },
			func(r *x86.PtRegs, m fakeStack, next uint64, _ int8, _ byte) { push(r, m, r.Flags); r.IP = next }},
	}
	return append(refs, loopReferences(jump)...)
}

func loopReferences(jump func(*x86.PtRegs, uint64, int8, bool)) []reference {
	taken := func(reg byte, count, f uint64) bool {
		zf := f&0x40 != 0
		return count != 0 && (reg&3 == 2 || reg&3 == 1 && zf || reg&3 == 0 && !zf)
	}
	return []reference{
		{"loop64", func(rel int8, reg byte) []byte { return []byte{0xE0 | reg&3, byte(rel)} },
			func(r *x86.PtRegs, _ fakeStack, next uint64, rel int8, reg byte) {
				if reg&3 == 3 {
					jump(r, next, rel, r.CX == 0)
					return
				}
				r.CX--
				jump(r, next, rel, taken(reg, r.CX, r.Flags))
			}},
		{"loop32", func(rel int8, reg byte) []byte { return []byte{0x67, 0xE0 | reg&3, byte(rel)} },
			func(r *x86.PtRegs, _ fakeStack, next uint64, rel int8, reg byte) {
				if reg&3 == 3 {
					jump(r, next, rel, uint32(r.CX) == 0)
					return
				}
				r.CX = uint64(uint32(r.CX) - 1)
				jump(r, next, rel, taken(reg, r.CX, r.Flags))
			}},
	}
}

// TestEmulationIsTheProcessor: with the deviations off every emulated form has the processor's
// result. call *%rsp remains the exception. See docs/spec 14.5.
func TestEmulationIsTheProcessor(t *testing.T) {
	c := kernel(t, "6.1", processor)
	for _, ref := range references() {
		t.Run(ref.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				rel := rapid.Int8().Draw(t, "rel")
				reg := rapid.ByteRange(0, 15).Draw(t, "reg")
				if ref.name == "call_reg" && reg == 4 {
					return
				}
				bytes := ref.bytes(rel, reg)
				e := emulation(t, bytes, c)
				got := drawRegs(t)
				want := got
				top := rapid.Uint64().Draw(t, "top")
				gotMem := fakeStack{x86.Addr(got.SP): top}
				wantMem := fakeStack{x86.Addr(got.SP): top}
				ref.run(&want, wantMem, uint64(testAt)+uint64(len(bytes)), rel, reg)
				require.NoError(t, e.Run(&got, gotMem, c))
				require.Equal(t, want, got)
				require.Equal(t, wantMem, gotMem)
			})
		})
	}
}

func drawRegs(t *rapid.T) x86.PtRegs {
	r := hit(nil)
	for n := range 16 {
		*r.Reg(n) = rapid.Uint64().Draw(t, "register")
	}
	r.CX = rapid.OneOf(rapid.SampledFrom([]uint64{0, 1, 2, 1 << 32, 1<<32 + 1}), rapid.Uint64()).Draw(t, "cx")
	r.Flags = rapid.Uint64Range(0, 0xFFF).Draw(t, "flags")
	return r
}

// noStack accepts every access and keeps nothing.
type noStack struct{}

func (noStack) ReadMem(x86.Addr, []byte) error  { return nil }
func (noStack) WriteMem(x86.Addr, []byte) error { return nil }

func TestRunDoesNotAllocate(t *testing.T) {
	c := kernel(t, "6.1")
	e := new(Emulation)
	*e = emulation(t, []byte{0xE8, 0, 0, 0, 0}, c)
	regs := new(x86.PtRegs)
	var m Memory = noStack{}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if err := e.Run(regs, m, c); err != nil {
			panic(err)
		}
	}))
}

func BenchmarkRunCall(b *testing.B) {
	c := kernel(b, "6.1")
	e := emulation(b, []byte{0xE8, 0, 0, 0, 0}, c)
	regs, m := new(x86.PtRegs), Memory(noStack{})
	b.ReportAllocs()
	for b.Loop() {
		if err := e.Run(regs, m, c); err != nil {
			b.Fatal(err)
		}
	}
}

// TestJLENeedsBoth: 5.13 to 5.19 take JLE where the operands are less and equal.
func TestJLENeedsBoth(t *testing.T) {
	less, equal := x86.FlagSF, x86.FlagZF
	for name, tc := range map[string]struct {
		code  string
		flags uint64
		taken [2]bool // as the processor does it, and as those releases do
	}{
		"jle_less":      {"7e 10", uint64(less), [2]bool{true, false}},
		"jle_equal":     {"7e 10", uint64(equal), [2]bool{true, false}},
		"jle_both":      {"0f 8e 10 00 00 00", uint64(less | equal), [2]bool{true, true}},
		"jle_greater":   {"7e 10", 0, [2]bool{false, false}},
		"jg_less":       {"7f 10", uint64(less), [2]bool{false, true}},
		"jg_greater":    {"0f 8f 10 00 00 00", 0, [2]bool{true, true}},
		"jl_is_right":   {"7c 10", uint64(less), [2]bool{true, true}},
		"jnl_is_right":  {"7d 10", uint64(less), [2]bool{false, false}},
		"je_is_right":   {"74 10", uint64(equal), [2]bool{true, true}},
		"jnle_is_right": {"7f 10", uint64(less | equal), [2]bool{false, false}},
	} {
		t.Run(name, func(t *testing.T) {
			code := unhex(t, tc.code)
			for i, want := range tc.taken {
				c := kernel(t, "6.1")
				c.Step.JLENeedsBoth = i == 1
				e := emulation(t, code, c)
				regs := hit(func(r *x86.PtRegs) { r.Flags = x86.FlagFixed | tc.flags })
				require.NoError(t, e.Run(&regs, fakeStack{}, c))
				next := uint64(testAt) + uint64(len(code))
				if want {
					next += 0x10
				}
				require.Equal(t, next, regs.IP, i)
			}
		})
	}
}

// TestCallIndirectReturnsPast5: 5.13 to 6.7 push an address 5 bytes on for a CALL
// of 2 or 3, and read the register before they push.
func TestCallIndirectReturnsPast5(t *testing.T) {
	for name, tc := range map[string]struct {
		kernel, code string
		pushed, to   uint64
	}{
		"call_rax_5.15.100":   {"5.15.100", "ff d0", 5, 0x4000},
		"call_rax_5.15":       {"5.15", "ff d0", 2, 0x4000},
		"call_r8_6.6.9":       {"6.6.9", "41 ff d0", 5, 0x5000},
		"call_r8_6.8":         {"6.8", "41 ff d0", 3, 0x5000},
		"call_rsp_6.6.9":      {"6.6.9", "ff d4", 5, 0x8000},
		"call_rsp_6.8":        {"6.8", "ff d4", 2, 0x7ff8},
		"call_rel_66_7.1":     {"7.1.13", "66 e8 10 00 00 00", 5, uint64(testAt) + 0x16},
		"call_rel_66_7.2":     {"7.2.12", "66 e8 10 00 00 00", 6, uint64(testAt) + 0x16},
		"call_rel_is_right":   {"6.6.9", "e8 10 00 00 00", 5, uint64(testAt) + 0x15},
		"call_rax_5.10_is_ok": {"5.10", "ff d0", 2, 0x4000},
	} {
		t.Run(name, func(t *testing.T) {
			c := kernel(t, tc.kernel)
			e := emulation(t, unhex(t, tc.code), c)
			regs := hit(func(r *x86.PtRegs) { r.AX, r.R8, r.SP = 0x4000, 0x5000, 0x8000 })
			stack := fakeStack{}
			require.NoError(t, e.Run(&regs, stack, c))
			var b [8]byte
			require.NoError(t, stack.ReadMem(0x7ff8, b[:]))
			require.Equal(t, uint64(testAt)+tc.pushed, binary.LittleEndian.Uint64(b[:]))
			require.Equal(t, tc.to, regs.IP)
		})
	}
}
