package kimage

import (
	"bytes"
	"slices"

	"kprobelab/kimage/internal/opened"
	"kprobelab/kimage/internal/processor"
	"kprobelab/x86"
)

// cpuFeatures holds the features that an image's kernel finds on a processor and
// defines itself (by the kernel's numbers), the processor's bugs, and the
// mitigations that the kernel chooses if the command line says nothing
// (arch/x86/kernel/cpu/bugs.c).
type cpuFeatures struct {
	has map[feature]bool
	// returnThunk is the symbol to which returns jump, "" for plain returns.
	returnThunk string
	// retpoline is the number of X86_FEATURE_RETPOLINE; the next number is that of retpolines
	// made of an lfence and a branch.
	retpoline feature
	// leaks: buffers are cleared on the way to user mode.
	leaks bool
}

// features computes them.
func (img *Image) features(m *processor.Model) *cpuFeatures {
	names := img.featureNames()
	d := &cpuDecision{img: img, m: m.Clone(), out: &cpuFeatures{has: map[feature]bool{featAlways: true}, retpoline: img.retpolineFeature()}}
	for flag := range m.Flags {
		if f, ok := names.flags[flag]; ok {
			d.out.has[f] = true
		}
	}
	d.found()
	for bug := range d.m.Bugs {
		f, known := names.bugs[bug]
		if known {
			d.out.has[f] = true
		} else if len(names.bugs) > 0 {
			// A kernel does nothing about a bug that it does not know.
			delete(d.m.Bugs, bug)
		}
	}
	d.own()
	if !img.without(optionMitigations) {
		for _, decide := range []func(){d.meltdown, d.spectreV1, d.spectreV2, d.branchHistory, d.buffers, d.returns} {
			decide()
		}
	} else {
		delete(d.out.has, featPTI)
	}
	return d.out
}

// says: the text is among the kernel's.
func (img *Image) says(text string) bool { return opened.Says(inside{img}, text) }

// cpuDecision decides about one processor for one image.
type cpuDecision struct {
	img *Image
	m   *processor.Model
	out *cpuFeatures
}

func (d *cpuDecision) set(f feature, on bool) {
	if on {
		d.out.has[f] = true
	}
}

// exists: the image has a symbol, and so the mitigation is compiled in.
func (d *cpuDecision) exists(symbol string) bool {
	_, ok := d.img.symbolAddr(symbol)
	return ok
}

// found takes off the named processors' list of bugs what a kernel finds by a try, and
// does not have under emulation. From 5.16 on, and in stable releases from 2021 on, CPUID
// says whether a null selector clears the segment's base.
func (d *cpuDecision) found() {
	if !d.m.Updated && !d.exists("check_null_seg_clears_base") {
		delete(d.m.Bugs, "null_seg")
	}
}

// own are the features that the vendor's setup defines without a name.
func (d *cpuDecision) own() {
	amd, zen := d.m.IsAMD(), d.m.IsAMD() && d.m.Family >= 23
	b := d.img.banner()
	d.set(featK8, amd)
	d.set(featSyscall32, amd)
	// From 7.0 on it says that 32-bit programs enter fast, by either instruction.
	d.set(featSysenter32, d.m.Vendor == processor.Intel || b.Since(7, 0))
	d.set(featRepGood, d.m.Vendor == processor.Intel && b.Since(6, 16))
	d.set(featOSXSAVE, d.m.Flags["xsave"])
	list, layout := tableOwner{img: d.img}.alternatives()
	// Only AMD's and Hygon's processors order these writes themselves.
	for f := range d.img.fencedMSRs(list) {
		d.set(f, !amd)
	}
	d.set(featZen, zen)
	if zen {
		d.generation()
	}
	d.set(featLSCfgSSBD, amd && d.m.Family >= 21 && d.m.Family <= 23)
	// LFENCE orders RDTSC; the feature moved in 6.3, whose alternatives have
	// another form. Older releases set it on Intel only with SSE2, which all
	// 64-bit processors have.
	if layout == 14 {
		d.set(featLfence63, true)
		return
	}
	// To 5.3 a register of AMD's says whether lfence waits; under emulation it says no.
	byMfence := amd && !d.m.Updated && d.img.fences()
	d.set(featMfence, byMfence)
	d.set(featLfence61, !byMfence)
}

// mfence is the instruction mfence.
var mfence = []byte{0x0f, 0xae, 0xf0}

// fences: the image's alternatives have mfence where lfence does not wait.
func (img *Image) fences() bool {
	list, _ := tableOwner{img: img}.alternatives()
	return slices.ContainsFunc(list, func(a alternative) bool {
		return a.feature == featMfence && bytes.HasPrefix(img.bytes(a.repl, a.replLen), mfence)
	})
}

// zenGenerations are AMD's models by generation (init_amd in 6.9 and later;
// no earlier release's alternatives ask).
var zenGenerations = []struct {
	family, from, to int
	feature          feature
}{
	{0x17, 0x00, 0x2f, feat(11, 31)}, {0x17, 0x50, 0x5f, feat(11, 31)},
	{0x17, 0x30, 0x4f, feat(11, 28)}, {0x17, 0x60, 0x7f, feat(11, 28)}, {0x17, 0x90, 0x91, feat(11, 28)}, {0x17, 0xa0, 0xaf, feat(11, 28)},
	{0x19, 0x00, 0x0f, feat(11, 29)}, {0x19, 0x20, 0x5f, feat(11, 29)},
	{0x19, 0x10, 0x1f, feat(11, 30)}, {0x19, 0x60, 0xaf, feat(11, 30)},
	{0x1a, 0x00, 0x2f, feat(3, 5)}, {0x1a, 0x40, 0x4f, feat(3, 5)}, {0x1a, 0x60, 0x7f, feat(3, 5)},
}

// generation sets the feature of the processor's generation, if the image's
// alternatives have the layout of a release that has such features.
func (d *cpuDecision) generation() {
	if _, layout := (tableOwner{img: d.img}).alternatives(); layout != 14 {
		return
	}
	for _, g := range zenGenerations {
		d.set(g.feature, d.m.Family == g.family && d.m.Number >= g.from && d.m.Number <= g.to)
	}
}

// meltdown separates the page tables.
func (d *cpuDecision) meltdown() {
	delete(d.out.has, featPTI)
	d.set(featPTI, d.m.Bugs["cpu_meltdown"] && !d.img.without(optionPTI))
}

// spectreV1 puts fences after swapgs where a user may have chosen the base of
// GS, or where SMAP does not hold in speculation.
func (d *cpuDecision) spectreV1() {
	smap := d.m.Flags["smap"] && !d.m.Bugs["cpu_meltdown"]
	chosen := d.m.Flags["fsgsbase"] && d.img.letsUsersSetGS()
	if !d.m.Bugs["spectre_v1"] || d.img.without(optionSpectreV1) || smap && !chosen {
		return
	}
	d.set(featSwapgs, true)
	d.set(featSwapgsUser, d.m.Bugs["swapgs"] && !d.out.has[featPTI])
}

// letsUsersSetGS: programs may set any base of GS by an instruction (5.9 and later). Alternatives
// of the entry code then test the feature.
func (img *Image) letsUsersSetGS() bool {
	list, _ := tableOwner{img: img}.alternatives()
	if len(list) == 0 {
		b := img.banner()
		return b.Since(5, 9)
	}
	return slices.ContainsFunc(list, func(a alternative) bool { return a.feature == featFSGSBASE })
}

// retpolineFeature is the number of X86_FEATURE_RETPOLINE, which has moved: to 5.18, and in some
// stable releases, it is another one. The alternatives of a thunk tell: a jump is replaced by a
// retpoline, which begins with a call, or (later) a retpoline by a jump without the feature.
func (img *Image) retpolineFeature() feature {
	if f, ok := img.thunkFeature(); ok {
		return f
	}
	return featRetpoline
}

func (img *Image) thunkFeature() (feature, bool) {
	thunk, ok := img.symbolAddr(indirectThunk + "rax")
	if !ok {
		return 0, false
	}
	list, _ := tableOwner{img: img}.alternatives()
	for _, a := range list {
		if a.addr != thunk {
			continue
		}
		text, repl := img.bytes(a.addr, a.addrLen), img.bytes(a.repl, a.replLen)
		if !a.not && bytes.HasPrefix(text, jmpRAX) && bytes.HasPrefix(repl, []byte{x86.Call32}) ||
			a.not && bytes.HasPrefix(text, []byte{x86.Call32}) && bytes.HasPrefix(repl, jmpRAX) {
			return a.feature, true
		}
	}
	return 0, false
}

// jmpRAX is jmp *%rax.
var jmpRAX = []byte{0xff, 0xe0}

// spectreV2: retpolines, unless the processor restricts indirect branches
// itself, and a return stack that is filled at a context switch.
func (d *cpuDecision) spectreV2() {
	if !d.m.Bugs["spectre_v2"] || d.img.without(optionSpectreV2) {
		return
	}
	f := d.m.Flags
	ibrs := f["ibrs"] && d.m.Vendor == processor.Intel && d.m.Bugs["retbleed"] && !d.img.without(optionRetbleed) && !d.img.without(optionIBRSEntry)
	// A kernel that does not know that the processor restricts them itself has retpolines: of AMD's
	// processors that is since 6.3, of Intel's since 4.20.
	known := "Enhanced"
	if d.m.IsAMD() {
		known = "Automatic IBRS"
	}
	automatic := (f["ibrs_enhanced"] || f["autoibrs"]) && d.img.says(known)
	d.set(featSpecCtrl, f["ibrs"] || f["msr_spec_ctrl"])
	d.set(featUseIBPB, f["ibpb"])
	d.set(featKernelIBRS, ibrs && !automatic)
	d.set(featFirmware, f["ibrs"] && !ibrs && !automatic)
	retpoline := !automatic && !ibrs && d.exists("__x86_indirect_thunk_rax")
	number := d.out.retpoline
	d.set(number, retpoline)
	// To 5.16, and in stable releases to March 2022, AMD's are an lfence and a jump, with the
	// next number.
	d.set(number+1, retpoline && d.m.IsAMD() && d.out.has[featLfence61] && d.img.says("Mitigation: Full AMD retpoline"))
	// Late releases fill it only with retpolines or if they restrict branches at each
	// entry; the others always.
	d.set(featRSBSwitch, retpoline || d.out.has[featKernelIBRS] || !d.img.says("Filling RSB on context switch and VMEXIT"))
}

// branchHistory is cleared at system calls where neither retpolines nor the processor keep a user
// from steering indirect branches by it.
func (d *cpuDecision) branchHistory() {
	if !d.m.Bugs["bhi"] || !d.m.Bugs["spectre_v2"] || d.out.has[d.out.retpoline] ||
		d.m.Flags["bhi_ctrl"] || d.img.without(optionSpectreV2) || d.img.without(optionBHI) {
		return
	}
	list, _ := tableOwner{img: d.img}.alternatives()
	for f := range d.img.clearHistory(list) {
		d.set(f, true)
	}
}

// buffers are cleared on the way to user mode on processors that leak them.
func (d *cpuDecision) buffers() {
	// TAA needs transactions. Where MDS is not done without, it is not either. MMIO alone
	// matters to virtual machines only.
	bug, on := d.m.Bugs, func(option string) bool { return !d.img.without(option) }
	taa := bug["taa"] && d.m.Flags["rtm"]
	leaks := bug["mds"] && on(optionMDS) || taa && (on(optionTAA) || on(optionMDS)) ||
		bug["mmio_stale_data"] && on(optionMMIO) && (bug["mds"] || taa) || bug["rfds"] && on(optionRFDS)
	// From 6.17 on, buffers are cleared for TSA only if the microcode does it.
	b := d.img.banner()
	leaks = leaks || bug["tsa"] && on(optionTSA) && (d.m.Updated || !b.Since(6, 17))
	d.out.leaks = leaks
	list, _ := tableOwner{img: d.img}.alternatives()
	for f := range d.img.clearBuffers(list) {
		d.set(f, leaks)
	}
}

const itsReturnThunk = "its_return_thunk"

// thunkSymbol is a thunk that a kernel may have, and a second symbol that must be there, too ("" if
// none).
type thunkSymbol struct{ thunk, with string }

// returnThunks are the thunks that mitigations choose; a later one overrides.
var returnThunks = []struct {
	// thunks are the symbols that the mitigation makes returns jump to; the first one in the image
	// counts.
	thunks []thunkSymbol
	// bug is the bug that it works around, option its configuration option; from and to bound the
	// families.
	bug, option string
	from, to    int
	amd         bool
	// features are set with it.
	features []feature
}{
	// Retbleed: the return is untrained at each entry. From July 2022 to August 2023 returns
	// stay jumps to the compiler's thunk.
	{[]thunkSymbol{{"retbleed_return_thunk", ""}, {compiledThunk, "zen_untrain_ret"}}, "retbleed", optionUnret, 0x15, 0x18, true, []feature{featRethunk, featUnret}},
	// Indirect target selection: returns in the lower half of a line.
	{[]thunkSymbol{{itsReturnThunk, ""}}, "its", optionITS, 6, 0xff, false, []feature{featRethunk, featIndirectITS}},
	// Speculative return stack overflow; Zen 3 and 4 have a thunk of their own. In the first
	// releases with it, the compiler's thunk has it as an alternative.
	{[]thunkSymbol{{"srso_return_thunk", ""}, {compiledThunk, "srso_safe_ret"}}, "srso", optionSRSO, 0x17, 0x18, true, []feature{featRethunk, featSRSO}},
	{[]thunkSymbol{{"srso_alias_return_thunk", ""}, {compiledThunk, "srso_safe_ret_alias"}}, "srso", optionSRSO, 0x19, 0x19, true, []feature{featRethunk, featUnret, featSRSOAlias}},
	{[]thunkSymbol{{"srso_return_thunk", ""}}, "srso", optionSRSO, 0x1a, 0xff, true, []feature{featRethunk, featUnret, featSRSO}},
}

// compiledThunk is the thunk to which the compiler makes returns jump.
const compiledThunk = "__x86_return_thunk"

// thunkOf returns the first of the thunks that the image has, "" if it has none.
func (d *cpuDecision) thunkOf(list []thunkSymbol) string {
	for _, t := range list {
		if d.exists(t.thunk) && (t.with == "" || d.exists(t.with)) {
			return t.thunk
		}
	}
	return ""
}

// returns decides where returns go.
func (d *cpuDecision) returns() {
	b := d.img.banner()
	for _, t := range returnThunks {
		// From 6.17 on, Zen 1 and 2 without threads count as safe from SRSO.
		if t.bug == "srso" && d.m.Family < 0x19 && !d.m.Threads && b.Since(6, 17) {
			continue
		}
		thunk := d.thunkOf(t.thunks)
		if !d.m.Bugs[t.bug] || d.m.Family < t.from || d.m.Family > t.to || d.m.IsAMD() != t.amd || thunk == "" {
			continue
		}
		if d.img.without(t.option) || t.bug == "retbleed" && d.img.without(optionRetbleed) {
			continue
		}
		// Nothing is done about indirect target selection if nothing is done about spectre_v2, or
		// without retpolines.
		if t.bug == "its" && (d.img.without(optionSpectreV2) || d.img.without(optionRetpoline)) {
			continue
		}
		d.out.returnThunk = thunk
		for _, f := range t.features {
			d.set(f, true)
		}
	}
	d.barrierAtEntry()
}

// barrierAtEntry sets a barrier at each entry for retbleed, if the kernel is built without the code
// that untrains returns.
func (d *cpuDecision) barrierAtEntry() {
	if !d.m.Bugs["retbleed"] || !d.m.IsAMD() || !d.m.Flags["ibpb"] || !d.img.without(optionUnret) ||
		d.img.without(optionIBPBEntry) || d.img.without(optionRetbleed) || !d.exists("entry_ibpb") {
		return
	}
	d.set(featEntryIBPB, true)
}
