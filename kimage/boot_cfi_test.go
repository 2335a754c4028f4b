package kimage

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/kimage/evidence"
	"kprobelab/kimage/internal/infer"
	"kprobelab/kimage/internal/processor"
	"kprobelab/x86"
)

const (
	cfiMov  = "41ba78563412"
	cfiRest = "450353f1 7402 0f0b"
	thunked = "2ee8fa010000" // from +14
)

// cfiImage has a check at its beginning, a retpoline's site after it, and a function with a hash at +0x50.
func cfiImage(t *testing.T, caller, preamble, entry string, sites bool) *Image {
	text := make([]byte, 0x400)
	copy(text, fromHex(t, caller+thunked))
	copy(text[0x40:], fromHex(t, preamble))
	copy(text[0x50:], fromHex(t, entry))
	at := x86.Addr(testTable)
	table := func(word x86.Addr) []byte {
		b := appendUint(nil, uint64(word.Sub(at)), 4)
		at += 0x1000
		return b
	}
	tables := []testSection{{name: ".retpoline_sites", data: table(testText + 14)}, {name: ".ibt_endbr_seal", data: table(testText + 0x50)}}
	if sites {
		tables = append(tables, testSection{name: ".cfi_sites", data: table(testText + 0x40)})
	}
	return tableImage(t, text, tables...)
}

// Rule: a kernel that is built for FineIBT rewrites the checks of indirect calls on every boot, each release
// in its way, and one that is not leaves them.
func TestChecksOfIndirectCallsAtBoot(t *testing.T) {
	const (
		hash     = "b844332211" // 16 bytes before the function
		sealed   = "b800000000"
		newCheck = "450353f1 7501 a8d6"
	)
	notTaken := patchForms{rewritesCFI: true, cfiNotTaken: true, sealsCFI: true, sealsPreamblesOnly: true}
	for name, c := range map[string]struct {
		forms                    patchForms
		without                  bool
		caller, preamble, entry  string
		wantCaller, wantPreamble string
	}{
		"stays":                     {patchForms{rewritesCFI: true}, false, cfiMov + cfiRest, hash, "f30f1efa", cfiMov + cfiRest, hash},
		"is_not_taken":              {notTaken, false, cfiMov + cfiRest, hash, "f30f1efa", cfiMov + newCheck, sealed},
		"built_without_FineIBT":     {patchForms{}, true, cfiMov + cfiRest, hash, "f30f1efa", cfiMov + cfiRest, hash},
		"a_caller_that_checks_not":  {notTaken, false, "909090909090" + cfiRest, hash, "f30f1efa", "909090909090" + cfiRest, sealed},
		"a_hash_of_zero":            {notTaken, false, "41ba00000000" + cfiRest, hash, "f30f1efa", "41ba00000000" + cfiRest, sealed},
		"a_seal_takes_the_hash":     {patchForms{rewritesCFI: true, sealsCFI: true}, false, cfiMov + cfiRest, hash, "f30f1efa", cfiMov + cfiRest, sealed},
		"of_no_preamble_too":        {patchForms{rewritesCFI: true, sealsCFI: true}, false, cfiMov + cfiRest, "9090909090", "f30f1efa", cfiMov + cfiRest, "9000000000"},
		"of_preambles_only":         {notTaken, false, cfiMov + cfiRest, "9090909090", "f30f1efa", cfiMov + newCheck, "9090909090"},
		"of_an_entry_without_endbr": {notTaken, false, cfiMov + cfiRest, hash, "55909090", cfiMov + newCheck, sealed},
		"the_hash_in_another_r":     {notTaken, false, cfiMov + cfiRest, "bf44332211", "f30f1efa", cfiMov + newCheck, "bf00000000"},
	} {
		t.Run(name, func(t *testing.T) {
			img := cfiImage(t, c.caller, c.preamble, c.entry, !c.without)
			p := &bootPatcher{img: img, forms: c.forms}
			if c.without {
				p.decideCFI()
			}
			o := tableOwner{img: img}
			p.cfi(o)
			p.seals(o)
			require.Equal(t, fromHex(t, c.wantCaller), img.bytes(testText, 14))
			require.Equal(t, fromHex(t, c.wantPreamble), img.bytes(testText+0x40, 5))
			require.Equal(t, fromHex(t, thunked), img.bytes(testText+14, 6), "the call is the retpolines'")
		})
	}
}

// Rule: the places of the hashes that a boot makes anew are known, and there are none in a kernel without FineIBT.
func TestHashesOfIndirectCalls(t *testing.T) {
	function, caller := CFIHash{Addr: testText + 0x41}, CFIHash{Addr: testText + 2, Negative: true}
	for name, c := range map[string]struct {
		forms    patchForms
		caller   string
		preamble string
		want     []CFIHash
	}{
		"both":                  {patchForms{rewritesCFI: true}, cfiMov, "b844332211", []CFIHash{function, caller}},
		"sealed":                {patchForms{rewritesCFI: true, sealsCFI: true}, cfiMov, "b844332211", []CFIHash{caller}},
		"no_hash_of_a_function": {patchForms{rewritesCFI: true}, cfiMov, "9090909090", []CFIHash{caller}},
		"a_caller_without":      {patchForms{rewritesCFI: true}, "909090909090", "b844332211", []CFIHash{function}},
		"without_FineIBT":       {patchForms{}, cfiMov, "b844332211", nil},
		"by_FineIBT": {patchForms{rewritesCFI: true, fineIBT: &fineIBT{callee: hashedCode{make([]byte, 16), 7}, caller: hashedCode{make([]byte, 14), 2}}},
			cfiMov, "b844332211", []CFIHash{{Addr: testText + 0x47}, {Addr: testText + 2}}},
		"by_FineIBT_without_entry": {patchForms{rewritesCFI: true, fineIBT: &fineIBT{callee: hashedCode{make([]byte, 20), 5}, caller: hashedCode{make([]byte, 14), 1}, entriesOnly: true}},
			cfiMov, "b844332211", []CFIHash{{Addr: testText + 0x41}, {Addr: testText + 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			entry := "f30f1efa"
			if f := c.forms.fineIBT; f != nil && f.entriesOnly {
				entry = "55909090"
			}
			img := cfiImage(t, c.caller+cfiRest, c.preamble, entry, true)
			p := &bootPatcher{img: img, forms: c.forms}
			p.cfi(tableOwner{img: img})
			p.seals(tableOwner{img: img})
			require.ElementsMatch(t, c.want, img.CFIHashes())
		})
	}
}

// Rule: where the processor has IBT, callees check, by the code that the image has for it.
func TestFineIBTByTheImage(t *testing.T) {
	const (
		hash   = "b844332211"
		older  = "f30f1efa 4181ea78563412 7403 0f0b 90" + "41ba78563412 4983eb10 0f1f4000"
		callee = "f30f1efa 2d78563412 2e0f8503000000 0f1f40d6"
		newer  = callee + "b878563412 4d8d5bf0 0f1f440000" + "b878563412 413b43f5 2e4d8d5bf0 75fd 2e41ffd3"
	)
	// The hash of the caller is 0xedcba988's negative.
	for name, c := range map[string]struct {
		flags                 []string
		rodata, entry, branch string
		sealed                bool
		says                  string
		wantCaller, want      string // from testText and from testText + 0x40
	}{
		"older":           {[]string{"ibt"}, older, "f30f1efa", thunked, false, cfiByCallees, "41ba88a9cbed 4983eb10 0f1f4000" + thunked, "f30f1efa 4181ea44332211 7403 0f0b 90 660f1f00"},
		"older_sealed":    {[]string{"ibt"}, older, "f30f1efa", thunked, true, cfiByCallees, "41ba88a9cbed 4983eb10 0f1f4000" + thunked, "660f1f00 4181ea00000000 7403 0f0b 90 660f1f00"},
		"older_no_entry":  {[]string{"ibt"}, older, "55909090", thunked, false, cfiByCallees, "41ba88a9cbed 4983eb10 0f1f4000" + thunked, "f30f1efa 4181ea44332211 7403 0f0b 90 55909090"},
		"newer":           {[]string{"ibt"}, newer, "f30f1efa", thunked, false, cfiByCallees, "b888a9cbed 413b43f5 2e4d8d5bf0 75fd 2e41ffd3", "f30f1efa 2d44332211 2e0f8503000000 0f1f40d6"},
		"newer_jump":      {[]string{"ibt"}, newer, "f30f1efa", "2ee9fa010000", false, cfiByCallees, "b888a9cbed 413b43f5 2e4d8d5bf0 75fd 41ffe3cc", "f30f1efa 2d44332211 2e0f8503000000 0f1f40d6"},
		"newer_sealed":    {[]string{"ibt"}, newer, "f30f1efa", thunked, true, cfiByCallees, "b888a9cbed 413b43f5 2e4d8d5bf0 75fd 2e41ffd3", "0f1f40d6 2d00000000 2e0f8503000000 0f1f40d6"},
		"newer_no_entry":  {[]string{"ibt"}, newer, "55909090", thunked, false, cfiByCallees, "b888a9cbed 413b43f5 2e4d8d5bf0 75fd 2e41ffd3", hash + "0000000000 000000000000 55909090"},
		"with_FRED":       {[]string{"ibt", "fred"}, newer, "f30f1efa", thunked, false, cfiByCallees, "b888a9cbed 4d8d5bf0 0f1f440000" + thunked, "f30f1efa 2d44332211 2e0f8503000000 0f1f40d6"},
		"no_IBT":          {nil, newer, "f30f1efa", thunked, false, cfiStays, cfiMov + cfiRest + thunked, hash + "0000000000 000000000000 f30f1efa"},
		"fixed_by_mode":   {[]string{"ibt", "mode"}, newer, "f30f1efa", thunked, false, cfiStays, cfiMov + cfiRest + thunked, hash + "0000000000 000000000000 f30f1efa"},
		"fixed_by_option": {[]string{"ibt", "option"}, newer, "f30f1efa", thunked, false, cfiStays, cfiMov + cfiRest + thunked, hash + "0000000000 000000000000 f30f1efa"},
		"no_code_of_it":   {[]string{"ibt"}, "00", "f30f1efa", thunked, false, cfiStays, cfiMov + cfiRest + thunked, hash + "0000000000 000000000000 f30f1efa"},
	} {
		t.Run(name, func(t *testing.T) {
			img := cfiImage(t, cfiMov+cfiRest, hash, c.entry, true)
			copy(img.bytes(testText+cfiCaller, 6), fromHex(t, c.branch))
			img.sections = append(img.sections, &Section{Name: ".rodata", Addr: testBase + 0x100000, Data: fromHex(t, c.rodata)})
			img.profile.Resolve.NoplPoison = len(c.rodata) == len(newer)
			p := &bootPatcher{img: img, cpu: &processor.Model{Flags: map[string]bool{}}}
			for _, f := range c.flags {
				switch f {
				case "mode": // cfi_mode is CFI_KCFI
					copy(img.bytes(testText+0x300, 4), []byte{2})
					img.index.setImage([]Symbol{{Name: "cfi_mode", Addr: testText + 0x300, Size: 4}}, func(x86.Addr) x86.Addr { return testText + 0x304 })
				case "option":
					img.facts.Add(evidence.Fact{Name: infer.OptionCFIAuto, Value: "n"})
				default:
					p.cpu.Flags[f] = true
				}
			}
			p.decideCFI()
			require.Equal(t, c.says, img.facts.Value(factCFI))
			p.forms.sealsCFI, p.forms.sealsPreamblesOnly = true, img.profile.Resolve.NoplPoison
			p.cfi(tableOwner{img: img})
			if c.sealed {
				p.seals(tableOwner{img: img})
			}
			want := fromHex(t, c.wantCaller)
			require.Equal(t, want, img.bytes(testText, len(want)))
			want = fromHex(t, c.want)
			require.Equal(t, want, img.bytes(testText+0x40, len(want)))
		})
	}
}

// Rule: the bytes that the image's own code writes decide, not the release.
func TestFormOfChecksByTheImage(t *testing.T) {
	for name, c := range map[string]struct{ code, want string }{
		"in_the_code": {"c744240c7501a8d6", cfiFallsThrough},
		"not_there":   {"c744240c740290d6", cfiStays},
	} {
		t.Run(name, func(t *testing.T) {
			img := cfiImage(t, cfiMov+cfiRest, "b844332211", "f30f1efa", true)
			copy(img.bytes(testText+0x200, 8), fromHex(t, c.code))
			img.sections = append(img.sections, &Section{Name: ".rodata", Addr: testBase + 0x100000, Data: make([]byte, 16)})
			img.index.setImage([]Symbol{{Name: "__apply_fineibt", Addr: testText + 0x200, Size: 0x40}},
				func(x86.Addr) x86.Addr { return testText + 0x400 })
			p := &bootPatcher{img: img, cpu: &processor.Model{}}
			p.decideCFI()
			require.Equal(t, c.want, img.facts.Value(factCFI))
			require.Equal(t, c.want == cfiFallsThrough, p.forms.cfiNotTaken)
		})
	}
}
