package hazard_test

import (
	"cmp"
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"kprobelab/internal/cpumodel"
	"kprobelab/kimage"
	"kprobelab/kprobes/hazard"
	"kprobelab/kprobes/probepoint"
	"kprobelab/kprobes/slot"
	"kprobelab/profile"
	"kprobelab/x86"
)

// TestEachFieldDecides: a kernel has a hazard when its field says so, and not when
// it says otherwise.
func TestEachFieldDecides(t *testing.T) {
	for _, h := range hazard.All() {
		t.Run(string(h.ID), func(t *testing.T) {
			require.NotEmpty(t, h.Sentence)
			require.NotEmpty(t, h.Cause)
			require.NotEmpty(t, h.Mend)
			require.NotEmpty(t, h.Evidence)
			require.Contains(t, hazard.Effects(), h.Effect)
			if h.Field == "" {
				require.Equal(t, "every release", h.Span().String())
				return
			}
			in := 0
			for _, name := range append(profile.All(), "5.15.10") {
				release, ok := profile.ParseVersion(name)
				require.True(t, ok)
				c := profile.ForRelease(release)
				if h.In(c) {
					in++
				}
				if !h.In(c) {
					continue
				}
				was := c.Field(h.Field)
				require.NoError(t, c.SetField(h.Field, map[string]string{"true": "false", "false": "true"}[was]))
				require.False(t, h.In(c), "%s %s", name, was)
			}
			require.Positive(t, in, "no release has it")
		})
	}
}

func TestSpans(t *testing.T) {
	for id, want := range map[hazard.ID]string{
		"CALL_PREFIX":   "from 5.13, mended in 7.3; also from 5.10.190; mended in 7.2.8",
		"CALL_REGISTER": "from 5.13, mended in 6.7; mended in 5.15.147, 6.1.72, 6.6.11",
		"VEX":           "from 5.13 on; also from 5.10.190",
		"MASKING":       "before 4.17; mended in 4.14.43",
		"HALT":          "every release",
	} {
		h, ok := hazard.ByID(id)
		require.True(t, ok)
		require.Equal(t, want, h.Span().String(), string(id))
	}
	_, ok := hazard.ByID("NOTHING")
	require.False(t, ok)
}

// slots is the address of the first slot.
const slots x86.Addr = 0xffffffffc0000000

// at is the answer for the first instruction of the code.
func at(t *testing.T, v view, kernel string) []hazard.Finding {
	t.Helper()
	release, ok := profile.ParseVersion(kernel)
	require.True(t, ok)
	c := profile.ForRelease(release)
	c.Preemption = c.Preemption || v.preempt
	out, err := slot.Build(v, base, slots, false, c)
	require.NoError(t, err)
	place := probepoint.Placement{How: probepoint.HowOf(&out, c), Slot: out}
	return hazard.At(v, base, &place, c)
}

func hexed(t *testing.T, code string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(code, " ", ""))
	require.NoError(t, err)
	return b
}

func TestPoints(t *testing.T) {
	for name, test := range map[string]struct {
		code, kernel string
		want         hazard.ID
		effect       hazard.Effect
		says         string
	}{
		"cs_call_then_mov":               {"2e e8 00 01 00 00 48 89 c3 c3", "6.1", "CALL_PREFIX", hazard.Oops, "returns to f+0x5, where the processor runs 004889: add %cl,-0x77(%rax)"},
		"cs_call_then_lock":              {"2e e8 00 01 00 00 f0 48 0f c1 03 c3", "6.1", "CALL_PREFIX", hazard.WrongRegister, "00f0: add %dh,%al"},
		"cs_call_then_ret":               {"2e e8 00 01 00 00 c3 cc cc cc cc", "6.1", "CALL_PREFIX", hazard.Oops, "00c3: add %al,%bl"},
		"cs_call_then_apx":               {"2e e8 00 01 00 d5 10 89 c3 90 c3 00 c3", "6.1", "CALL_PREFIX", hazard.Oops, "where mov needs APX_F, which the processor does not have"},
		"cs_call_then_jmp":               {"2e e8 00 01 00 00 eb 40 90 c3", "6.1", "CALL_PREFIX", hazard.WrongResult, "00eb: add %ch,%bl"},
		"cs_call_mended":                 {"2e e8 00 01 00 00 48 89 c3 c3", "7.3", "", "", ""},
		"plain_call":                     {"e8 00 01 00 00 48 89 c3 c3", "6.1", "", "", ""},
		"call_register_cuts":             {"ff d0 48 83 c0 01 c3", "5.15.10", "CALL_REGISTER", hazard.WrongResult, "returns to f+0x5 in place of f+0x2"},
		"call_register_cuts_into_memory": {"ff d0 48 89 c3 8b 03 c3", "5.15.10", "CALL_REGISTER", hazard.WrongResult, "what lies between"},
		"call_register_cuts_oops":        {"ff d0 48 83 45 08 01 c3", "5.15.10", "CALL_REGISTER", hazard.Oops, "0801: or %al,(%rcx)"},
		"call_register_skips":            {"ff d0 48 89 c3 c3", "5.15.10", "CALL_REGISTER", hazard.WrongResult, "what lies between is not run"},
		"call_register_mended_in_stable": {"ff d0 48 89 c3 c3", "5.15.148", "", "", ""},
		"jle_mended_in_stable":           {"7e 10 c3", "5.15.64", "", "", ""},
		"call_register_mended":           {"ff d0 48 89 c3 c3", "6.8", "", "", ""},
		"call_rsp":                       {"ff d4 c3", "6.8", "CALL_RSP", hazard.Oops, "8 bytes lower"},
		"jle":                            {"7e 10 c3", "5.15.10", "JLE_JG", hazard.WrongResult, "jle f+0x12 is never taken"},
		"jg_far":                         {"0f 8f 10 00 00 00 c3", "5.15.10", "JLE_JG", hazard.WrongResult, "jg f+0x16 is always taken"},
		"jl":                             {"7c 10 c3", "5.15.10", "", "", ""},
		"loop":                           {"e2 10 c3", "6.1", "LOOP_COUNT", hazard.WrongResult, "goes to f+0x12 once too often"},
		"jrcxz":                          {"e3 10 c3", "6.1", "", "", ""},
		"loop_steps_by_flag":             {"e2 10 c3", "5.8", "", "", ""},
		"ret_imm":                        {"c2 10 00", "6.1", "RET_IMM", hazard.Oops, "16 bytes too low"},
		"ret":                            {"c3", "6.1", "", "", ""},
		"ret_imm_boosted":                {"c2 10 00", "5.10", "", "", ""},
		"lret":                           {"48 cb", "6.1", "FAR_RET", hazard.Oops, "code segment"},
		"vzeroupper":                     {"c5 f8 77 c3", "6.1", "VEX", hazard.WrongResult, "taken for a jump to f+0x3"},
		"vpsubd":                         {"c5 f9 fa c1 c3", "6.1", "VEX", hazard.Hang, "taken for cli"},
		"vcmpps":                         {"c5 f8 c2 c1 00 c3", "6.1", "VEX", hazard.Oops, "taken for ret"},
		"vpsrad":                         {"c5 f1 e2 c2 c3", "6.1", "VEX", hazard.WrongRegister, "rcx is one less"},
		"vpaddd":                         {"c5 f9 fe c1 c3", "6.1", "", "", ""},
		"evex_vprord":                    {"62 f1 7d 08 72 c0 10 c3", "6.12", "VEX", hazard.WrongResult, "taken for a jump to f+0x17"},
		"pushfw":                         {"66 9c c3", "6.1", "FLAGS_16", hazard.Oops, "6 bytes off"},
		"popf":                           {"9d c3", "6.1", "POPF_BITS", hazard.Harmless, "VIF"},
		"pushf":                          {"9c c3", "6.1", "", "", ""},
		"fourteen_bytes":                 {"66 66 66 2e 0f 1f 84 00 00 00 00 00 90 c3", "6.1", "", "", ""},
		"fourteen_bytes_nop":             {"66 66 66 66 66 2e 0f 1f 84 00 00 00 00 00 c3", "6.1", "LAST_INT3", hazard.Oops, "no probe"},
		"hlt":                            {"f4 c3", "6.1", "HALT", hazard.WrongResult, "misses every probe"},
		"mwait":                          {"0f 01 c9 c3", "6.12", "HALT", hazard.Hang, "ecx"},
		"monitor":                        {"0f 01 c8 c3", "6.12", "", "", ""},
		"rep_ret_of_2_6_18":              {"f3 c3", "2.6.18", "PREFIX_FIXUP", hazard.Oops, "moved by the distance"},
		"rep_ret_later":                  {"f3 c3", "5.8", "", "", ""},
		"division_not_in_tables":         {"48 f7 f1 c3", "6.1", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			found := at(t, view{code: append(hexed(t, test.code), make([]byte, 16)...)}, test.kernel)
			if test.want == "" {
				require.Empty(t, found)
				return
			}
			require.Len(t, found, 1)
			require.Equal(t, test.want, found[0].ID)
			require.Equal(t, test.effect, found[0].Effect)
			require.Contains(t, found[0].Says, test.says)
		})
	}
}

// TestLandingOnAnExtension: a call with a prefix returns to its last byte, which begins an
// instruction of an extension: a processor that lacks it faults, another one goes on.
func TestLandingOnAnExtension(t *testing.T) {
	for name, test := range map[string]struct {
		code, insn, lacks, flags string
		effect                   hazard.Effect // where the processor has the extension
	}{
		"avx512":                  {"62 f1 7d 48 fe c1 c3", "vpaddd", "AVX512F", "avx512f", hazard.WrongResult},
		"avx512_of_32_bytes":      {"62 f1 7d 28 fe c1 c3", "vpaddd", "AVX512VL", "avx512f avx512vl", hazard.WrongResult},
		"apx_by_rex2":             {"d5 10 ff c3 90 c3", "inc", "APX_F", "apx", hazard.WrongResult},
		"amx":                     {"c4 e2 63 5e f8 c3", "tdpbssd", "AMX_INT8", "amx_tile amx_int8", hazard.WrongResult},
		"sha":                     {"0f 38 c8 f8 c3", "sha1nexte", "SHA", "sha_ni", hazard.WrongResult},
		"avx":                     {"c5 f9 fe c8 c3", "vpaddd", "AVX", "avx", hazard.WrongResult},
		"bmi2_that_follows":       {"00 c0 c4 e2 7b f7 f8 c3", "", "", "bmi2", hazard.WrongResult},
		"popcnt_without_a_prefix": {"f3 0f b8 f8 c3", "popcnt", "POPCNT", "popcnt", hazard.Oops},
		"tzcnt_is_bsf_elsewhere":  {"f3 0f bc f8 c3", "", "", "bmi1", hazard.WrongResult},
	} {
		t.Run(name, func(t *testing.T) {
			v := view{code: append(hexed(t, "2e e8 00 01 00 "+test.code), make([]byte, 16)...)}
			flags := strings.Fields(test.flags)
			v.on = with(flags[:len(flags)-1]...)
			found := at(t, v, "6.1")
			require.Len(t, found, 1)
			if test.lacks != "" {
				require.Equal(t, hazard.Oops, found[0].Effect)
				require.Contains(t, found[0].Says, "where "+test.insn+" needs "+test.lacks+", which the processor does not have")
			} else {
				require.Contains(t, found[0].Says, "where the processor runs")
			}
			v.on = with(flags...)
			found = at(t, v, "6.1")
			require.Len(t, found, 1)
			require.Equal(t, test.effect, found[0].Effect, found[0].Says)
			require.Contains(t, found[0].Says, "where the processor runs")
		})
	}
}

// TestMovToSS: where nothing refuses it and it is stepped, which without PREEMPTION
// it is not, or only at its first hit (LazyBoost).
func TestMovToSS(t *testing.T) {
	v := view{code: append(hexed(t, "8e d0 c3"), make([]byte, 16)...)}
	require.Empty(t, at(t, v, "4.14.24"))
	require.Len(t, at(t, v, "4.4"), 1)
	v.preempt = true
	for _, kernel := range []string{"4.4", "4.14.24"} {
		found := at(t, v, kernel)
		require.Len(t, found, 1)
		require.Equal(t, hazard.ID("MASKING"), found[0].ID)
	}
}

// TestIdle: hlt after sti waits for an interrupt.
func TestIdle(t *testing.T) {
	v := view{code: append(hexed(t, "f4 c3"), make([]byte, 16)...)}
	for _, kernel := range []string{"6.1", "7.3"} {
		for before, want := range map[byte]hazard.Effect{0xFB: hazard.Hang, 0x90: hazard.WrongResult, 0: hazard.WrongResult} {
			v.before = before
			found := at(t, v, kernel)
			require.Len(t, found, 1)
			require.Equal(t, hazard.ID("HALT"), found[0].ID)
			require.Equal(t, want, found[0].Effect)
		}
	}
}

// TestOtherFaults: a fault other than a memory fault is not caught in the slot, although it would
// be caught at the instruction itself.
func TestOtherFaults(t *testing.T) {
	for name, test := range map[string]struct {
		code string
		view view
		want bool
	}{
		"division_that_is_caught":     {"48 f7 f1", view{exception: true}, true},
		"division_that_is_not_caught": {"48 f7 f1", view{}, false},
		"negation_in_the_table":       {"48 f7 d9", view{exception: true}, false},
		"load_that_is_caught":         {"48 8b 01", view{exception: true}, false},
		"fwait_that_is_caught":        {"9b", view{exception: true}, true},
		"vmread_that_is_caught":       {"0f 78 c1", view{exception: true}, true},
		"warning":                     {"0f 0b", view{bug: true}, true},
		"ud2_of_nobody":               {"0f 0b", view{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			test.view.code = append(hexed(t, test.code), make([]byte, 16)...)
			found := at(t, test.view, "6.1")
			require.Equal(t, test.want, len(found) == 1 && found[0].ID == "OTHER_FAULT", "%v", found)
		})
	}
}

// TestNoHazardWithoutQuirks: with every quirk of the stepping turned off, only HALT
// is left, for any instruction.
func TestNoHazardWithoutQuirks(t *testing.T) {
	quirks := map[string]bool{}
	for _, h := range hazard.All() {
		quirks[h.Field] = true
	}
	rapid.Check(t, func(r *rapid.T) {
		c, _ := profile.Named(rapid.SampledFrom([]string{"5.15", "6.1", "6.12", "7.3"}).Draw(r, "kernel"))
		for name := range quirks {
			if len(name) > 5 && name[:5] == "Step." {
				require.NoError(t, c.SetField(name, "false"))
			}
		}
		code := rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(r, "code")
		v := view{code: code}
		out, err := slot.Build(v, base, slots, false, c)
		if err != nil {
			return
		}
		place := probepoint.Placement{How: probepoint.HowOf(&out, c), Slot: out}
		for _, f := range hazard.At(v, base, &place, c) {
			require.Equal(t, hazard.ID("HALT"), f.ID)
		}
	})
}

const base x86.Addr = 0xffffffff81000000

// view is a function f of some code, with tables as a test wants them.
type view struct {
	// before is the byte before the code, 0 where none can be read.
	before byte
	kimage.View
	code []byte
	// exception: the first instruction has an exception-table entry; bug: a bug-table entry.
	exception, bug bool
	// preempt is the kernel's configuration.
	preempt bool
	// name is the function's, "f" if empty.
	name string
	// on is the processor.
	on kimage.Processor
}

func (v view) CodeAt(at x86.Addr, b []byte) int {
	off := at.Sub(base)
	if off == -1 && v.before != 0 {
		b[0] = v.before
		return 1
	}
	if off < 0 || off >= int64(len(v.code)) {
		return 0
	}
	return copy(b, v.code[off:])
}

func (v view) SymbolAt(at x86.Addr) (kimage.Symbol, bool) {
	return kimage.Symbol{Name: cmp.Or(v.name, "f"), Addr: base, Size: 64, Type: 'T'}, at >= base && at < base+64
}

func (v view) Processor() kimage.Processor {
	if v.on == nil {
		return with()
	}
	return v.on
}

// with is a processor of Intel's with these flags alone.
func with(flags ...string) kimage.Processor {
	p := cpumodel.WithFlags("GenuineIntel", func(flag string) bool { return slices.Contains(flags, flag) })
	return &p
}

func (v view) ExceptionEntry(at x86.Addr) (x86.Addr, bool) {
	return base + 32, v.exception && at == base
}
func (v view) BugEntry(at x86.Addr) bool { return v.bug && at == base }
func (v view) CFITrap(x86.Addr) bool     { return false }
