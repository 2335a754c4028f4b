package profile

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// One row a feature of the version table (docs/spec 12, 14), one column a profile
// in the order of Names.
func TestVersionTable(t *testing.T) {
	rows := []struct {
		feature string
		of      func(c *Config) any
		want    [6]any
	}{
		{"jprobes", func(c *Config) any { return c.Jprobes }, [6]any{true, true, false, false, false, false}},
		{"jprobe_entry", func(c *Config) any { return c.Check.JprobeEntry }, [6]any{false, true, false, false, false, false}},
		{"module_pinned", func(c *Config) any { return c.Check.ModulePinned }, [6]any{true, false, false, false, false, false}},
		{"module_going_ENOENT", func(c *Config) any { return c.Check.ModuleErrno }, [6]any{false, true, true, true, true, true}},
		{"log_prefix", func(c *Config) any { return c.Log.Prefix }, [6]any{"", "", "", "", "kprobes: ", "kprobes: "}},
		{"enabled_is_a_boolean", func(c *Config) any { return c.Log.EnabledBool }, [6]any{false, false, false, false, true, true}},
		{"dump_fields", func(c *Config) any { return c.Log.DumpFields }, [6]any{false, false, false, false, true, true}},
		{"arm_errors_are_counted", func(c *Config) any { return c.Log.ArmErrors }, [6]any{false, false, true, true, true, true}},
		{"symbol_name", func(c *Config) any { return c.Resolve.SymbolNames }, [6]any{false, true, true, true, true, true}},
		{"outside_any_symbol_ENOENT", func(c *Config) any { return c.Resolve.NeedsSymbol }, [6]any{false, false, false, false, true, true}},
		{"re_registration", func(c *Config) any { return c.Check.Reregistration }, [6]any{false, true, true, true, true, true}},
		{"boundary", func(c *Config) any { return c.Check.Boundary }, [6]any{false, true, true, true, true, true}},
		{"int3_is_padding", func(c *Config) any { return c.Check.PaddingInt3 }, [6]any{false, false, false, true, true, true}},
		{"exception_insn_at_A", func(c *Config) any { return c.Check.ExceptionInsn }, [6]any{false, false, false, false, false, true}},
		{"bug_table", func(c *Config) any { return c.Check.BugTable }, [6]any{false, false, true, true, true, true}},
		{"static_calls", func(c *Config) any { return c.Check.StaticCalls }, [6]any{false, false, false, true, true, true}},
		{"cfi_pfx", func(c *Config) any { return c.Check.CFISymbols && !c.Check.CFISwapped }, [6]any{false, false, false, false, true, true}},
		{"trap_flag_stepping", func(c *Config) any { return c.Step.TrapFlag }, [6]any{true, true, true, false, false, false}},
		{"emulated_branches", func(c *Config) any { return c.Slot.Emulate }, [6]any{false, false, false, true, true, true}},
		{"post_before_fixup", func(c *Config) any { return c.Step.PostBeforeFixup }, [6]any{true, false, false, false, false, false}},
		{"handler_resets", func(c *Config) any { return c.Step.HandlerResets }, [6]any{true, true, false, false, false, false}},
		{"fault_handler", func(c *Config) any { return c.FaultHandler }, [6]any{true, true, true, true, false, false}},
		{"exception_table_in_kprobes", func(c *Config) any { return c.ExceptionTableInHandlers }, [6]any{true, true, false, false, false, false}},
		{"boost_rule", func(c *Config) any { return c.Slot.BoostRule }, [6]any{BoostNever, Boost44, Boost58, Boost61, Boost61, Boost612}},
		{"boost_decided_at_build", func(c *Config) any { return c.Slot.BoostDecidedAtBuild }, [6]any{false, false, false, true, true, true}},
		{"optimization", func(c *Config) any { return c.Optimize.Exists }, [6]any{false, true, true, true, true, true}},
		{"int3_blocks_optimization", func(c *Config) any { return c.Optimize.Int3Blocks }, [6]any{false, true, true, false, false, false}},
		{"indirect_jump_test", func(c *Config) any { return c.Optimize.IndirectJumps }, [6]any{false, true, true, true, true, false}},
		{"detour_ss_word", func(c *Config) any { return c.Optimize.SSWord }, [6]any{false, false, false, false, true, true}},
		{"ftrace_based", func(c *Config) any { return c.KprobesOnFtrace }, [6]any{false, true, true, true, true, true}},
		{"kretprobe_entry_only", func(c *Config) any { return c.Kret.EntryOnly }, [6]any{false, false, true, true, true, true}},
		{"kretprobe_data_limit", func(c *Config) any { return c.Kret.MaxDataSize }, [6]any{0, 0, 0, 4096, 4096, 4096}},
		{"kretprobe_in_NMI_is_missed", func(c *Config) any { return c.Kret.MissedInNMI }, [6]any{false, true, true, false, false, false}},
		{"ftrace_handlers_irqs_off", func(c *Config) any { return c.Step.FtraceIRQsOff }, [6]any{false, true, false, false, false, false}},
		{"int3_is_NMI", func(c *Config) any { return c.Step.Int3IsNMI }, [6]any{false, false, true, true, true, true}},
		{"rethook", func(c *Config) any { return c.Kret.Rethook }, [6]any{false, false, false, false, true, true}},
		{"preemption", func(c *Config) any { return c.Preemption }, [6]any{false, false, false, false, true, true}},
		{"evex", func(c *Config) any { return c.Decoder.EVEX }, [6]any{false, false, true, true, true, true}},
		{"decoder_errors", func(c *Config) any { return c.Decoder.Errors }, [6]any{false, false, false, true, true, true}},
		{"endbr_skipping", func(c *Config) any { return c.Resolve.SkipENDBR }, [6]any{false, false, false, false, false, true}},
		{"inside_ftrace_site_at_location", func(c *Config) any { return c.Check.FtraceSiteMiddle }, [6]any{false, true, true, true, false, false}},
		{"jump_labels", func(c *Config) any { return c.Check.JumpLabels }, [6]any{false, true, true, true, true, true}},
		{"gate_area", func(c *Config) any { return c.Check.GateArea }, [6]any{false, false, false, true, true, true}},
		{"blacklist_clones", func(c *Config) any { return c.Check.BlacklistClones }, [6]any{false, false, true, true, true, true}},
		{"masking_instructions_refused", func(c *Config) any { return c.Slot.RefuseMasking }, [6]any{false, false, true, true, true, true}},
		{"vanished_int3", func(c *Config) any { return c.Step.VanishedInt3 }, [6]any{true, true, true, true, true, false}},
		{"nested_in_post_disarms", func(c *Config) any { return c.Step.NestedPostDisarms }, [6]any{true, false, false, false, false, false}},
		{"nested_while_REENTER_is_BUG", func(c *Config) any { return c.Step.NestedReenterBUG }, [6]any{false, true, true, true, true, true}},
		{"list_hash_of_4.6", func(c *Config) any { return c.HashMultiplier == goldenRatio }, [6]any{false, true, true, true, true, true}},
		{"default_maxactive", func(c *Config) any { return c.Kret.DefaultMaxActive },
			[6]any{MaxActiveNRCPUs, MaxActiveCPUs, MaxActiveCPUs, MaxActiveCPUs, MaxActivePossible, MaxActivePossible}},
		{"entry_handler", func(c *Config) any { return c.Kret.EntryHandler }, [6]any{false, true, true, true, true, true}},
		{"switch_to_blacklisted", func(c *Config) any { return c.Kret.BlacklistSwitchTo }, [6]any{false, true, true, true, true, true}},
		{"trampoline_is_a_probed_nop", func(c *Config) any { return c.Kret.TrampolineProbe }, [6]any{true, false, false, false, false, false}},
		{"rex2", func(c *Config) any { return c.Decoder.REX2 }, [6]any{false, false, false, false, false, true}},
	}
	for _, row := range rows {
		t.Run(row.feature, func(t *testing.T) {
			for i, name := range Names() {
				c, ok := Named(name)
				require.True(t, ok)
				require.Equal(t, row.want[i], row.of(c), name)
			}
		})
	}
}

func TestNamedIsACopy(t *testing.T) {
	a, _ := Named(Default)
	a.Preemption = false
	b, _ := Named(Default)
	require.True(t, b.Preemption, "changing one copy changes no other")
	require.Equal(t, Default, b.Name)
	require.NotEmpty(t, b.Describes)
	_, ok := Named("3.11")
	require.False(t, ok)
}

// A kernel without PREEMPTION boosts; a field says so.
func ExampleNamed() {
	c, _ := Named("6.1")
	c.Preemption = false
	fmt.Println(c.Name, c.Slot.BoostRule == Boost61)
	// Output: 6.1 true
}

func TestAllNamesAreKnownAndInOrder(t *testing.T) {
	all := All()
	require.Len(t, all, len(Names())+len(Derived()))
	require.Equal(t, "2.6.18", all[0])
	require.Equal(t, newest.String(), all[len(all)-1])
	for i, name := range all {
		_, ok := Named(name)
		require.True(t, ok, name)
		if i > 0 {
			v, _ := ParseVersion(all[i-1])
			w, _ := ParseVersion(name)
			require.True(t, v.before(w), "%s before %s", all[i-1], name)
		}
	}
}
