package profile

import "slices"

// Default is the profile that is used where nothing says otherwise: Debian
// 12's kernel, which has PREEMPTION.
const Default = "6.1"

// Names lists the named profiles, oldest first.
func Names() []string {
	return []string{"2.6.18", "4.4", "5.8", "5.10", "6.1", "6.12"}
}

// Derived lists the other profiles that Named knows, oldest first: those of
// series between the named ones, which follow from the dates of changes and were
// not compared with a kernel field by field.
func Derived() []string {
	return []string{"4.14", "4.19", "5.4", "5.15", "6.6", "6.8", "6.9", "6.18", "7.0", "7.3"}
}

// All lists every name that Named knows, oldest first.
func All() []string {
	list := append(Names(), Derived()...)
	slices.SortFunc(list, func(a, b string) int {
		v, _ := ParseVersion(a)
		w, _ := ParseVersion(b)
		if v.before(w) {
			return -1
		}
		return 1
	})
	return list
}

// Named returns a fresh copy of the profile with that name, and whether there
// is one. A derived one is that of its series' newest release.
func Named(name string) (*Config, bool) {
	if slices.Contains(Derived(), name) {
		v, _ := ParseVersion(name)
		v.Patch = AnyPatch
		c := ForRelease(v)
		c.Describes = "Linux " + name + ": profile " + c.Name + " with the fields that other releases changed"
		c.Name = name
		return c, true
	}
	build, ok := map[string]func() Config{
		"2.6.18": v2618, "4.4": v44, "5.8": v58, "5.10": v510, "6.1": v61, "6.12": v612,
	}[name]
	if !ok {
		return nil, false
	}
	c := build()
	return &c, true
}

// The multipliers of hash_64 before and since 4.7.
const (
	goldenRatioPrime = 0x9e37fffffffc0001
	goldenRatio      = 0x61c8864680b583eb
)

// Each release is written as what changed since the one before it; the newest
// differences are therefore at the end. Sources: docs/spec 12 and 14.

func v2618() Config {
	return Config{
		Name:                     "2.6.18",
		Describes:                "Linux 2.6.18: jprobes, trap-flag stepping, no optimization, no boosting",
		Jprobes:                  true,
		FaultHandler:             true,
		ExceptionTableInHandlers: true,
		ModuleBase:               0xffffffffa0000000,
		HashMultiplier:           goldenRatioPrime,
		HZ:                       250,
		Check:                    Check{ModulePinned: true},
		Slot:                     Slot{BoostRule: BoostNever},
		Step: Step{
			TrapFlag: true, FixupSkipsREXOnly: true, PostBeforeFixup: true, VanishedInt3: true,
			HandlerResets: true, NestedPostDisarms: true, PageFaultsOnly: true,
		},
		Kret: Kret{
			DefaultMaxActive: MaxActiveNRCPUs, NRCPUs: 255,
			TrampolineProbe: true, HandlerIPIsTrampoline: true, HandlerIRQsOff: true,
		},
		Sample: Sample{Function: "do_fork", Style: SampleBare},
	}
}

func v44() Config {
	c := v2618()
	c.Name = "4.4"
	c.Describes = "Linux 4.4, no PREEMPTION: jprobes, trap-flag stepping, boosting, optimization"
	c.KprobesOnFtrace = true
	c.Resolve = Resolve{SymbolNames: true}
	c.Check = Check{
		ModuleErrno: true, JprobeEntry: true, Reregistration: true, JumpLabels: true, Boundary: true,
		FtraceSites: true, FtraceSiteMiddle: true,
	}
	c.Slot = Slot{BoostRule: Boost44, RefuseInt3: true}
	c.Step = Step{
		TrapFlag: true, VanishedInt3: true, HandlerResets: true, NestedReenterBUG: true,
		BoostedFaultInSlot: true, PageFaultsOnly: true, FtraceIRQsOff: true,
	}
	c.Kret = Kret{
		DefaultMaxActive: MaxActiveCPUs, EntryHandler: true, MissedInNMI: true, BlacklistSwitchTo: true,
		HandlerIPIsTrampoline: true, HandlerIRQsOff: true,
	}
	c.Optimize = Optimize{
		Exists: true, Int3Blocks: true, IndirectJumps: true, ThunkRange: true,
		IRQsOff: true, ThreeStepUnoptimize: true, ClearedWhenQueued: true,
		EnabledNeighboursOnly: true, FirstProbeEndsSearch: true, RecoversUnlistedOnly: true, DelayJiffies: 5,
	}
	c.Sample = Sample{Function: "_do_fork", Style: SampleBare}
	c.Tracing = Tracing{Exists: true, FirstEventID: 1000, Types: Types44, LongEventName: true}
	return c
}

func v58() Config {
	c := v44()
	c.Name = "5.8"
	c.Describes = "Linux 5.8, no PREEMPTION: trap-flag stepping, boosting, fault_handler, optimization"
	c.Jprobes = false
	c.Check.JprobeEntry = false
	c.Log.ArmErrors = true
	c.ExceptionTableInHandlers = false
	c.ModuleBase = 0xffffffffc0000000
	c.Decoder = Decoder{EVEX: true, EmulatePrefix: true}
	c.Check.BugTable = true
	c.Check.BlacklistLists = true
	c.Slot = Slot{BoostRule: Boost58, RefuseInt3: true, RefuseMasking: true}
	c.Step.HandlerResets = false
	c.Step.Int3IsNMI = true
	c.Step.FtraceIRQsOff = false
	c.HashMultiplier = goldenRatio
	c.Kret.EntryOnly = true
	c.Optimize.OnPreempt = true
	c.Optimize.CLAC = true
	c.Optimize.IRQsOff = false
	c.Optimize.ThreeStepUnoptimize = false
	c.Optimize.ClearedWhenQueued = false
	c.Sample = Sample{Function: "_do_fork", Style: SampleSymbol}
	c.Tracing = Tracing{
		Exists: true, FirstEventID: 1374, BootClock: true, ErrorLog: true, ErrorCommandMax: 256, Misspelled: true,
		DynamicEvents: true, Append: true, LongEventName: true, MaxActive: true,
		Types: Types58, ArgFetch: true,
	}
	return c
}

func v510() Config {
	c := v58()
	c.Name = "5.10"
	c.Describes = "Debian 11's 5.10.223, no PREEMPTION: int3 stepping backported, boosting, fault_handler"
	c.Decoder.Errors = true
	c.Check.StaticCalls = true
	c.Check.PaddingInt3 = true
	c.Slot = Slot{BoostRule: Boost61, BoostDecidedAtBuild: true, RefuseInt3: true, RefuseMasking: true, Emulate: true}
	c.Step.TrapFlag = false
	c.Step.LoopTestsBeforeDecrement = true
	c.Step.Loop32KeepsUpper = true
	c.Step.RetIgnoresImm = true
	c.Step.VexAsLegacy = true
	c.Step.FlagsMove8Bytes = true
	c.Step.PopfTakesAll = true
	c.Step.CallReturnsPast5 = true
	c.Step.CallPushesFirst = true
	c.Step.FarRetIsNear = true
	c.Step.LastInt3Missed = true
	c.Kret.EntryErrno = true
	c.Kret.MissedInNMI = false
	c.Kret.MaxDataSize = 4096
	// The rules of 6.1, which stable releases took over (docs/spec 14.1).
	c.Optimize.Int3Blocks = false
	c.Optimize.EnabledNeighboursOnly = false
	c.Optimize.FirstProbeEndsSearch = false
	c.Optimize.RecoversUnlistedOnly = false
	c.Sample = Sample{Function: "kernel_clone", Style: SampleSymbol}
	c.Tracing.CommUpper = true
	c.Tracing.LoneQuote = true
	c.Tracing.ReturnSuffix = true
	return c
}

func v61() Config {
	c := v510()
	c.Name = "6.1"
	c.Describes = "Debian 12's 6.1.192, PREEMPTION: int3 stepping, no boosting, rethook, optimization"
	c.Preemption = true
	c.FaultHandler = false
	c.Resolve.NeedsSymbol = true
	c.Resolve.EntryFlag = true
	c.Resolve.RefuseAmbiguous = true
	c.Check.ReregistrationWarns = true
	c.Log.Prefix = "kprobes: "
	c.Log.EnabledBool = true
	c.Log.DumpFields = true
	c.Check.GateArea = true
	c.Check.CFISymbols = true
	c.Check.FtraceSiteMiddle = false
	c.Kret = Kret{
		EntryOnly: true, EntryErrno: true, MaxDataSize: 4096, BlacklistSwitchTo: true,
		DefaultMaxActive: MaxActivePossible, Rethook: true, EntryHandler: true,
	}
	c.Optimize.SSWord = true
	c.Log.OptimizationWords = true
	c.Sample.Style = SampleFunc
	c.Tracing = Tracing{
		Exists: true, FirstEventID: 1426, BootClock: true, TAIClock: true, ErrorLog: true, DynamicEvents: true, Append: true,
		RawCommand: true, AutoNames: true, GroupHyphen: true, MaxActive: true, ReturnSuffix: true,
		UniqueSymbols: true, RefuseOpenEnd: true, Types: Types61, ArgFetch: true, CommUpper: true, MaxRecord: 3072,
		BareArrays: true, MigrateDisable: true,
	}
	return c
}

func v612() Config {
	c := v61()
	c.Name = "6.12"
	c.Describes = "Debian 13's 6.12.107, PREEMPTION and IBT: int3 stepping, rethook, optimization"
	c.Decoder.REX2 = true
	c.Resolve.SkipENDBR = true
	c.Check.ExceptionInsn = true
	c.Slot.BoostRule = Boost612
	c.Step.VanishedInt3 = false
	c.Kret.BlacklistSwitchTo = false
	c.Optimize.IndirectJumps = false
	c.Optimize.ThunkRange = false
	c.Tracing.FirstEventID = 1554
	c.Tracing.UniqueFirst = true
	c.Tracing.Types = Types612
	c.Tracing.BTFArgs = true
	c.Tracing.CountArgs = true
	c.Tracing.LongArgE2BIG = true
	c.Tracing.StringTypeLogged = true
	c.Tracing.SanitizeStar = true
	return c
}
