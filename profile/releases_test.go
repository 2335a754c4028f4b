package profile

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func version(t *testing.T, s string) Version {
	v, ok := ParseVersion(s)
	require.True(t, ok, s)
	return v
}

func TestNearest(t *testing.T) {
	for release, want := range map[string]string{
		"2.4.37": "2.6.18", "2.6.18-8.el5": "2.6.18", "2.6.24": "2.6.18", "2.6.32": "2.6.32", "2.6.32-754.el6": "2.6.32", "2.6.39": "2.6.32", "3.0.101": "2.6.32", "3.2.0-4-amd64": "3.2", "3.9": "3.2", "3.10.0-1160.el7": "3.10", "3.16.0": "3.10", "4.4.155": "4.4", "4.13": "4.4",
		"4.18.0-el8": "4.14", "4.19.0": "4.19", "5.4.0-generic": "5.4", "5.7": "5.4", "5.10.0-32-cloud-amd64": "5.10",
		"5.14.0": "5.10", "5.15.0": "5.15", "5.19.0": "5.15", "6.1.0-56": "6.1", "6.5.1": "6.1", "6.6.1": "6.6",
		"6.8.0-45-generic": "6.8", "6.11": "6.9", "6.12.107+deb13": "6.12", "6.16": "6.12", "6.19": "6.18", "7.2": "7.0",
		"7.3.4": "7.3", "80.0": newest.String(),
	} {
		require.Equal(t, want, version(t, release).Nearest(), release)
	}
	for _, release := range []string{"", "6.", "nonsense", "6"} {
		_, ok := ParseVersion(release)
		require.False(t, ok, release)
	}
}

// TestReleasesOfNamed: by the dates, the kernels that the named profiles were
// compared with have exactly those profiles.
func TestReleasesOfNamed(t *testing.T) {
	for release, name := range map[string]string{
		"2.6.18": "2.6.18", "4.4.302": "4.4", "5.8.18": "5.8", "5.10.223-1": "5.10", "6.1.192-1": "6.1", "6.12.107": "6.12",
	} {
		want, _ := Named(name)
		require.Equal(t, want, ForRelease(version(t, release)), release)
		require.Equal(t, Modelled, version(t, release).Standing(), release)
	}
	// A vendor's release without a patch level counts as the series' newest.
	newest, _ := Named("6.12")
	newest.Tracing.StarRefused, newest.Tracing.RefuseOpenEnd, newest.Optimize.FirstProbeEndsSearch = true, true, false
	require.Equal(t, newest, ForRelease(version(t, "6.12.0-el10")))
}

// TestReleases has, per rule, releases on both sides of each of its changes.
func TestReleases(t *testing.T) {
	for name, tc := range map[string]struct {
		of          func(*Config) bool
		with, until []string
	}{
		"PaddingInt3": {func(c *Config) bool { return c.Check.PaddingInt3 },
			[]string{"5.10.163", "5.15.87", "5.15.0-91-generic", "6.0.18", "6.1.4", "6.2", "6.8"},
			[]string{"5.10.162", "5.15.86", "5.17", "5.19", "6.0.17", "6.1.3"}},
		"Int3Blocks": {func(c *Config) bool { return c.Optimize.Int3Blocks },
			[]string{"5.8", "5.12", "5.15.85", "6.1.1"}, []string{"5.10.223", "5.15.100", "6.1.192", "6.2", "7.3"}},
		"Int3Tail": {func(c *Config) bool { return c.Optimize.Int3Tail },
			[]string{"5.11", "5.15.85", "5.19.17", "6.1.1"}, []string{"5.4", "5.15.87", "6.2"}},
		"TrapFlag": {func(c *Config) bool { return c.Step.TrapFlag },
			[]string{"5.4", "5.10.189", "5.11", "5.12.1"}, []string{"5.10.190", "5.10.223", "5.13", "6.1"}},
		"TrapFlag_slots": {func(c *Config) bool { return c.Slot.BoostRule == Boost58 },
			[]string{"5.4.100", "5.8"}, []string{"5.13", "6.1"}},
		"ThunkRange": {func(c *Config) bool { return c.Optimize.ThunkRange && c.Optimize.IndirectJumps },
			[]string{"4.4.112", "4.14.24", "4.15", "5.15", "6.4.6"}, []string{"4.4.100", "4.14.5", "6.5", "6.6.9", "6.8", "7.3"}},
		"StarRefused": {func(c *Config) bool { return c.Tracing.StarRefused },
			[]string{"6.12.115", "7.2.13", "7.3"}, []string{"6.12.107", "6.18.15", "7.1.13", "7.2.12"}},
		"2.6.32": {func(c *Config) bool {
			return !c.Check.Boundary && !c.Check.Reregistration && !c.Check.FtraceSites && !c.Optimize.Exists && c.Resolve.UnknownEINVAL && c.Slot.BoostRule == Boost44
		}, []string{"2.6.25", "2.6.26", "2.6.32-754.el6"}, []string{"2.6.18", "2.6.34", "3.2", "3.10"}},
		"stop_machine": {func(c *Config) bool { return c.Optimize.StopMachine && !c.Optimize.ThreeStepUnoptimize }, []string{"2.6.34", "3.2", "3.10.0-1160.el7"}, []string{"2.6.32", "3.12", "4.4"}},
		"ftrace_sites": {func(c *Config) bool { return c.Check.FtraceSites && !c.KprobesOnFtrace }, []string{"2.6.34", "3.2.102"}, []string{"2.6.32", "3.7", "3.10"}},
		"bare_hex":     {func(c *Config) bool { return c.Tracing.Exists && c.Tracing.Types == Types33 }, []string{"2.6.33", "3.2", "3.10", "3.13"}, []string{"2.6.32", "3.14", "4.1", "4.4"}},
		"Boost612": {func(c *Config) bool { return c.Slot.BoostRule == Boost612 && c.Check.ExceptionInsn },
			[]string{"6.9", "6.12.1", "7.3"}, []string{"6.6", "6.7", "6.8.0-31-generic"}},
		"REX2":         {func(c *Config) bool { return c.Decoder.REX2 }, []string{"6.10", "7.0"}, []string{"6.8", "6.9.12"}},
		"INV64":        {func(c *Config) bool { return c.Decoder.INV64 }, []string{"6.16", "7.0"}, []string{"6.14"}},
		"XOP":          {func(c *Config) bool { return c.Decoder.XOP && c.Resolve.NoplPoison }, []string{"6.18", "7.0"}, []string{"6.17.13"}},
		"VanishedInt3": {func(c *Config) bool { return c.Step.VanishedInt3 }, []string{"6.1", "6.2.1"}, []string{"6.3", "6.6"}},
		"CFISymbols":   {func(c *Config) bool { return c.Check.CFISymbols }, []string{"5.10.195", "5.10.223", "5.15.135", "6.1.53", "6.1.192", "6.5", "6.6", "7.3"}, []string{"5.4", "5.10.194", "5.15.100", "6.0", "6.1.52", "6.4"}},
		"CFISwapped": {func(c *Config) bool { return c.Check.CFISwapped },
			[]string{"5.10.195", "5.10.223", "5.15.164", "6.1.53", "6.5", "6.6.9", "6.8.1", "6.10.4"}, []string{"5.10.194", "5.10.224", "5.10.262", "5.15.165", "6.1.105", "6.1.192", "6.6.50", "6.10.5", "6.12", "7.3"}},
		"call_indirect": {func(c *Config) bool { return c.Step.CallIndirectReturnsPast5 && !c.Step.CallPushesFirst },
			[]string{"5.10.200", "5.15.100", "6.1.71", "6.6.10"}, []string{"5.10.189", "5.10.208", "5.15.147", "6.1.72", "6.6.11", "6.7.1", "6.8", "7.3"}},
		"call_prefixed": {func(c *Config) bool { return c.Step.CallReturnsPast5 }, []string{"5.13", "6.12", "7.1.13", "7.2.7"}, []string{"5.12", "7.2.8", "7.2.12", "7.3"}},
		"neighbours": {func(c *Config) bool { return c.Optimize.EnabledNeighboursOnly && c.Optimize.RecoversUnlistedOnly },
			[]string{"4.4", "5.15.85", "5.19", "6.0.19", "6.2.1"}, []string{"5.4.286", "5.10.262", "5.15.100", "6.1.192", "6.3.8", "6.6"}},
		"search_ends": {func(c *Config) bool { return c.Optimize.FirstProbeEndsSearch },
			[]string{"4.4", "5.10.262", "6.6.9", "6.1.190", "6.12.112", "7.1.13", "7.2.9"}, []string{"6.1.191", "6.12.113", "7.2.10", "7.3.4"}},
		"CLAC":        {func(c *Config) bool { return c.Optimize.CLAC }, []string{"5.8", "6.1"}, []string{"5.4.286", "4.19"}},
		"three_steps": {func(c *Config) bool { return c.Optimize.ThreeStepUnoptimize }, []string{"4.4", "4.19.78", "5.4.286"}, []string{"5.8", "5.15"}},
		"cleared":     {func(c *Config) bool { return c.Optimize.ClearedWhenQueued }, []string{"4.4", "4.19.78", "5.5.5"}, []string{"5.4.286", "5.5.6", "5.8"}},
		"Boost54": {func(c *Config) bool { return c.Slot.BoostRule == Boost54 },
			[]string{"4.19.300", "5.4.286", "5.12.10"}, []string{"4.19.78", "5.4.100", "5.8", "5.10.223", "5.13"}},
		"6.14": {func(c *Config) bool {
			return c.Check.ModuleGoingFirst && c.FtraceArmForgiven
		},
			[]string{"6.14", "7.3"}, []string{"6.12.117", "6.13.2"}},
		"held_back":  {func(c *Config) bool { return c.Optimize.RetriesHeldBack }, []string{"7.0.13", "7.3"}, []string{"6.19.14"}},
		"handler_ip": {func(c *Config) bool { return c.Kret.HandlerIPIsTrampoline }, []string{"5.10", "5.15"}, []string{"5.16", "6.1"}},
		"log_prefix": {func(c *Config) bool { return c.Log.Prefix != "" && c.Log.DumpFields }, []string{"5.15.100", "5.16", "7.3"}, []string{"5.15.85"}},
		"typecasts":  {func(c *Config) bool { return c.Tracing.Typecasts }, []string{"7.3.4"}, []string{"7.2.12"}},
		"big_event": {func(c *Config) bool { return c.Tracing.MaxRecord != 0 },
			[]string{"5.10.259", "6.1.176", "6.12.90", "7.0.7", "7.1"}, []string{"5.10.223", "5.15.100", "6.6.9", "6.1.175", "6.18.15", "6.19.14", "7.0.4"}},
		"JLENeedsBoth": {func(c *Config) bool { return c.Step.JLENeedsBoth },
			[]string{"5.13", "5.15.62", "5.19.3"}, []string{"5.12", "5.10.223", "5.15.63", "5.15.0-91", "5.19.4", "6.0"}},
		"SSWord":              {func(c *Config) bool { return c.Optimize.SSWord && c.Kret.Rethook && c.Resolve.NeedsSymbol }, []string{"5.18", "6.0"}, []string{"5.17.15"}},
		"EntryFlag":           {func(c *Config) bool { return c.Resolve.EntryFlag }, []string{"6.1", "6.6"}, []string{"6.0.19"}},
		"MaxActive":           {func(c *Config) bool { return c.Kret.DefaultMaxActive == MaxActivePossible }, []string{"6.1.3", "6.2", "6.6"}, []string{"5.15", "5.19", "6.0", "6.1"}},
		"SwitchTo":            {func(c *Config) bool { return c.Kret.BlacklistSwitchTo }, []string{"4.4", "6.8", "7.3"}, []string{"2.6.18"}},
		"char":                {func(c *Config) bool { return c.Tracing.Types == Types612 }, []string{"6.3", "6.8"}, []string{"6.1", "6.2"}},
		"no_fault":            {func(c *Config) bool { return c.FaultHandler }, []string{"4.19", "5.13"}, []string{"5.14"}},
		"EVEX":                {func(c *Config) bool { return c.Decoder.EVEX }, []string{"4.8", "4.9", "4.18.0-147"}, []string{"4.4", "4.7"}},
		"IRQEntryText_listed": {func(c *Config) bool { return c.Check.IRQEntryText }, []string{"5.1", "5.4.286"}, []string{"4.19", "5.8", "5.15"}},
		"IRQEntryText_opt":    {func(c *Config) bool { return c.Optimize.IRQEntryText }, []string{"4.19", "5.4.286"}, []string{"4.4", "5.8", "5.15"}},
		"EntryErrno":          {func(c *Config) bool { return c.Kret.EntryErrno }, []string{"5.4.286", "5.10.218", "5.11", "6.8"}, []string{"5.4.1", "5.8"}},
		"MaxDataSize": {func(c *Config) bool { return c.Kret.MaxDataSize == 4096 },
			[]string{"5.4.286", "5.10.218", "5.15.85", "6.1"}, []string{"5.4.1", "5.8", "5.14"}},
		"hash_long": {func(c *Config) bool { return c.HashMultiplier == goldenRatio },
			[]string{"3.18.140", "4.4.155", "4.6.2", "4.7"}, []string{"3.18.9", "4.1.19", "4.4.1", "4.5"}},
		"LazyBoost": {func(c *Config) bool { return c.Slot.LazyBoost },
			[]string{"2.6.32", "4.4.1", "4.5", "4.9", "4.11"}, []string{"2.6.24", "4.4.155", "4.12"}},
		"PostDisarms": {func(c *Config) bool { return c.Step.NestedPostDisarms && !c.Step.NestedReenterBUG },
			[]string{"2.6.18", "2.6.32"}, []string{"2.6.33", "2.6.34"}},
		"PostBeforeFixup": {func(c *Config) bool { return c.Step.PostBeforeFixup }, []string{"2.6.25"}, []string{"2.6.26"}},
		"FramePassedOver": {func(c *Config) bool { return c.Kret.FrameCheck == FramePassedOver },
			[]string{"3.18.140", "4.14.177", "4.19.72", "5.2.1"}, []string{"3.18.9", "4.14.67", "4.19.1", "5.0.1"}},
		"Int3Tail of 5.10": {func(c *Config) bool { return c.Optimize.Int3Tail },
			[]string{"5.9.15", "5.10", "5.10.7", "5.11", "5.15.85"}, []string{"5.9.14", "5.8.18", "5.10.163", "5.15.100", "6.2"}},
		"TriggerCounted": {func(c *Config) bool { return c.Tracing.TriggerCounted },
			[]string{"5.10.262", "5.15.183", "6.1.139", "6.6.91", "6.9", "6.12.29", "6.13.2", "6.14.7"},
			[]string{"5.15.184", "6.1.140", "6.1.192", "6.6.92", "6.12.30", "6.12.118", "6.14.8", "6.15", "7.3.4"}},
		"UnwinderKnows": {func(c *Config) bool { return c.Kret.UnwinderKnows },
			[]string{"5.16", "5.17", "5.18", "6.1", "7.3.4"}, []string{"5.10.262", "5.14", "5.15.184"}},
		"SanitizeStar": {func(c *Config) bool { return c.Tracing.SanitizeStar },
			[]string{"6.6.103", "6.12.44", "6.12.118", "6.16.4", "6.17", "7.3"}, []string{"6.1.192", "6.6.102", "6.7.3", "6.12.43", "6.14", "6.16.3"}},
		"VmlinuxHidesModules": {func(c *Config) bool { return c.Tracing.VmlinuxHidesModules },
			[]string{"7.0.10", "7.0.13", "7.1", "7.3.4"}, []string{"6.12.118", "6.19.14", "7.0.9"}},
		"PostCleared": {func(c *Config) bool { return c.Ftrace.PostCleared },
			[]string{"5.4", "5.4.224", "5.8.18", "6.0.9"}, []string{"5.3.1", "5.4.225", "5.10.156", "5.15.80", "6.1"}},
		"OnPreempt":                    {func(c *Config) bool { return c.Optimize.OnPreempt }, []string{"4.14.5", "4.15"}, []string{"4.13.4"}},
		"handlers with interrupts off": {func(c *Config) bool { return c.Optimize.IRQsOff }, []string{"2.6.39", "3.10", "4.14"}, []string{"2.6.37", "4.15"}},
		"uprobes refuse mov to ss":     {func(c *Config) bool { return c.Uprobes.RefusesMasking }, []string{"4.14.67", "4.17"}, []string{"4.14.24", "4.16"}},
		"arming counts failures":       {func(c *Config) bool { return c.Log.ArmErrors }, []string{"4.16"}, []string{"4.15"}},
		"AMX":                          {func(c *Config) bool { return c.Decoder.AMX }, []string{"5.18"}, []string{"5.17"}},
		"StaticCalls":                  {func(c *Config) bool { return c.Check.StaticCalls }, []string{"5.10", "6.8"}, []string{"5.9"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, r := range tc.with {
				require.True(t, tc.of(ForRelease(version(t, r))), r)
			}
			for _, r := range tc.until {
				require.False(t, tc.of(ForRelease(version(t, r))), r)
			}
		})
	}
}

func TestStanding(t *testing.T) {
	for release, want := range map[string]Standing{
		"4.4.1": Modelled, "5.10.5": Modelled, "6.12.90": Modelled, "5.4": Between, "5.15.0-91": Between, "6.19": Between,
		"7.3.4": Between, "80.0": Newer,
	} {
		require.Equal(t, want, version(t, release).Standing(), release)
	}
}

// TestEveryFieldIsDated: the table has a row for each field of Config that releases decide.
func TestEveryFieldIsDated(t *testing.T) {
	dated := map[string]bool{
		"Name": true, "Describes": true,
		"FramePointer": true, "Check.KGDB": true, "Tracing.NoBTFArgs": true, "Built.ErrorInjection": true, "Built.KCFI": true, // configuration alone
		"Check.SMPLocks": true, // the boot
		// Bugs of development kernels and between two models (docs/bugs.md).
		"Optimize.FlagClearedFirst": true, "Optimize.FreeingNeedsUndo": true, "Optimize.TextMutexFirst": true, "Poke.SingleAppends": true,
		"Check.ProbesBeforeLabels": true, "Ftrace.RefusedIsEnabled": true, "Step.FarJumpUnseen": true, "Step.GroupUnread": true, "Step.StatusKept": true,
	}
	for _, c := range Changes() {
		dated[c.Field] = true
	}
	for _, f := range fieldsOf(reflect.TypeFor[Config](), "") {
		if strings.HasPrefix(f, "Slot.BoostTable.") {
			continue // measured on an image, or not known
		}
		require.True(t, dated[f], "%s has no row", f)
		delete(dated, f)
	}
	require.Empty(t, dated, "rows of no field")
}

func fieldsOf(s reflect.Type, in string) (list []string) {
	for f := range s.NumField() {
		if f := s.Field(f); f.Type.Kind() == reflect.Struct {
			list = append(list, fieldsOf(f.Type, in+f.Name+".")...)
		} else {
			list = append(list, in+f.Name)
		}
	}
	return list
}

// TestRowsOfOneFieldDoNotMeet: in mainline, a field has one value at a time.
func TestRowsOfOneFieldDoNotMeet(t *testing.T) {
	rows := Changes()
	for i := range rows {
		a := &rows[i]
		require.False(t, a.Until != Version{} && a.Until.before(a.From), "%s: ends before it begins", a.Field)
		for j := range rows[:i] {
			b := &rows[j]
			if a.Field != b.Field || a.From == a.Until || b.From == b.Until {
				continue
			}
			aFirst := a.Until != Version{} && !b.From.before(a.Until)
			bFirst := b.Until != Version{} && !a.From.before(b.Until)
			require.True(t, aFirst || bFirst || a.Field == "Check.CFISwapped", "%s: two rows for one release", a.Field)
		}
	}
}

func TestDerived(t *testing.T) {
	for _, name := range Derived() {
		c, ok := Named(name)
		require.True(t, ok)
		require.Equal(t, name, c.Name)
		require.NotContains(t, Names(), name)
		v := version(t, name)
		if v.Patch == 0 {
			v.Patch = AnyPatch
		}
		require.Equal(t, ForRelease(v), c)
	}
	v, _ := Named("6.8")
	require.Equal(t, Boost61, v.Slot.BoostRule)
	require.False(t, v.Optimize.IndirectJumps)
	v, _ = Named("5.15")
	require.True(t, v.Check.PaddingInt3)
}
