package profile

import "slices"

const stepping = "came with Step.TrapFlag's end"

// notNarrowed is the note of a level of a series with the change; earlier levels may have the
// change too.
const notNarrowed = "the level was not narrowed down"

// byTheDay is the note of a level between two releases that were read: it came out on the same day
// as levels of other series.
const byTheDay = "the level is by the day of the other series'"

// steps are the stable releases that took over int3 stepping.
var steps = []Version{{5, 10, 190}}

// padded are the stable releases that took over the rule for int3 padding.
var padded = []Version{{5, 10, 163}, {5, 15, 87}, {6, 0, 18}, {6, 1, 4}}

// callsMended are the stable releases in which a call through a register returns right.
var callsMended = []Version{{5, 15, 147}, {6, 1, 72}, {6, 6, 11}}

// worded are the stable releases that took over the words of the log.
var worded = []Version{{5, 15, 100}}

// hashes are the stable releases that took over the multiplier of hash_64.
var hashes = []Version{{3, 18, 34}, {4, 4, 10}}

// neighbours are the stable releases that took over the rules for neighbours.
var neighbours = []Version{{4, 14, 308}, {4, 19, 276}, {5, 4, 235}, {5, 10, 173}, {5, 15, 99}, {6, 1, 16}, {6, 2, 3}}

// changes is the table of releases. A row that stands later overrides one before it.
var changes = slices.Concat(ruleChanges, tracingChanges, builtChanges)

// ruleChanges date the fields of Config but for Tracing. The dates are from trees of 30 releases
// of Linux 4.18 to 7.3, and from the code and the texts of Debian's images from
// 5.10 to 7.3.
var ruleChanges = []Change{
	{Field: "Decoder.EVEX", From: Version{4, 8, 0}},
	{Field: "Decoder.EmulatePrefix", From: Version{5, 5, 0}, Stable: []Version{{5, 4, 214}}, Note: notNarrowed},
	{Field: "Decoder.Errors", From: Version{5, 13, 0}, Stable: []Version{{5, 10, 133}}},
	{Field: "Decoder.AMX", From: Version{5, 18, 0}},
	{Field: "Decoder.PushIz", From: Version{6, 10, 0}, Stable: []Version{{5, 4, 278}, {5, 10, 219}, {5, 15, 161}, {6, 1, 93}, {6, 6, 33}, {6, 8, 12}, {6, 9, 3}},
		Note: "in 5.4 " + byTheDay},
	{Field: "Decoder.REX2", From: Version{6, 10, 0}},
	{Field: "Decoder.INV64", From: Version{6, 16, 0}, Note: "6.14 has it not, 6.16.12 has"},
	{Field: "Decoder.XOP", From: Version{6, 18, 0}},

	{Field: "Resolve.SymbolNames", From: Version{2, 6, 19}},
	{Field: "Resolve.UnknownEINVAL", From: Version{2, 6, 19}, Until: Version{3, 1, 0}},
	{Field: "Resolve.NeedsSymbol", From: Version{5, 18, 0}},
	{Field: "Resolve.SkipENDBR", From: Version{6, 7, 0}, Option: "CONFIG_X86_KERNEL_IBT",
		Note: "5.18 and later can have it; Debian's 6.1 has not, its 6.12 has"},
	{Field: "Resolve.NoplPoison", From: Version{6, 18, 0}},
	{Field: "Resolve.EntryFlag", From: Version{6, 1, 0}},
	{Field: "Resolve.EntryFlagEarly", From: Version{6, 14, 0}, Note: "6.12 has it not, 7.2 has"},
	{Field: "Resolve.RefuseAmbiguous", From: Version{6, 6, 0}, Stable: uniques, Note: "as Tracing.UniqueSymbols"},

	{Field: "Check.ModulePinned", Until: Version{2, 6, 29}},
	{Field: "Check.ModuleErrno", From: Version{3, 1, 0}},
	{Field: "Check.ModuleGoingFirst", From: Version{6, 14, 0}},
	{Field: "Check.ModuleAskedTwice", From: Version{2, 6, 29}, Until: Version{6, 9, 0}, Stable: []Version{{5, 4, 275}, {5, 10, 216}, {5, 15, 156}, {6, 1, 87}, {6, 6, 28}, {6, 8, 7}}},
	{Field: "Check.JprobeEntry", From: Version{2, 6, 37}, Until: Version{4, 19, 0}, Note: "went with Jprobes"},
	{Field: "Check.Reregistration", From: Version{2, 6, 33}},
	{Field: "Check.ReregistrationWarns", From: Version{5, 12, 0}, Note: "5.10 has it not, 5.15.85 has"},
	{Field: "Check.GateArea", From: Version{6, 0, 0}, Stable: []Version{{5, 4, 213}, {5, 10, 143}, {5, 15, 68}, {5, 19, 9}},
		Note: "the page is no text, so nothing shows"},
	{Field: "Check.JumpLabels", From: Version{2, 6, 37}},
	{Field: "Check.StaticCalls", From: Version{5, 10, 0}},
	{Field: "Check.BugTable", From: Version{5, 4, 0}, Stable: []Version{{4, 14, 147}, {4, 19, 77}}, Note: "the levels follow from the day of the change"},
	{Field: "Check.CFISymbols", From: Version{6, 5, 0}, Stable: []Version{{5, 10, 195}, {5, 15, 132}, {6, 1, 53}}},
	{Field: "Check.CFISwapped", From: Version{6, 5, 0}, Until: Version{6, 11, 0}, Stable: []Version{{6, 6, 46}, {6, 10, 5}},
		Note: "so that the test refuses nothing"},
	{Field: "Check.CFISwapped", From: Version{5, 10, 195}, Until: Version{5, 10, 224}},
	{Field: "Check.CFISwapped", From: Version{5, 15, 132}, Until: Version{5, 15, 165}},
	{Field: "Check.CFISwapped", From: Version{6, 1, 53}, Until: Version{6, 1, 105}},
	{Field: "Check.CFITraps", From: Version{6, 6, 0}},
	{Field: "Check.Boundary", From: Version{2, 6, 33}},
	{Field: "Check.PaddingInt3", From: Version{6, 2, 0}, Stable: padded},
	{Field: "Check.FtraceSites", From: Version{2, 6, 34}},
	{Field: "Check.FtraceSiteMiddle", From: Version{2, 6, 34}, Until: Version{5, 18, 0}, Stable: []Version{{5, 10, 227}, {5, 15, 167}},
		Note: "in 5.15 " + notNarrowed},
	{Field: "Check.ExceptionInsn", From: Version{6, 9, 0}},
	{Field: "Check.BlacklistClones", From: Version{5, 1, 0}, Note: "seen in 5.4.286"},
	{Field: "Check.IRQEntryText", From: Version{5, 1, 0}, Until: Version{5, 8, 0}, Note: "5.4 has it, 5.8 not; the code says"},

	{Field: "Uprobes.Exists", From: Version{3, 5, 0}, Option: "CONFIG_UPROBES"},
	{Field: "Uprobes.EmulatesPush", From: Version{4, 16, 0}},
	{Field: "Uprobes.RefusesMasking", From: Version{4, 17, 0}, Stable: []Version{{4, 14, 43}}, Note: "as Slot.RefuseMasking"},
	{Field: "Uprobes.KnowsNops", From: Version{6, 16, 0}, Until: Version{6, 19, 0}, Note: "6.12 has it not, 6.16.3 and 6.18 have"},
	{Field: "Uprobes.DecodesNops", From: Version{6, 19, 0}},
	{Field: "Uprobes.OptimizesNop5", From: Version{6, 18, 0}, Until: Version{7, 2, 0}},
	{Field: "Uprobes.OptimizesNop10", From: Version{7, 2, 0}},
	{Field: "Uprobes.ReturnCall", From: Version{6, 11, 0}},

	{Field: "Preemption", From: Version{5, 18, 0}, Option: "CONFIG_PREEMPTION", Note: "Debian's choice from 12 on"},
	{Field: "KprobesOnFtrace", From: Version{3, 7, 0}, Option: "CONFIG_KPROBES_ON_FTRACE"},
	{Field: "FtraceArmForgiven", From: Version{6, 14, 0}},
	{Field: "Jprobes", Until: Version{4, 19, 0}, Note: "RHEL's 4.18 has them"},
	{Field: "FaultHandler", Until: Version{5, 14, 0}},
	{Field: "ExceptionTableInHandlers", Until: Version{4, 20, 0}, Note: "4.19.78 has it, 5.4 has not"},
	{Field: "ModuleBase", Value: uint64(0xffffffffa0000000), Until: Version{4, 12, 0}, Option: "CONFIG_RANDOMIZE_BASE"},
	{Field: "ModuleBase", Value: uint64(0xffffffffc0000000), From: Version{4, 12, 0}, Option: "CONFIG_RANDOMIZE_BASE"},
	{Field: "HashMultiplier", Value: uint64(goldenRatioPrime), Until: Version{4, 6, 0}, Stable: hashes},
	{Field: "HashMultiplier", Value: uint64(goldenRatio), From: Version{4, 6, 0}, Stable: hashes,
		Note: "in 3.18 and 4.4 the levels follow from the day of the change; 3.18.9 and 4.4 have it not, 3.18.140 and 4.4.155 have"},
	{Field: "HZ", Value: 250, Option: "CONFIG_HZ"},

	{Field: "Slot.BoostRule", Value: Boost44, From: Version{2, 6, 25}, Until: Version{4, 12, 0}},
	{Field: "Slot.BoostRule", Value: Boost58, From: Version{4, 12, 0}, Until: Version{5, 13, 0}},
	{Field: "Slot.BoostRule", Value: Boost54, From: Version{5, 13, 0}, Until: Version{5, 13, 0},
		Stable: []Version{{4, 14, 233}, {4, 19, 191}, {5, 4, 119}, {5, 10, 37}, {5, 11, 21}, {5, 12, 4}},
		Note:   "stable releases only: the levels follow from the date of the change; 4.19.78 has it not, 5.4.286 has"},
	{Field: "Slot.BoostRule", Value: Boost61, From: Version{5, 13, 0}, Until: Version{6, 9, 0}, Stable: steps},
	{Field: "Slot.BoostRule", Value: Boost612, From: Version{6, 9, 0}},
	{Field: "Slot.BoostDecidedAtBuild", From: Version{5, 13, 0}, Stable: steps, Note: stepping},
	{Field: "Slot.LazyBoost", From: Version{2, 6, 25}, Until: Version{4, 12, 0}, Stable: []Version{{4, 4, 155}}, Note: "in 4.4 " + notNarrowed},
	{Field: "Slot.RefuseInt3", From: Version{3, 4, 0}},
	{Field: "Slot.RefuseMasking", From: Version{4, 17, 0}, Stable: []Version{{4, 14, 43}},
		Note: "4.18 has it; the level of 4.14 follows from the date of the change. Emulated prefixes count from Decoder.EmulatePrefix on"},
	{Field: "Slot.Emulate", From: Version{5, 13, 0}, Stable: steps, Note: stepping},

	{Field: "Step.TrapFlag", Until: Version{5, 13, 0}, Stable: steps,
		Note: "with it the rules of slots and of stepping"},
	{Field: "Step.FixupSkipsREXOnly", Until: Version{2, 6, 36}},
	{Field: "Step.PostBeforeFixup", Until: Version{2, 6, 26}},
	{Field: "Step.Int3IsNMI", From: Version{5, 8, 0}},
	{Field: "Step.FtraceIRQsOff", From: Version{3, 7, 0}, Until: Version{4, 15, 0}},
	{Field: "Step.VanishedInt3", Until: Version{6, 3, 0}, Note: "6.2.1 has it, 6.3.8 has not"},
	{Field: "Step.HandlerResets", Until: Version{4, 19, 0}},
	{Field: "Step.NestedPostDisarms", Until: Version{2, 6, 33}},
	{Field: "Step.NestedReenterBUG", From: Version{2, 6, 33}},
	{Field: "Step.LoopTestsBeforeDecrement", From: Version{5, 13, 0}, Stable: steps, Note: stepping},
	{Field: "Step.Loop32KeepsUpper", From: Version{5, 13, 0}, Stable: steps, Note: stepping},
	{Field: "Step.RetIgnoresImm", From: Version{5, 13, 0}, Stable: steps, Note: stepping},
	{Field: "Step.VexAsLegacy", From: Version{5, 13, 0}, Stable: steps, Note: stepping},
	{Field: "Step.FlagsMove8Bytes", From: Version{5, 13, 0}, Stable: steps, Note: stepping},
	{Field: "Step.PopfTakesAll", From: Version{5, 13, 0}, Stable: steps, Note: stepping},
	{Field: "Step.CallReturnsPast5", From: Version{5, 13, 0}, Until: Version{7, 3, 0}, Stable: append([]Version{{7, 2, 8}}, steps...)},
	{Field: "Step.CallIndirectReturnsPast5", From: Version{5, 13, 0}, Until: Version{6, 7, 0}, Stable: callsMended},
	{Field: "Step.CallIndirectReturnsPast5", From: Version{5, 10, 190}, Until: Version{5, 10, 208}},
	{Field: "Step.CallPushesFirst", From: Version{6, 7, 0}, Stable: append([]Version{{5, 10, 208}}, callsMended...), Note: "came with the end of Step.CallIndirectReturnsPast5"},
	{Field: "Step.JLENeedsBoth", From: Version{5, 13, 0}, Until: Version{6, 0, 0}, Stable: []Version{{5, 15, 63}, {5, 19, 4}}},
	{Field: "Step.OneDebugStack", From: Version{5, 8, 0}, Note: "5.7 has three stacks for #DB; the release follows from the date of the change"},
	{Field: "Step.FarRetIsNear", From: Version{5, 13, 0}, Stable: steps, Note: stepping},
	{Field: "Step.LastInt3Missed", From: Version{5, 13, 0}, Stable: steps, Note: stepping},
	{Field: "Step.BoostedFaultInSlot", From: Version{2, 6, 25}},
	{Field: "Step.PageFaultsOnly"},

	{Field: "Ftrace.PostCleared", From: Version{5, 4, 0}, Until: Version{6, 1, 0}, Stable: []Version{{5, 4, 225}, {5, 10, 156}, {5, 15, 80}, {6, 0, 10}}},
	{Field: "Ftrace.KilledFails", From: Version{3, 7, 0}, Until: Version{7, 0, 0}, Stable: []Version{{6, 6, 130}, {6, 12, 78}, {6, 18, 19}, {6, 19, 9}},
		Note: "from the text of CVE-2026-43409; whether older series took it over is not known"},
	{Field: "Kret.EntryOnly", From: Version{4, 12, 0}},
	{Field: "Kret.EntryErrno", From: Version{5, 11, 0}, Stable: []Version{{4, 19, 175}, {5, 4, 97}, {5, 10, 15}},
		Note: "5.4.286 and 5.10.218 have it, 4.19.78 has not; where in their series it came is not known from trees"},
	{Field: "Kret.LateReregistration", Until: Version{5, 11, 0}, Stable: []Version{{4, 19, 175}, {5, 4, 97}, {5, 10, 15}}},
	{Field: "Kret.MaxDataSize", Value: 4096, From: Version{5, 16, 0}, Stable: []Version{{4, 19, 220}, {5, 4, 164}, {5, 10, 84}, {5, 15, 7}},
		Note: "5.4.286, 5.10.218 and 5.15.85 have it, 4.19.78 has not; where in their series it came is not known from trees"},
	{Field: "Kret.BlacklistSwitchTo", From: Version{2, 6, 24}},
	{Field: "Kret.DefaultMaxActive", Value: MaxActiveNRCPUs, Until: Version{2, 6, 33}},
	{Field: "Kret.DefaultMaxActive", Value: MaxActiveCPUs, From: Version{2, 6, 33}, Until: Version{6, 2, 0}, Stable: []Version{{6, 0, 17}, {6, 1, 3}}, Note: "MaxActivePossible with PREEMPTION"},
	{Field: "Kret.DefaultMaxActive", Value: MaxActivePossible, From: Version{6, 2, 0}, Stable: []Version{{6, 0, 17}, {6, 1, 3}}},
	{Field: "Kret.NRCPUs", Value: 255, Until: Version{2, 6, 33}, Option: "CONFIG_NR_CPUS"},
	{Field: "Kret.FrameCheck", Value: FramePassedOver, From: Version{5, 2, 0}, Until: Version{5, 11, 0}, Stable: []Version{{3, 18, 139}, {4, 14, 114}, {4, 19, 37}},
		Note: "the levels follow from the day of the change; other series were not looked at"},
	{Field: "Kret.FrameCheck", Value: FrameBug, From: Version{5, 11, 0}, Until: Version{5, 16, 0}, Note: "in the code of 5.15.85"},
	{Field: "Kret.FrameCheck", Value: FrameEnds, From: Version{5, 16, 0}},
	{Field: "Kret.LostReturn", Value: "kretprobe BUG!: Processing kretprobe %s", From: Version{2, 6, 22}, Until: Version{5, 10, 0}},
	{Field: "Kret.LostReturn", Value: "Oops! Kretprobe fails to find correct return address.", From: Version{5, 11, 0}, Until: Version{5, 16, 0}, Stable: worded},
	{Field: "Kret.LostReturn", Value: "kprobes: kretprobe: Return address not found, not execute handler. Maybe there is a bug in the kernel.",
		From: Version{5, 16, 0}, Stable: worded, Note: "with KRETPROBE_ON_RETHOOK another one; in 5.15 " + notNarrowed},
	{Field: "Kret.Rethook", From: Version{5, 18, 0}, Option: "CONFIG_KRETPROBE_ON_RETHOOK"},
	{Field: "Kret.UnwinderKnows", From: Version{5, 16, 0}},
	{Field: "Kret.MissedInNMI", From: Version{3, 17, 0}, Until: Version{5, 10, 0}},
	{Field: "Kret.EntryHandler", From: Version{2, 6, 25}},
	{Field: "Kret.HandlerIPIsTrampoline", Until: Version{5, 16, 0}},
	{Field: "Kret.HandlerIRQsOff", Until: Version{5, 11, 0}, Note: "5.10 has it, 5.15.85 has not"},
	{Field: "Kret.TrampolineProbe", Until: Version{2, 6, 25}},

	{Field: "Optimize.Exists", From: Version{2, 6, 34}, Option: "CONFIG_OPTPROBES"},
	{Field: "Optimize.OnPreempt", From: Version{4, 14, 0}, Note: "4.14.5 is the first tree of 4.14 that was read. A kernel that has both has it"},
	{Field: "Optimize.Int3Blocks", From: Version{2, 6, 34}, Until: Version{6, 2, 0}, Stable: padded,
		Note: "until then an int3 that is not followed by int3 only, up to the end of the function"},
	{Field: "Optimize.Int3Tail", From: Version{5, 10, 0}, Until: Version{6, 2, 0}, Stable: append([]Version{{5, 9, 15}}, padded...)},
	{Field: "Optimize.IRQEntryText", From: Version{4, 14, 0}, Until: Version{5, 8, 0}, Note: "5.4 has it, 5.8 not; the code says"},
	{Field: "Optimize.IndirectJumps", From: Version{2, 6, 34}, Until: Version{6, 5, 0},
		Note: "6.4.6 has it, 6.5 has not; later only where neither retpolines nor IBT are built in"},
	{Field: "Optimize.ThunkRange", From: Version{4, 15, 0}, Until: Version{6, 5, 0}, Stable: []Version{{4, 4, 112}, {4, 14, 14}},
		Note: "before, there are no thunks; the levels follow from the day of the change"},
	{Field: "Optimize.SSWord", From: Version{5, 18, 0}, Note: "5.17 has it not, 5.19 has"},
	{Field: "Optimize.CLAC", From: Version{5, 8, 0}, Note: "5.4.286 has it not"},
	{Field: "Optimize.IRQsOff", From: Version{2, 6, 39}, Until: Version{4, 15, 0}},
	{Field: "Optimize.StopMachine", From: Version{2, 6, 34}, Until: Version{3, 12, 0}},
	{Field: "Optimize.ThreeStepUnoptimize", From: Version{3, 12, 0}, Until: Version{5, 6, 0}, Note: "5.4.286 has it, 5.8 has not"},
	{Field: "Optimize.ClearedWhenQueued", From: Version{2, 6, 34}, Until: Version{5, 6, 0},
		Stable: []Version{{4, 14, 173}, {4, 19, 109}, {5, 4, 25}, {5, 5, 6}},
		Note:   "the release before, 4.19.108 and 5.4.24, keeps OPTIMIZED, and has the older queue"},
	{Field: "Optimize.EnabledNeighboursOnly", From: Version{2, 6, 34}, Until: Version{6, 3, 0}, Stable: neighbours,
		Note: "6.2.1, 6.0.19, 5.19 and 5.15.85 have it; 5.15.100, 5.4.286 and 6.3.8 have not"},
	{Field: "Optimize.FirstProbeEndsSearch", From: Version{2, 6, 34}, Until: Version{7, 3, 0}, Stable: []Version{{6, 1, 191}, {6, 12, 113}, {7, 2, 10}}},
	{Field: "Optimize.RecoversUnlistedOnly", From: Version{2, 6, 34}, Until: Version{6, 3, 0}, Stable: neighbours, Note: "with Optimize.EnabledNeighboursOnly"},
	{Field: "Optimize.RetriesHeldBack", From: Version{7, 0, 0}, Note: "6.19.14 has it not, 7.0.13 has; came with the optimizer's own thread, which takes the same steps as the delayed work before it"},
	{Field: "Optimize.DelayJiffies", Value: 5, From: Version{2, 6, 34}},

	{Field: "Poke.SharedArray", From: Version{6, 16, 0}, Note: "smp_text_poke_single and the queue have text_poke_array together"},

	{Field: "Log.Prefix", Value: "kprobes: ", From: Version{5, 16, 0}, Stable: worded},
	{Field: "Log.DumpFields", From: Version{5, 16, 0}, Stable: worded},
	{Field: "Log.EnabledBool", From: Version{5, 16, 0}},
	{Field: "Log.OptimizationWords", From: Version{5, 16, 0}},
	{Field: "Log.ArmErrors", From: Version{4, 16, 0}},

	{Field: "Sample.Function", Value: "do_fork", Until: Version{4, 3, 0}},
	{Field: "Sample.Function", Value: "_do_fork", From: Version{4, 3, 0}, Until: Version{5, 10, 0}},
	{Field: "Sample.Function", Value: "kernel_clone", From: Version{5, 10, 0}},
	{Field: "Sample.Style", Value: SampleSymbol, From: Version{4, 7, 0}, Until: Version{5, 13, 0}},
	{Field: "Sample.Style", Value: SampleFunc, From: Version{5, 13, 0}, Note: "5.10 has it not, 5.15.85 has"},
}
