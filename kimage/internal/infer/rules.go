package infer

import (
	"bytes"
	"fmt"
	"strconv"

	"kprobelab/kimage/evidence"
	"kprobelab/profile"
	"kprobelab/x86"
)

// look is a look at the image; ok is false if it tells nothing.
type look func(*Evidence) (on bool, why string, ok bool)

// rule is one field of the profile that an image's evidence can decide.
type rule struct {
	// name is the field, as it is written in profile.Config.
	name string
	// options are the configuration options that decide it, in order.
	options []string
	// look reads the image, and more does in other ways.
	look look
	more []look
	// from is the kind of evidence that look reads; empty means Symbolic.
	from evidence.Source
	// weak: what look does not find may be there all the same.
	weak bool
	// set changes the field, and what depends on it; nil if the field alone changes.
	set func(*profile.Config, bool)
}

var rules = []rule{
	{
		name: "Preemption", options: []string{"CONFIG_PREEMPTION", "CONFIG_PREEMPT"},
		look: wholly(has("preempt_schedule")), more: []look{func(e *Evidence) (bool, string, bool) {
			if w := e.banner.Preempt(); w != "" {
				return true, w + " in the " + e.banner.From, true
			}
			return false, "no PREEMPT in the " + e.banner.From, e.banner.Release != ""
		}},
		from: evidence.Coded,
	},
	{
		name: "KprobesOnFtrace", options: []string{"CONFIG_KPROBES_ON_FTRACE"},
		look: has("kprobe_ftrace_handler"),
	},
	{
		name: "Optimize.Exists", options: []string{"CONFIG_OPTPROBES"},
		look: has("arch_optimize_kprobes", "optprobe_template_entry"),
	},
	{
		name: "Jprobes",
		look: has("register_jprobe"),
	},
	{
		// Its dispatcher over an aggregate exists as long as it does.
		name: "FaultHandler",
		look: has("aggr_fault_handler"),
	},
	{
		name: "Step.TrapFlag",
		look: lookStepping,
		set:  profile.SetTrapFlag,
	},
	{
		name: "Kret.Rethook", options: []string{"CONFIG_KRETPROBE_ON_RETHOOK"},
		look: has("arch_rethook_trampoline"),
	},
	{
		name: "Resolve.SkipENDBR", options: []string{"CONFIG_X86_KERNEL_IBT"},
		look: (*Evidence).functionsBeginWithEndbr, from: evidence.Coded,
	},
	{
		name: "Resolve.NoplPoison",
		look: lookPoison, from: evidence.Coded,
	},
	{
		name: "Optimize.EnabledNeighboursOnly",
		look: lookLocal("kprobe_disarmed"),
	},
	{
		name: "Optimize.RecoversUnlistedOnly",
		look: lookLocal("optprobe_queued_unopt"),
	},
	{
		// Where neither retpolines nor IBT make indirect jumps safe to
		// ignore, 6.5 and later look for them; older kernels always do.
		name: "Optimize.IndirectJumps",
		look: lookIndirectJumps,
	},
	{
		// The rule went in 5.18, and from the stable releases of 5.10 later.
		name: "Check.FtraceSiteMiddle",
		look: lookSiteMiddle, from: evidence.Coded,
	},
	{
		name: "Check.IRQEntryText",
		look: lookIRQEntry("arch_populate_kprobe_blacklist"), from: evidence.Coded,
	},
	{
		name: "Optimize.IRQEntryText",
		look: lookIRQEntry("can_optimize", "arch_prepare_optimized_kprobe"), from: evidence.Coded,
	},
	{
		name: "Optimize.SSWord",
		look: lookSSWord, from: evidence.Coded,
	},
	{
		name: "Kret.BlacklistSwitchTo",
		look: lookSwitchTo, from: evidence.Coded,
	},
	{
		name: "Decoder.REX2",
		look: opcodeHas(0xd5, inatPrefix), from: evidence.Coded,
	},
	{
		// PUSH ES has no attribute but this one.
		name: "Decoder.INV64",
		look: opcodeHas(0x06, ^uint32(0)), from: evidence.Coded,
	},
	{
		name: "Decoder.XOP",
		look: opcodeHas(0x8f, inatPrefix), from: evidence.Coded,
	},
	{
		// It went into stable releases at different times; only the symbol of
		// its helper tells. Without the symbol the release decides.
		name: "Tracing.UniqueSymbols",
		look: func(e *Evidence) (bool, string, bool) {
			on, why, _ := e.symbol("count_symbols")
			return on, why, on
		},
	},
	{
		name: "Tracing.UniqueFirst",
		look: lookUniqueFirst, from: evidence.Coded,
	},
	{
		name: "Tracing.StarRefused",
		look: lookStarRefused, from: evidence.Coded,
	},
	{
		name: "Check.KGDB", options: []string{"CONFIG_KGDB"},
		look: has("kgdb_handle_exception"),
	},
	{
		name: "FramePointer", options: []string{"CONFIG_FRAME_POINTER", "CONFIG_UNWINDER_FRAME_POINTER"},
		look: func(e *Evidence) (bool, string, bool) {
			_, why, ok := e.symbol("__start_orc_unwind")
			return false, why + " (the ORC unwinder)", ok && e.img.Section(".orc_unwind") != nil
		},
	},
	{
		name: "ModuleBase", options: []string{"CONFIG_RANDOMIZE_BASE"},
		look: has("kaslr_get_random_long"), weak: true, // it is linked only if something calls it
		set: setModuleBase,
	},
}

// decide applies one rule and records what it found.
func (e *Evidence) decide(r *rule, c *profile.Config) {
	before := c.Field(r.name)
	var witnesses []evidence.Witness
	for _, l := range append([]look{r.look}, r.more...) {
		if on, why, ok := l(e); ok {
			witnesses = append(witnesses, evidence.Witness{Value: r.value(c, on), Evidence: why, From: e.strength(r, on)})
		}
	}
	if len(r.options) > 0 {
		if on, why, ok := e.option(r.options...); ok {
			witnesses = append(witnesses, evidence.Witness{Value: r.value(c, on), Evidence: why, From: evidence.Configured})
		}
	}
	f, ok := evidence.Decided(r.name, witnesses)
	if last := len(witnesses) - 1; ok && witnesses[last].From == evidence.Configured {
		f = e.askedFor(f, witnesses[last])
	}
	if ok && f.Value != before {
		r.put(c, f.Value == r.value(c, true))
		f.Evidence += "; profile " + c.Name + " has it otherwise"
		if len(r.options) == 0 {
			f.Against = append(f.Against, evidence.Witness{Value: before, Evidence: "profile " + c.Name, From: evidence.Dated})
		}
	}
	if ok {
		e.facts.Add(f)
	}
}

// strength returns the kind of evidence of a look at the image: the absence of a symbol counts
// before the configuration only if the image has all its symbols.
func (e *Evidence) strength(r *rule, on bool) evidence.Source {
	switch {
	case r.from != "" && r.from != evidence.Symbolic:
		return r.from
	case !on && (r.weak || !e.Whole()):
		return evidence.Absent
	}
	return evidence.Symbolic
}

// value returns the field's value if the rule answers on.
func (r *rule) value(c *profile.Config, on bool) string {
	tried := *c
	r.put(&tried, on)
	return tried.Field(r.name)
}

// put sets the field.
func (r *rule) put(c *profile.Config, on bool) {
	if r.set != nil {
		r.set(c, on)
		return
	}
	if err := c.SetField(r.name, strconv.FormatBool(on)); err != nil {
		panic("BUG: " + err.Error())
	}
}

func has(names ...string) look {
	return func(e *Evidence) (bool, string, bool) { return e.symbol(names...) }
}

// wholly trusts a look only if the image has all its symbols.
func wholly(l look) look {
	return func(e *Evidence) (bool, string, bool) {
		on, why, ok := l(e)
		return on, why, ok && (on || e.Whole())
	}
}

// inatPrefix is the part of an opcode's attributes that numbers the prefixes
// (asm/inat.h, INAT_PFX_MASK: 4 bits, 5 from 6.10 on; the fifth was in no attribute of
// the opcodes that are tested).
const inatPrefix = 0x1f

// opcodeHas looks for attributes of a one-byte opcode in the table of the
// kernel's own decoder, which is data of the image.
func opcodeHas(op byte, mask uint32) func(*Evidence) (bool, string, bool) {
	return func(e *Evidence) (bool, string, bool) {
		const table = "inat_primary_table"
		a, ok := e.img.SymbolAddr(table)
		b := e.img.Bytes(a.Add(4*int64(op)), 4)
		if !ok || b == nil {
			return false, "", false
		}
		v := le.Uint32(b)
		return v&mask != 0, fmt.Sprintf("%s[%#02x] is %#x", table, op, v), true
	}
}

// lookStepping tells trap-flag stepping from int3 stepping: only the former
// has a handler of the debug exception, only the latter emulates branches.
func lookStepping(e *Evidence) (bool, string, bool) {
	if on, why, _ := e.symbol("kprobe_emulate_jcc", "kprobe_emulate_jmp", "kprobe_emulate_call"); on {
		return false, why, true
	}
	if on, why, _ := e.symbol("kprobe_debug_handler", "resume_execution", "resume_execution.isra.0"); on {
		return true, why, true
	}
	return false, "", false
}

// lookSSWord looks at what the detour buffer's template pushes first: the ss word, a
// push of __KERNEL_DS, or rsp.
func lookSSWord(e *Evidence) (bool, string, bool) {
	const template = "optprobe_template_entry"
	a, ok := e.img.SymbolAddr(template)
	b := e.img.Bytes(a, 2)
	if !ok || b == nil {
		return false, "", false
	}
	return bytes.Equal(b, []byte{0x6a, 0x18}), fmt.Sprintf("%s begins with % x", template, b), true
}

// lookSwitchTo searches __switch_to in the list of functions that refuse return probes.
func lookSwitchTo(e *Evidence) (bool, string, bool) {
	const list, function = "kretprobe_blacklist", "__switch_to"
	a, ok := e.img.SymbolAddr(list)
	b := e.img.Bytes(a, 8)
	if !ok || b == nil {
		return false, "", false
	}
	name := e.img.Bytes(x86.Addr(le.Uint64(b)), len(function)+1)
	if string(name) != function+"\x00" {
		return false, list + " has no " + function, true
	}
	return true, list + " has " + function, true
}

// Where module space begins, with and without RANDOMIZE_BASE
// (arch/x86/include/asm/pgtable_64_types.h, MODULES_VADDR).
const (
	moduleBaseRandom = 0xffffffffc0000000
	moduleBaseFixed  = 0xffffffffa0000000
)

func setModuleBase(c *profile.Config, random bool) {
	c.ModuleBase = moduleBaseFixed
	if random {
		c.ModuleBase = moduleBaseRandom
	}
}
