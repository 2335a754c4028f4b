package kimage

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/kimage/internal/infer"
	"kprobelab/x86"
)

// Rule: a kernel that continues, without spectre_v2 on its command line, at the same place
// as without mitigations does nothing about spectre_v2; a kernel that continues elsewhere,
// or there with another number, does something.
func TestMitigationOptions(t *testing.T) {
	const (
		find    = uint64(testText + 0x200)
		text    = uint64(testText + 0x300) // "spectre_v2"
		without = 0xc0                     // where the function goes on without mitigations
		jne     = "84c0 0f8500000000"      // test %al,%al; jne without
		load    = "48c7c600000000"         // mov $text,%rsi
		call    = "e800000000 89c5 85c0"   // call cmdline_find_option; mov %eax,%ebp; test %eax,%eax
		js      = "0f8800000000"
	)
	for name, c := range map[string]struct {
		release, between string
		to               int
		v1               byte
		want             []string
	}{
		"nothing":             {"6.14.0", "", without, 1, []string{optionSpectreV2}},
		"chosen_elsewhere":    {"6.14.0", "", without + 16, 1, nil},
		"chosen_by_a_number":  {"6.14.0", "bb01000000", without, 1, nil},
		"by_a_late_register":  {"6.14.0", "41bc01000000", without, 1, nil},
		"neither":             {"6.14.0", "", without, 0, []string{optionSpectreV1, optionSpectreV2}},
		"a_release_before_it": {"6.10.0", "", without, 1, nil},
		"a_flag_of_clang":     {"6.14.0 (a@b) (Debian clang version 19.1.7, GNU ld) #1 SMP", "", without, 0, []string{optionSpectreV2}},
		"gcc":                 {"6.14.0 (a@b) (gcc (Debian 12.2.0) 12.2.0, GNU ld) #1 SMP", "", without, 0, []string{optionSpectreV1, optionSpectreV2}},
	} {
		t.Run(name, func(t *testing.T) {
			code := make([]byte, 0x600)
			at := beforeCall
			put := func(hex string, field, value int) {
				b := fromHex(t, hex)
				le.PutUint32(b[field:], uint32(value))
				at += copy(code[at:], b)
			}
			put(jne, 4, without-(at+8))
			put(load, 3, int(text&0xffffffff))
			put(call, 1, 0x200-(at+5))
			at += copy(code[at:], fromHex(t, c.between))
			put(js, 2, c.to-(at+6))
			copy(code[0x300:], "spectre_v2\x00")
			code[0x400] = c.v1
			img := tableImage(t, code, testSection{name: ".rodata", data: append([]byte("Linux version "+c.release), 0)})
			img.index.setImage([]Symbol{
				{Name: "cpu_select_mitigations", Addr: testText}, {Name: "cmdline_find_option", Addr: x86.Addr(find)},
				{Name: "spectre_v1_mitigation", Addr: testText + 0x400}, {Name: "_end", Addr: testText + 0x500},
			}, func(x86.Addr) x86.Addr { return testText + 0x600 })
			var got []string
			img.mitigationOptions(infer.New(inside{img}, &img.facts, infer.Configuration{}))
			for _, option := range []string{optionSpectreV1, optionSpectreV2} {
				if img.without(option) {
					got = append(got, option)
				}
			}
			slices.Sort(got)
			require.Equal(t, c.want, got)
		})
	}
}

// TestMitigationsAreDecidedAsAllElse: cpu_mitigations counts before the configuration, which is
// kept if it differs, and decides alone if the image has no such variable.
func TestMitigationsAreDecidedAsAllElse(t *testing.T) {
	for name, c := range map[string]struct {
		variable byte
		config   string
		off      bool
		against  int
	}{
		"off":              {0, "", true, 0},
		"automatic":        {1, "", false, 0},
		"without_smt":      {2, "y", false, 0},
		"both_off":         {0, "n", true, 0},
		"config_disagrees": {0, "y", true, 1},
		"image_disagrees":  {1, "n", false, 1},
		"config_alone":     {0xff, "n", true, 0},
		"neither":          {0xff, "", false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			code := make([]byte, 0x600)
			code[0x400] = c.variable
			img := tableImage(t, code)
			symbols := []Symbol{{Name: "_end", Addr: testText + 0x500}}
			if c.variable != 0xff {
				symbols = append(symbols, Symbol{Name: "cpu_mitigations", Addr: testText + 0x400})
			}
			img.index.setImage(symbols, func(x86.Addr) x86.Addr { return testText + 0x600 })
			config := infer.Configuration{From: "config"}
			if c.config != "" {
				config.Options = map[string]string{optionMitigations: c.config}
			}
			img.mitigationOptions(infer.New(inside{img}, &img.facts, config))
			require.Equal(t, c.off, img.without(optionMitigations))
			require.Len(t, img.Fact(optionMitigations).Against, c.against)
		})
	}
}

// Rule: a thunk's symbol does not tell that the kernel uses the thunk. A kernel that can return by thunks
// has srso_return_thunk with or without SRSO, and without ITS an its_return_thunk that does nothing.
// The message about what was not compiled in decides, and the thunks of indirect branches for ITS.
func TestThunksThatAreNotUsed(t *testing.T) {
	const srso, its = "srso_return_thunk", itsReturnThunk
	for name, c := range map[string]struct {
		option  string
		symbols []string
		text    string
		want    string
	}{
		"srso":                   {optionSRSO, []string{srso}, "", "y"},
		"srso_is_in":             {optionSRSO, []string{srso}, "kernel not compiled with CPU_UNRET_ENTRY.\n", "y"},
		"srso_of_5.10_left_out":  {optionSRSO, []string{srso}, "WARNING: kernel not compiled with CPU_SRSO.\n", "n"},
		"srso_of_6.12_left_out":  {optionSRSO, []string{srso}, "WARNING: kernel not compiled with MITIGATION_SRSO.\n", "n"},
		"srso_and_more":          {optionSRSO, []string{srso}, "kernel not compiled with MITIGATION_SRSO_ALIAS.\n", "y"},
		"ibpb_at_entry_left_out": {optionIBPBEntry, nil, "kernel not compiled with CPU_IBPB_ENTRY.\n", "n"},
		"ibpb_at_entry":          {optionIBPBEntry, nil, "", ""},
		"unret_left_out":         {optionUnret, nil, "kernel not compiled with MITIGATION_UNRET_ENTRY.\n", "n"},
		"its":                    {optionITS, []string{its, "__x86_indirect_its_thunk_array"}, "", "y"},
		"its_left_out":           {optionITS, []string{its}, "", "n"},
		"its_not_known":          {optionITS, nil, "", "n"},
	} {
		t.Run(name, func(t *testing.T) {
			img := tableImage(t, make([]byte, 0x1000), testSection{name: ".rodata", data: []byte("\x00\x013" + c.text + "\x00")})
			var symbols []Symbol
			for i, s := range append(slices.Clone(everyKernels), c.symbols...) {
				symbols = append(symbols, Symbol{Name: s, Addr: testText + x86.Addr(0x20*i), Type: 't'})
			}
			img.index.setImage(symbols, func(x86.Addr) x86.Addr { return testText + 0x1000 })
			img.kind = KindKernel
			img.mitigationOptions(infer.New(inside{img}, &img.facts, infer.Configuration{}))
			require.Equal(t, c.want, img.facts.Value(c.option))
			if c.want != "" {
				require.Empty(t, img.Fact(c.option).Against)
			}
		})
	}
}

// Rule: a processor's claims count as far as the kernel knows them. If programs may choose the base
// of GS, which the entry code's alternatives tell, or a release from 5.9 on, SMAP alone does not
// help against swapgs; and a kernel that does not know that AMD's processors restrict branches by
// themselves has retpolines there.
func TestFeaturesThatTheKernelKnows(t *testing.T) {
	const entry, branches = "swapgs", "branches"
	for name, c := range map[string]struct {
		what, release, text, cpu string
		flags                    []string
		asks                     feature
		want                     bool
	}{
		"gs_before_5.9":             {entry, "5.4.286", "", "EPYC", nil, featPTI, false},
		"gs_of_5.4_that_took_it":    {entry, "5.4.286", "", "EPYC", nil, featFSGSBASE, true},
		"gs_of_5.17":                {entry, "5.17.0", "", "EPYC", nil, featFSGSBASE, true},
		"gs_without_alternatives":   {entry, "5.17.0", "", "EPYC", nil, 0, true},
		"gs_without_them_in_5.4":    {entry, "5.4.286", "", "EPYC", nil, 0, false},
		"no_smap":                   {entry, "5.4.286", "", "EPYC,-smap", nil, featPTI, true},
		"intel_restricts":           {branches, "5.4.1", "Mitigation: Enhanced IBRS", "Haswell", []string{"ibrs_enhanced"}, featPTI, false},
		"intel_before_4.20":         {branches, "4.14.67", "Mitigation: Full generic retpoline", "Haswell", []string{"ibrs_enhanced"}, featPTI, true},
		"amd_restricts":             {branches, "6.3.8", "Mitigation: Enhanced / Automatic IBRS", "EPYC", []string{"ibrs_enhanced", "autoibrs"}, featPTI, false},
		"amd_before_6.3":            {branches, "6.1.0", "Mitigation: Enhanced IBRS", "EPYC", []string{"ibrs_enhanced", "autoibrs"}, featPTI, true},
		"nobody_restricts_branches": {branches, "6.3.8", "Mitigation: Enhanced / Automatic IBRS", "EPYC", nil, featPTI, true},
	} {
		t.Run(name, func(t *testing.T) {
			alternatives := testSection{name: ".altinstructions"}
			if c.asks != 0 {
				alternatives.data = make([]byte, 12)
				le.PutUint32(alternatives.data, uint32(x86.Addr(testText).Sub(testTable)))
				le.PutUint16(alternatives.data[8:], uint16(c.asks))
				alternatives.data[10] = 2
			}
			img := tableImage(t, make([]byte, 0x400), alternatives,
				testSection{name: ".rodata", data: []byte("Linux version " + c.release + "\x00" + c.text + "\x00")})
			img.index.setImage([]Symbol{{Name: "__x86_indirect_thunk_rax", Addr: testText, Type: 'T'}, {Name: "_end", Addr: testText + 0x300}},
				func(x86.Addr) x86.Addr { return testText + 0x400 })
			cpu, err := parseCPU(c.cpu, func(string) bool { return true }, func() []string { return nil })
			require.NoError(t, err)
			cpu = cpu.Clone()
			for _, f := range c.flags {
				cpu.Flags[f] = true
			}
			has := img.features(cpu).has
			got := has[featSwapgs]
			if c.what == branches {
				got = has[img.retpolineFeature()]
			}
			require.Equal(t, c.want, got)
		})
	}
}

// Rule: entries of the table of alternatives that lie nowhere are no alternatives, when the first facts
// are looked for, too.
func TestAlternativesThatLieNowhere(t *testing.T) {
	for name, data := range map[string][]byte{
		"one": make([]byte, 12), "cut_off": make([]byte, 7), "many": make([]byte, 14*100), "none": {},
	} {
		t.Run(name, func(t *testing.T) {
			img := tableImage(t, make([]byte, 0x400), testSection{name: ".altinstructions", data: data},
				testSection{name: ".rodata", data: []byte("Linux version 5.4.286\x00")})
			list, _ := tableOwner{img: img}.alternatives()
			require.Empty(t, list)
		})
	}
}
