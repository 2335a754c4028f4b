package kimage

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/kimage/evidence"
	"kprobelab/kimage/internal/patch"
	"kprobelab/kimage/internal/processor"
	"kprobelab/x86"
)

// formsOf are the forms of a made image with that release, data, and functions.
func formsOf(t *testing.T, release string, data []byte, functions map[string][]byte, opts ...string) *bootPatcher {
	t.Helper()
	text := bytes.Repeat([]byte{0x90}, 0x1000)
	site := make([]byte, 4)
	le.PutUint32(site, uint32(x86.Addr(testText).Sub(testTable)))
	sections := []testSection{
		{name: ".rodata", data: slices.Concat([]byte("Linux version "+release+" (x@y) (gcc) #1 SMP\n\x00"), data)},
		{name: ".retpoline_sites", data: site},
	}
	symbols := []Symbol{{Name: "__static_call_return0", Addr: testText + 0x10, Type: 't'}}
	at := x86.Addr(testText + 0x100)
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for n := range functions {
			if !yield(n) {
				return
			}
		}
	}) {
		copy(text[at-testText:], functions[name])
		symbols = append(symbols, Symbol{Name: name, Addr: at, Type: 't'})
		at += 0x40
	}
	symbols = append(symbols, Symbol{Name: "the_end", Addr: at, Type: 't'})
	img := tableImage(t, text, sections...)
	img.kind = KindKernel
	img.index.setImage(symbols, func(x86.Addr) x86.Addr { return testText + 0x1000 })
	cpu := processor.Named(DefaultCPU)
	p := &bootPatcher{img: img, cpu: cpu, feats: &cpuFeatures{has: map[feature]bool{}, retpoline: featRetpoline}}
	p.decideForms()
	return p
}

func table(longest int) []byte { return bytes.Join(patch.Nopl[1:longest+1], nil) }

// Rule: the forms that a kernel writes follow from its own table and code, and from its release
// only if these do not tell. A fact has the deciding evidence, and the contrary evidence.
func TestFormsByTheImage(t *testing.T) {
	int3 := []byte{0xc6, 0x04, 0x07, 0xcc} // movb $0xcc,(%rdi,%rax)
	ret := []byte{0xc3}
	for name, c := range map[string]struct {
		release   string
		data      []byte
		functions map[string][]byte
		longest   int
		relocates, joins, int3After,
		prefixes bool
		zero     []byte
		from     map[string]evidence.Source
		disputed []string
	}{
		"6.3_with_flags_and_the_older_patcher": {"6.3.8", table(8), map[string][]byte{"apply_retpolines": int3}, 8, false, false, true, false, xor5rax,
			map[string]evidence.Source{factNops: evidence.Coded, factAlternatives: evidence.Coded, factIndirect: evidence.Coded}, nil},
		"6.4_of_a_vendor_with_6.5's": {"6.4.1", table(11), map[string][]byte{"apply_relocation": ret, "__optimize_nops.isra.0": ret, "apply_retpolines": int3}, 11, true, true, true, false, xor5rax,
			map[string]evidence.Source{factAlternatives: evidence.Symbolic, factJoinedJumps: evidence.Symbolic}, []string{factAlternatives}},
		"6.5": {"6.5.0", table(11), map[string][]byte{"apply_relocation": ret, "__optimize_nops": ret, "apply_retpolines": int3}, 11, true, true, true, false, xor5rax, nil, nil},
		"6.12": {"6.12.9", table(11), map[string][]byte{"__apply_relocation": ret, "apply_retpolines": int3}, 11, true, false, true, false, xor5rax,
			map[string]evidence.Source{factJoinedJumps: evidence.Symbolic}, nil},
		"6.13_without_a_table":  {"6.13.2", nil, nil, 11, true, false, true, false, xor5rax, map[string]evidence.Source{factNops: evidence.Dated, factAlternatives: evidence.Dated, factIndirect: evidence.Dated}, nil},
		"6.18":                  {"6.18.1", table(11), map[string][]byte{"__apply_relocation": ret}, 11, true, false, false, true, xor5rax, nil, nil},
		"5.17":                  {"5.17.0", slices.Concat(table(8), xor5raxOlder), map[string][]byte{"apply_retpolines": ret}, 8, false, false, false, false, xor5raxOlder, map[string]evidence.Source{factZero: evidence.Coded, factIndirect: evidence.Coded}, nil},
		"5.17.4_took_the_zero":  {"5.17.4", slices.Concat(table(8), xor5rax), map[string][]byte{"apply_retpolines": ret}, 8, false, false, false, false, xor5rax, map[string]evidence.Source{factZero: evidence.Coded}, []string{factZero}},
		"5.15_took_the_int3":    {"5.15.60", table(8), map[string][]byte{"patch_retpoline": int3, "apply_retpolines": ret}, 8, false, false, true, false, xor5raxOlder, map[string]evidence.Source{factZero: evidence.Dated, factIndirect: evidence.Coded}, []string{factIndirect}},
		"zero_in_the_validator": {"5.17.1", slices.Concat(xor5rax, xor5raxOlder), map[string][]byte{"__static_call_validate": slices.Concat([]byte{0x81, 0x3f}, xor5raxOlder[:4])}, 8, false, false, false, false, xor5raxOlder, map[string]evidence.Source{factZero: evidence.Coded}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := formsOf(t, c.release, c.data, c.functions)
			require.Len(t, p.forms.Nops.Forms, c.longest+1)
			require.Equal(t, c.longest > 8, p.forms.Nops.JumpOver)
			require.Equal(t, c.relocates, p.forms.Relocates)
			require.Equal(t, c.joins, p.forms.JoinsJumps)
			require.Equal(t, c.int3After, p.forms.Int3AfterJump)
			require.Equal(t, c.prefixes, p.forms.Prefixes)
			require.Equal(t, c.zero, p.forms.Zero)
			for name, from := range c.from {
				require.Equal(t, from, p.img.Fact(name).From, name)
			}
			var disputed []string
			for _, f := range p.img.Facts() {
				if len(f.Against) == 0 {
					continue
				}
				disputed = append(disputed, f.Name)
			}
			require.Equal(t, c.disputed, disputed)
		})
	}
}

// Rule: with AMD's retpolines an lfence and an indirect branch replace a branch to a thunk, if they
// fit; the bytes after them are filled as the release fills them.
func TestRetpolineFormsByRelease(t *testing.T) {
	older := patchForms{Forms: patch.Forms{Nops: patch.NopsFor(false, false, true)}}
	later := patchForms{Forms: patch.Forms{Nops: patch.NopsFor(false, true, true), Relocates: true, Prefixes: true}}
	for name, c := range map[string]struct {
		forms        patchForms
		number       feature
		has          []feature
		before, want string
	}{
		"lfence_call":          {older, featKernelIBRS, []feature{featKernelIBRS, featKernelIBRS + 1}, "e8fb010000", "0faee8ffd0"},
		"lfence_prefixed_r8":   {older, featKernelIBRS, []feature{featKernelIBRS, featKernelIBRS + 1}, "2ee8fa020000", "0faee841ffd0"},
		"lfence_does_not_fit":  {older, featKernelIBRS, []feature{featKernelIBRS, featKernelIBRS + 1}, "e8fb020000", "e8fb020000"},
		"lfence_jcc_no_room":   {older, featKernelIBRS, []feature{featKernelIBRS, featKernelIBRS + 1}, "0f84fa010000", "0f84fa010000"},
		"retpolines_of_5.17":   {older, featKernelIBRS, []feature{featKernelIBRS}, "e8fb010000", "e8fb010000"},
		"not_5.17's_number":    {older, featKernelIBRS, []feature{featRetpoline}, "e8fb010000", "ffd00f1f00"},
		"no_int3_in_5.17":      {older, featKernelIBRS, nil, "e9fb010000", "ffe00f1f00"},
		"prefixed_call":        {later, featRetpoline, nil, "e8fb010000", "2e2e2effd0"},
		"prefixed_call_r8":     {later, featRetpoline, nil, "2ee8fa020000", "2e2e2e41ffd0"},
		"jump_filled_by_int3":  {later, featRetpoline, nil, "e9fb010000", "ffe0cccccc"},
		"jcc_filled_by_int3":   {later, featRetpoline, nil, "0f84fa010000", "7504ffe0cccc"},
		"retpolines_of_6.18":   {later, featRetpoline, []feature{featRetpoline}, "e9fb010000", "e9fb010000"},
		"lfence_call_of_6.18":  {later, featRetpoline, []feature{featRetpoline, featRetpoline + 1}, "e8fb010000", "0faee8ffd0"},
		"lfence_jump_has_room": {later, featRetpoline, []feature{featRetpoline, featRetpoline + 1}, "2ee9fa010000", "0faee8ffe0cc"},
	} {
		t.Run(name, func(t *testing.T) {
			text := make([]byte, 0x400)
			code := fromHex(t, c.before)
			copy(text, code)
			site := make([]byte, 4)
			le.PutUint32(site, uint32(x86.Addr(testText).Sub(testTable)))
			img := tableImage(t, text, testSection{name: ".retpoline_sites", data: site})
			img.index.setImage([]Symbol{
				{Name: indirectThunk + "rax", Addr: testText + 0x200}, {Name: indirectThunk + "r8", Addr: testText + 0x300},
			}, func(x86.Addr) x86.Addr { return testText + 0x400 })
			p := &bootPatcher{img: img, feats: &cpuFeatures{has: map[feature]bool{}, retpoline: c.number}, forms: c.forms}
			for _, f := range c.has {
				p.feats.has[f] = true
			}
			p.retpolines(tableOwner{img: img})
			require.Equal(t, fromHex(t, c.want), img.bytes(testText, len(code)))
		})
	}
}

// Rule: a processor's bugs choose among the thunks that the image has, and an option without which a
// kernel does nothing forbids it.
func TestReturnThunkByTheImage(t *testing.T) {
	for name, c := range map[string]struct {
		cpu       string
		functions []string
		off       []string
		thunk     string
		has, not  []feature
	}{
		"zen_untrain_ret":       {"EPYC", []string{compiledThunk, "zen_untrain_ret"}, nil, compiledThunk, []feature{featRethunk, featUnret}, nil},
		"compiled_alone":        {"EPYC", []string{compiledThunk}, nil, "", nil, []feature{featRethunk}},
		"retbleed_return_thunk": {"EPYC", []string{compiledThunk, "retbleed_return_thunk"}, nil, "retbleed_return_thunk", []feature{featUnret}, nil},
		"without_retbleed":      {"EPYC", []string{compiledThunk, "retbleed_return_thunk"}, []string{optionRetbleed}, "", nil, []feature{featRethunk, featUnret}},
		"without_untraining":    {"EPYC,+ibpb", []string{compiledThunk, "zen_untrain_ret", "entry_ibpb"}, []string{optionUnret}, "", []feature{featEntryIBPB}, []feature{featUnret}},
		"without_both":          {"EPYC,+ibpb", []string{compiledThunk, "zen_untrain_ret", "entry_ibpb"}, []string{optionUnret, optionIBPBEntry}, "", nil, []feature{featEntryIBPB, featUnret}},
		"first_srso":            {"EPYC-Milan", []string{compiledThunk, "zen_untrain_ret", "srso_safe_ret", "srso_safe_ret_alias"}, nil, compiledThunk, []feature{featSRSOAlias}, nil},
		"without_srso":          {"EPYC-Milan", []string{compiledThunk, "srso_alias_return_thunk"}, []string{optionSRSO}, "", nil, []feature{featSRSOAlias}},
		"intel":                 {"Haswell", []string{compiledThunk, "zen_untrain_ret"}, nil, "", nil, []feature{featRethunk}},
	} {
		t.Run(name, func(t *testing.T) {
			f := featuresOf(t, "6.3.0", c.cpu, c.functions, c.off)
			require.Equal(t, c.thunk, f.returnThunk)
			for _, n := range c.has {
				require.True(t, f.has[n], n)
			}
			for _, n := range c.not {
				require.False(t, f.has[n], n)
			}
		})
	}
}

// featuresOf returns the features that the kernel of a made image decides on a processor, with
// options off.
func featuresOf(t *testing.T, release, cpu string, functions, off []string) *cpuFeatures {
	t.Helper()
	img := tableImage(t, make([]byte, 0x1000), testSection{name: ".rodata", data: append([]byte("Linux version "+release), 0)})
	var symbols []Symbol
	for i, name := range functions {
		symbols = append(symbols, Symbol{Name: name, Addr: testText + x86.Addr(0x20*i), Type: 't'})
	}
	img.index.setImage(symbols, func(x86.Addr) x86.Addr { return testText + 0x1000 })
	for _, option := range off {
		img.facts.Set(evidence.Fact{Name: option, Value: "n"})
	}
	m, err := parseCPU(cpu, func(string) bool { return true }, func() []string { return nil })
	require.NoError(t, err)
	return img.features(m)
}

// Rule: without its option, or without the bug, a mitigation is absent; a mitigation that it would
// have replaced is present.
func TestMitigationsThatAreLeftOut(t *testing.T) {
	for name, c := range map[string]struct {
		cpu      string
		off      []string
		has, not []feature
	}{
		"page_tables":               {"Haswell", nil, []feature{featPTI, featSwapgs}, []feature{featSwapgsUser}},
		"without_page_tables":       {"Haswell", []string{optionPTI}, []feature{featSwapgsUser, featSwapgs}, []feature{featPTI}},
		"without_spectre_v1":        {"Haswell", []string{optionSpectreV1, optionPTI}, nil, []feature{featSwapgsUser, featSwapgs}},
		"without_spectre_v2":        {"Haswell", []string{optionSpectreV2}, nil, []feature{featRetpoline, featRSBSwitch}},
		"entry_ibrs":                {"Skylake-Client,+ibrs", nil, []feature{featKernelIBRS}, nil},
		"without_retbleed":          {"Skylake-Client,+ibrs", []string{optionRetbleed}, nil, []feature{featKernelIBRS}},
		"without_ibrs_at_entry":     {"Skylake-Client,+ibrs", []string{optionIBRSEntry}, nil, []feature{featKernelIBRS}},
		"never_what_is_not_a_bug":   {"EPYC", nil, nil, []feature{featPTI, featKernelIBRS}},
		"no_untraining_elsewhere":   {"Haswell", []string{optionUnret}, nil, []feature{featEntryIBPB, featUnret}},
		"returns_in_half_a_line":    {"Cascadelake-Server", nil, []feature{featIndirectITS}, nil},
		"its_without_spectre_v2":    {"Cascadelake-Server", []string{optionSpectreV2}, nil, []feature{featIndirectITS, featRethunk}},
		"its_without_retpolines":    {"Cascadelake-Server", []string{optionRetpoline}, nil, []feature{featIndirectITS, featRethunk}},
		"barrier_needs_a_processor": {"EPYC,-ibpb", []string{optionUnret}, nil, []feature{featEntryIBPB}},
	} {
		t.Run(name, func(t *testing.T) {
			f := featuresOf(t, "6.13.2", c.cpu, []string{indirectThunk + "rax", "entry_ibpb", itsReturnThunk}, c.off)
			for _, n := range c.has {
				require.True(t, f.has[n], n)
			}
			for _, n := range c.not {
				require.False(t, f.has[n], n)
			}
		})
	}
}

// Rule: a tail call of nothing goes to the return thunk if the function that patches returns writes
// static calls again, and is a plain return if only call depth tracking does; the release decides
// if the code cannot be read. A module's is written when the thunk is chosen.
func TestTailCallsOfNothing(t *testing.T) {
	calls := func(functions ...string) map[string][]byte {
		m := map[string][]byte{"static_call_force_reinit": {0xc3}, compiledThunk: {0xc3}}
		for _, f := range functions {
			// Functions stand in the order of their names, the called one last.
			m[f] = append([]byte{0xe8}, le.AppendUint32(nil, uint32(0x40*len(functions)-5))...)
		}
		return m
	}
	silent := calls("callthunks_setup")
	silent["apply_returns"] = []byte{0xc3}
	silent["callthunks_setup"] = []byte{0xe8, 0x3b, 0, 0, 0}
	for name, c := range map[string]struct {
		release   string
		functions map[string][]byte
		again     bool
		from      evidence.Source
		disputed  bool
	}{
		"6.9":                       {"6.9.0", calls("apply_returns"), true, evidence.Coded, false},
		"6.3_by_call_depth_alone":   {"6.3.8", silent, false, evidence.Coded, false},
		"6.6_took_it":               {"6.6.70", calls("apply_returns"), true, evidence.Coded, true},
		"6.9_that_took_it_back":     {"6.9.0", silent, false, evidence.Coded, true},
		"5.17_has_none":             {"5.17.0", nil, false, "", false},
		"6.12_without_the_patcher":  {"6.12.9", calls(), true, evidence.Dated, false},
		"6.3.8_without_the_patcher": {"6.3.8", calls(), false, evidence.Dated, false},
		"6.12_without_its_thunk":    {"6.12.9", map[string][]byte{"static_call_force_reinit": {0xc3}, "apply_returns": {0xc3}}, false, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			p := formsOf(t, c.release, nil, c.functions)
			require.Equal(t, c.again, p.forms.callsAgain)
			f := p.img.Fact(factTailCalls)
			require.Equal(t, c.from, f.From, f.Evidence)
			require.Equal(t, c.disputed, len(f.Against) > 0)
			require.Equal(t, c.again, p.newStaticCalls(tableOwner{img: p.img}).ThunkAt != nil)
			require.NotNil(t, p.newStaticCalls(tableOwner{img: p.img, module: "m"}).ThunkAt)
		})
	}
}
