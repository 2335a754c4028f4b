package uprobes_test

import (
	"encoding/hex"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/profile"
	"kprobelab/uprobes"
	"kprobelab/x86"
)

func analyze(t testing.TB, release, code string, at x86.Addr) uprobes.Analysis {
	b, err := hex.DecodeString(code)
	require.NoError(t, err)
	c, ok := profile.Named(release)
	require.True(t, ok)
	return uprobes.Analyze(b, at, c)
}

// words is an analysis in a few words.
func words(a *uprobes.Analysis) string {
	if a.Errno != 0 {
		return a.Errno.Name()
	}
	s := a.Way.String()
	if a.Way == uprobes.Stepped {
		s += fmt.Sprintf(" %x", int(a.Fixups))
	}
	if a.Optimizable {
		s += ", optimizable"
	}
	if a.Hazard != "" {
		s += ", " + string(a.Hazard)
	}
	return s
}

// Rule: an instruction with a VEX prefix is looked up by its opcode byte alone, so that some
// are taken for jumps, calls, returns and nops. That is so on booted kernels of 6.1 and 7.3.
func TestHazards(t *testing.T) {
	for name, c := range map[string]struct {
		code, release string
		want          uprobes.Hazard
	}{
		"vpor_is_a_jump":              {"c5fdebc1", "6.1", uprobes.SkippedVector},
		"vpor_is_a_jump_still":        {"c5fdebc1", "7.3", uprobes.SkippedVector},
		"vpcmpeqb_is_je":              {"c5fd74c1", "7.3", uprobes.SkippedVector},
		"vzeroupper_is_ja":            {"c5f877", "5.10", uprobes.SkippedVector},
		"vpgatherdd_is_a_nop":         {"c4e26d900408", "6.12", uprobes.SkippedVector},
		"vpgatherdd_is_one_no_more":   {"c4e26d900408", "7.3", ""},
		"nop5_is_a_call":              {"0f1f440000", "6.18", uprobes.NopAsCall},
		"nop10_is_none":               {"662e0f1f840000000000", "7.3", ""},
		"nop5_stays":                  {"0f1f440000", "6.12", ""},
		"vpsubsb_is_a_call":           {"c5fde8c1", "7.3", uprobes.PushedByVector},
		"vcmpps_is_a_return":          {"c5fcc2c101", "6.12", uprobes.LostIP},
		"vpaddb_is_none":              {"c5fdfcc1", "6.1", ""},
		"por_without_VEX":             {"660febc1", "6.1", ""},
		"xchg_r8_is_a_nop":            {"4190", "6.12", uprobes.SkippedExchange},
		"xchg_r8_is_none_any_more":    {"4190", "7.3", ""},
		"rip_with_REX2":               {"d500" + "8b0511000000", "6.12", uprobes.SpoiledREX2},
		"rip_with_REX":                {"488b0511000000", "6.12", ""},
		"syscall_then_ret":            {"0f05c3", "6.1", uprobes.SteppedOn},
		"syscall_then_rip":            {"0f05488905b4250a00", "7.3", uprobes.SteppedOn},
		"syscall_then_call":           {"0f05e800010000", "6.1", uprobes.SteppedOn},
		"syscall_then_jump":           {"0f05eb10", "6.1", ""}, // to the right place, once ip is moved
		"syscall_then_cmp":            {"0f05483d01f0ffff", "6.1", ""},
		"refused_has_none":            {"cc", "6.1", ""},
		"before_the_decoder_knows_it": {"d5008b0511000000", "6.1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := analyze(t, c.release, c.code, 0x401000)
			require.Equal(t, c.want, a.Hazard)
			require.Equal(t, c.want != "", a.Hazard.Means() != "")
		})
	}
}

func TestDecisions(t *testing.T) {
	for name, c := range map[string]struct {
		release, code string
		at            x86.Addr
		want          string
	}{
		"push":                     {"6.1", "55", 0, "emulated as a push"},
		"push_r13":                 {"6.1", "4155", 0, "emulated as a push"},
		"push_with_another_prefix": {"6.1", "4055", 0, "stepped 1"},
		"push_before_4.16":         {"4.14", "55", 0, "stepped 1"},
		"call":                     {"6.1", "e800010000", 0, "emulated as a branch"},
		"call_of_16_bits":          {"6.1", "66e80001", 0, "ENOTSUPP"},
		"call_through_memory":      {"6.1", "ff10", 0, "stepped 2"},
		"jump_through_memory":      {"6.1", "ff20", 0, "stepped 0"},
		"return":                   {"6.1", "c3", 0, "stepped 0"},
		"popf":                     {"6.1", "9d", 0, "stepped 5"},
		"lock":                     {"6.1", "f048ff00", 0, "ENOTSUPP"},
		"cs_prefix":                {"6.1", "2e90", 0, "ENOTSUPP"},
		"int3":                     {"6.1", "cc", 0, "ENOTSUPP"},
		"mov_to_ss":                {"6.1", "8ed0", 0, "ENOTSUPP"},
		"mov_to_ss_in_4.14.43":     {"4.14", "8ed0", 0, "ENOTSUPP"},
		"mov_to_ss_in_4.4":         {"4.4", "8ed0", 0, "stepped 1"},
		"rip_through_rsi":          {"6.1", "488b0511000000", 0, "stepped 9"},
		"rip_through_rdi":          {"6.1", "488b3511000000", 0, "stepped 11"},
		"syscall":                  {"6.1", "0f05", 0, "stepped 1"},
		"nop":                      {"6.1", "90", 0, "emulated as a branch"},
		"nop5_to_6.12":             {"6.12", "0f1f440000", 0, "stepped 1"},
		"nop5_in_6.18":             {"6.18", "0f1f440000", 0, "emulated as a branch, optimizable, NOP5_AS_CALL"},
		"nop5_at_the_page's_end":   {"6.18", "0f1f440000", 0xffb, "emulated as a branch, optimizable, NOP5_AS_CALL"},
		"nop5_over_two_pages":      {"6.18", "0f1f440000", 0xffc, "emulated as a branch"},
		"nop5_in_7.3":              {"7.3", "0f1f440000", 0, "emulated as a branch"},
		"nop10_in_6.18":            {"6.18", "662e0f1f840000000000", 0, "ENOTSUPP"},
		"nop10_in_7.3":             {"7.3", "662e0f1f840000000000", 0, "emulated as a branch, optimizable"},
		"pause_in_6.12":            {"6.12", "f390", 0, "emulated as a branch"},
		"pause_in_7.3":             {"7.3", "f390", 0, "stepped 1"},
		"lea_of_itself_in_7.3":     {"7.3", "488d4000", 0, "emulated as a branch"},
		"lea_with_a_prefix":        {"7.3", "66488d4000", 0, "stepped 1"},
		"not_decoded":              {"6.1", "c5fd0000", 0, "ENOEXEC"},
		"no_uprobes":               {"2.6.18", "90", 0, "ENOSYS"},
		"nothing":                  {"6.1", "", 0, "stepped 1"},
	} {
		t.Run(name, func(t *testing.T) {
			a := analyze(t, c.release, c.code, c.at)
			require.Equal(t, c.want, words(&a))
		})
	}
}

// Rule: whatever the bytes are, the answer is one: a known errno, or a way with a length.
func FuzzAnalyze(f *testing.F) {
	for _, code := range []string{"", "55", "c5fdebc1", "62f17c4810c0", "d5008b0511000000", "668fea7810d11890909090", "f2f2f2f2f2f2f2f2f2f2f2f2f2f2f290"} {
		b, _ := hex.DecodeString(code)
		f.Add(b, uint64(0x401000))
	}
	var rules []*profile.Config
	for _, name := range profile.All() {
		c, _ := profile.Named(name)
		rules = append(rules, c)
	}
	f.Fuzz(func(t *testing.T, code []byte, at uint64) {
		for _, c := range rules {
			a := uprobes.Analyze(code, x86.Addr(at), c)
			if a.Errno != 0 {
				require.Contains(t, []string{"ENOTSUPP", "ENOEXEC", "ENOSYS"}, a.Errno.Name())
				continue
			}
			require.NotZero(t, a.Length)
			require.LessOrEqual(t, a.Length, uprobes.InsnSize)
			require.Less(t, a.Register, 16)
		}
	})
}

func ExampleAnalyze() {
	c, _ := profile.Named("6.12")
	a := uprobes.Analyze([]byte{0xc5, 0xfd, 0xeb, 0xc1}, 0x401000, c) // vpor %ymm1,%ymm0,%ymm0
	fmt.Println(a.Way, a.Hazard)
	// Output: emulated as a branch SKIPPED_VECTOR
}
