package slot

import (
	"encoding/hex"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/decoder"
	"kprobelab/errno"
	"kprobelab/kimage"
	"kprobelab/kprobes/rule"
	"kprobelab/profile"
	"kprobelab/x86"
)

// fakeView is code at one address, with an exception table.
type fakeView struct {
	kimage.View
	base   x86.Addr
	code   []byte
	faults map[x86.Addr]bool
}

func (v *fakeView) CodeAt(addr x86.Addr, b []byte) int {
	if !addr.In(v.base, v.base.Add(int64(len(v.code)))) {
		return 0
	}
	return copy(b, v.code[addr.Sub(v.base):])
}

func (v *fakeView) ExceptionEntry(addr x86.Addr) (x86.Addr, bool) {
	return 0, v.faults[addr]
}

const (
	testAt   x86.Addr = 0xffffffff81000100
	testSlot x86.Addr = 0xffffffffc0001000
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	require.NoError(t, err)
	return b
}

// code is the instruction in memory, followed by nops.
func code(t testing.TB, s string) *fakeView {
	b := append(unhex(t, s), []byte(strings.Repeat("\x90", 16))...)
	return &fakeView{base: testAt, code: b}
}

// kernel is a named profile, changed by the edits.
func kernel(t testing.TB, name string, edits ...func(*profile.Config)) *profile.Config {
	t.Helper()
	c, ok := profile.Named(name)
	if !ok {
		var v profile.Version
		v, ok = profile.ParseVersion(name)
		c = profile.ForRelease(v)
	}
	require.True(t, ok)
	for _, edit := range edits {
		edit(c)
	}
	return c
}

func preemption(on bool) func(*profile.Config) {
	return func(c *profile.Config) { c.Preemption = on }
}

// TestGoldenVectors holds boost and verdict of docs/spec 11.5.
func TestGoldenVectors(t *testing.T) {
	text, err := os.ReadFile("../../testdata/vectors/instructions.txt")
	require.NoError(t, err)
	c := kernel(t, "6.1", preemption(false))
	for line := range strings.Lines(string(text)) {
		if line == "\n" || line[0] == '#' {
			continue
		}
		f := strings.Split(strings.TrimSpace(line), " | ")
		v := code(t, f[0])
		// With a post_handler the slot is not boosted.
		s, err := Build(v, testAt, testSlot, true, c)
		require.Equal(t, f[4], verdict(s, err), line)
		if k, err := decoder.DecodeKernel(v.code, nil); err == nil {
			require.Equal(t, f[3], boostVerdict(v, &k, c), line)
		}
		if f[3] == "yes" && !strings.HasPrefix(f[4], "-") {
			s, err := Build(v, testAt, testSlot, false, c)
			require.NoError(t, err)
			require.True(t, s.Boosted, line)
		}
	}
}

func boostVerdict(v kimage.View, k *decoder.Kernel, c *profile.Config) string {
	switch {
	case !Boostable(v, k, testAt, c):
		return "no"
	case k.Length > 10:
		return "yes, too long"
	}
	return "yes"
}

var verdicts = map[Kind]string{
	EmulateNone: "step", EmulateIfModifiers: "emulate flag op", EmulateRet: "emulate ret",
	EmulateCall: "emulate call", EmulateJmp: "emulate jmp", EmulateJcc: "emulate jcc",
	EmulateLoop: "emulate loop", EmulateCallIndirect: "emulate indirect",
	EmulateJmpIndirect: "emulate indirect",
}

func verdict(s Slot, err error) string {
	if err != nil {
		return "-" + errno.Of(err).Name()
	}
	return verdicts[s.Emulation.Kind]
}

// TestCopyInstruction holds docs/spec 3.2.
func TestCopyInstruction(t *testing.T) {
	for _, tt := range []struct {
		name, bytes, want string
	}{
		{"rip_relative_load", "48 8b 05 10 00 00 00", "48 8b 05 10 f1 ff c0"},
		{"rip_relative_push", "ff 35 10 00 00 00", "ff 35 10 f1 ff c0"},
		{"rip_relative_with_immediate", "c7 05 10 00 00 00 01 02 03 04", "c7 05 10 f1 ff c0 01 02 03 04"},
		{"eip_relative_is_moved_too", "67 8b 05 10 00 00 00", "67 8b 05 10 f1 ff c0"},
		{"vex_rip_relative", "c4 e2 79 18 05 10 00 00 00", "c4 e2 79 18 05 10 f1 ff c0"},
		{"sib_base5_is_absolute", "8b 04 25 10 00 00 00", "8b 04 25 10 00 00 00"},
		{"branch_is_not_moved", "e8 10 00 00 00", "e8 10 00 00 00"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dst := make([]byte, 15)
			k, err := Copy(code(t, tt.bytes), dst, testAt, testSlot, kernel(t, "6.1"))
			require.NoError(t, err)
			require.Equal(t, unhex(t, tt.want), dst[:k.Length])
		})
	}
}

// TestRefusedInstructions holds docs/spec 3.2.
func TestRefusedInstructions(t *testing.T) {
	for _, tt := range []struct {
		name, kernel, bytes string
		rule                rule.ID
		errno               errno.Errno
	}{
		{"undecodable", "6.1", "c5 f8 0b c0", rule.SlotUndecodable, errno.EINVAL},
		{"kvm_prefix", "6.1", "0f 0b 6b 76 6d 90", rule.SlotEmulatePrefix, errno.EINVAL},
		{"xen_prefix", "6.1", "0f 0b 78 65 6e 90", rule.SlotEmulatePrefix, errno.EINVAL},
		{"far_jmp_through_memory", "6.1", "ff 28", rule.FarBranch, errno.EOPNOTSUPP},
		{"jmp_through_memory", "6.1", "ff 20", rule.BranchMemory, errno.EOPNOTSUPP},
		{"vmcall_group_end", "6.1", "0f 01 c7", rule.VMCall, errno.EOPNOTSUPP},
		{"int3", "6.1", "cc", rule.SlotInt3, errno.EINVAL},
		{"mov_ss", "6.1", "8e d0", rule.SlotMasksExceptions, errno.EINVAL},
		{"mov_ss_from_memory", "6.1", "8e 10", rule.SlotMasksExceptions, errno.EINVAL},
		{"far_call_through_memory", "6.1", "ff 18", rule.FarBranch, errno.EOPNOTSUPP},
		{"call_through_memory", "6.1", "ff 15 00 00 00 00", rule.BranchMemory, errno.EOPNOTSUPP},
		{"jmp_reg_with_address_size", "6.1", "67 ff e0", rule.BranchMemory, errno.EOPNOTSUPP},
		{"iret", "6.1", "48 cf", rule.FarBranch, errno.EOPNOTSUPP},
		{"vmcall", "6.12", "0f 01 c1", rule.VMCall, errno.EOPNOTSUPP},
		{"fifteen_bytes", "6.1", strings.Repeat("66 ", 14) + "90", rule.TooLong, errno.ENOSPC},
		{"sixteen_bytes", "6.1", strings.Repeat("66 ", 15) + "90", rule.SlotUndecodable, errno.EINVAL},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := Build(code(t, tt.bytes), testAt, testSlot, true, kernel(t, tt.kernel))
			var e *Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, tt.rule, e.Rule)
			require.Equal(t, testAt, e.Addr)
			require.ErrorIs(t, err, tt.errno)
			require.Zero(t, s)
		})
	}
	t.Run("unmapped", func(t *testing.T) {
		_, err := Build(code(t, "90"), testAt-1, testSlot, true, kernel(t, "6.1"))
		require.ErrorIs(t, err, errno.EINVAL)
	})
	t.Run("displacement_overflow", func(t *testing.T) {
		v := code(t, "48 8b 05 ff ff ff 7f")
		_, err := Build(v, testAt, testAt-1, true, kernel(t, "6.1"))
		var e *Error
		require.True(t, errors.As(err, &e) && e.Rule == rule.SlotDisplacement, "%v", err)
		require.Equal(t, int64(1)<<31, e.Displacement)
		_, err = Build(v, testAt, testAt, true, kernel(t, "6.1"))
		require.NoError(t, err)
	})
}

// TestOlderKernelsStepWhatNewerRefuse: instructions that newer kernels refuse and older ones step.
// See docs/spec 3.2.
func TestOlderKernelsStepWhatNewerRefuse(t *testing.T) {
	for _, tt := range []struct{ name, kernel, bytes string }{
		{"mov_ss_in_44", "4.4", "8e d0"},
		{"call_through_memory_in_58", "5.8", "ff 10"},
		{"iret_in_58", "5.8", "cf"},
		{"fifteen_bytes_in_58", "5.8", strings.Repeat("66 ", 14) + "90"},
		{"int3_in_2618", "2.6.18", "cc"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := Build(code(t, tt.bytes), testAt, testSlot, false, kernel(t, tt.kernel))
			require.NoError(t, err)
			require.Equal(t, EmulateNone, s.Emulation.Kind)
		})
	}
}

// TestSlotBytes holds docs/spec 3.3.
func TestSlotBytes(t *testing.T) {
	for _, tt := range []struct {
		name, kernel, bytes string
		preemption, post    bool
		want                string
		boosted             bool
	}{
		{"stepped_on_preemption", "6.1", "55", true, false, "55 cc", false},
		{"boosted", "5.10", "55", false, false, "55 e9 fb f0 ff c0", true},
		{"post_handler_prevents_boost", "5.10", "55", false, true, "55 cc", false},
		{"ten_bytes_boost", "5.10", "48 b8 01 02 03 04 05 06 07 08", false, false,
			"48 b8 01 02 03 04 05 06 07 08 e9 fb f0 ff c0", true},
		{"eleven_bytes_do_not", "5.10", "c7 84 00 01 00 00 00 02 00 00 00", false, false,
			"c7 84 00 01 00 00 00 02 00 00 00 cc", false},
		{"ret_is_boosted_with_jump", "5.10", "c3", false, false, "c3 e9 fb f0 ff c0", true},
		{"call_is_not", "5.10", "e8 00 00 00 00", false, false, "e8 00 00 00 00 cc", false},
		{"tf_has_no_int3", "5.8", "d1 e0", false, false, "d1 e0", false},
		{"tf_boost_ignores_post_handler", "5.8", "55", true, true, "55 e9 fb f0 ff c0", true},
		{"2618_never_boosts", "2.6.18", "55", false, false, "55", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := Build(code(t, tt.bytes), testAt, testSlot, tt.post, kernel(t, tt.kernel, preemption(tt.preemption)))
			require.NoError(t, err)
			require.Equal(t, tt.boosted, s.Boosted)
			require.Equal(t, unhex(t, tt.want), s.Bytes[:s.Len])
		})
	}
}

// TestExceptionTablePreventsBoost holds docs/spec 3.4.
func TestExceptionTablePreventsBoost(t *testing.T) {
	v := code(t, "8b 00")
	v.faults = map[x86.Addr]bool{testAt: true}
	s, err := Build(v, testAt, testSlot, false, kernel(t, "5.10"))
	require.NoError(t, err)
	require.False(t, s.Boosted)
}

// TestBoostRules has a row a form whose answer differs between releases.
// See docs/spec 3.4.
func TestBoostRules(t *testing.T) {
	names := []string{"2.6.18", "4.4", "5.8", "5.4.286", "6.1", "6.12"}
	for _, tt := range []struct {
		name, bytes, want string // a letter a kernel
	}{
		{"push", "55", "nyyyyy"},
		{"shift_imm", "c1 e0 04", "nnnnny"},
		{"shift_reg6_undefined", "c1 f0 04", "nnnnnn"},
		{"shift_cl", "d3 e8", "nnnnny"},
		{"neg", "f7 d8", "nnnnny"},
		{"test_reg1_undefined", "f6 c8 01", "nnnnnn"},
		{"inc_byte", "fe c0", "nnnnny"},
		{"inc", "ff c0", "nnnnny"},
		{"push_memory", "ff 30", "nnnnnn"},
		{"jmp_register", "ff e0", "nnnnyy"},
		{"call_register", "ff d0", "nnnnnn"},
		{"cs_prefix_two_byte", "2e 0f b6 c0", "nnyyyy"},
		{"cs_prefix", "2e 8b 00", "nnynnn"},
		{"address_size", "67 8b 00", "nnynnn"},
		{"lock_rex_two_byte", "f0 48 0f c1 07", "nyyyyy"},
		{"three_byte", "0f 38 f0 00", "nnnnnn"},
		{"x87", "d9 c0", "nnnnnn"},
		{"vex_as_add", "c5 f8 58 c1", "nyyyyy"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := ""
			for _, name := range names {
				v, c := code(t, tt.bytes), kernel(t, name)
				k, err := decoder.DecodeKernel(v.code, &c.Decoder)
				require.NoError(t, err)
				got += map[bool]string{true: "y", false: "n"}[Boostable(v, &k, testAt, c)]
			}
			require.Equal(t, tt.want, got)
		})
	}
}

// TestVexAsLegacyOff: with the quirk off VEX is neither emulated nor boosted.
// See docs/spec 2.7.
func TestVexAsLegacyOff(t *testing.T) {
	off := func(c *profile.Config) { c.Step.VexAsLegacy = false }
	for _, b := range []string{"c5 f8 77", "c5 f8 58 c1", "c5 f9 fa c1"} {
		s, err := Build(code(t, b), testAt, testSlot, false, kernel(t, "5.10", off))
		require.NoError(t, err)
		require.Equal(t, EmulateNone, s.Emulation.Kind)
		require.False(t, s.Boosted)
	}
	s, err := Build(code(t, "c5 f8 77"), testAt, testSlot, false, kernel(t, "5.10"))
	require.NoError(t, err)
	require.Equal(t, "kprobe_emulate_jcc", s.Emulation.String())
}

// FuzzBuild: whatever the bytes, a slot is the copy and at most a jump or an
// int3 after it, or there is a rule that refuses.
func FuzzBuild(f *testing.F) {
	for _, s := range []string{"90", "c5f877", "488b0510000000", "62", "e801020304", "0f0b78656e90"} {
		f.Add(unhex(f, s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		v := &fakeView{base: testAt, code: b}
		for _, name := range profile.Names() {
			for _, post := range []bool{false, true} {
				checkSlot(t, v, post, kernel(t, name))
			}
		}
	})
}

func checkSlot(t *testing.T, v *fakeView, post bool, c *profile.Config) {
	s, err := Build(v, testAt, testSlot, post, c)
	if err != nil {
		var e *Error
		require.ErrorAs(t, err, &e)
		require.NotZero(t, e.Rule.Errno())
		return
	}
	require.Equal(t, v.code[0], s.Opcode)
	switch end := s.Bytes[s.InsnLen:s.Len]; len(end) {
	case 0:
		require.True(t, c.Step.TrapFlag)
	case 1:
		require.EqualValues(t, x86.Int3, end[0])
	default:
		require.Len(t, end, x86.Rel32Size)
		require.True(t, s.Boosted)
	}
}

func BenchmarkBuild(b *testing.B) {
	v, c := code(b, "48 8b 05 10 00 00 00"), kernel(b, "6.1")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Build(v, testAt, testSlot, false, c); err != nil {
			b.Fatal(err)
		}
	}
}
