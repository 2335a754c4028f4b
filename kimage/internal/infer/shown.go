package infer

import (
	"fmt"

	"kprobelab/internal/systemcall"
	"kprobelab/kimage/evidence"
	"kprobelab/kimage/internal/opened"
	"kprobelab/profile"
)

// Fields that a function or a text shows which came, or went, with the rule.

// shown is a rule whose field is a bool.
func shown(name string, from evidence.Source, looks ...look) rule {
	return rule{name: name, look: looks[0], more: looks[1:], from: from}
}

var shownRules = []rule{
	shown("Resolve.RefuseAmbiguous", "", only(has("count_symbols"))),
	shown("Kret.HandlerIPIsTrampoline", "",
		lacking(wholly(has("__kretprobe_find_ret_addr", "rethook_find_ret_addr", "kretprobe_find_ret_addr")))),
	shown("Kret.HandlerIRQsOff", "", wholly(has("kretprobe_hash_lock"))),
	shown("Optimize.RetriesHeldBack", "", wholly(has("kprobe_optimizer_thread"))),
	shown("Kret.UnwinderKnows", "", wholly(has("rethook_find_ret_addr", "kretprobe_find_ret_addr"))),
	shown("Poke.SharedArray", "", wholly(has("smp_text_poke_single"))),
	shown("Tracing.TAIClock", "", wholly(has("ktime_get_tai_fast_ns"))),
	shown("Tracing.RawCommand", "", wholly(has("trace_probe_create"))),
	shown("Tracing.MigrateDisable", evidence.Coded, message("/ _-=> migrate-disable")),
	shown("Tracing.FilterFunctions", evidence.Coded, filterMessage("Function not found")),
	shown("Tracing.FilterCPUSets", evidence.Coded, filterMessage("Missing '{'")),
	shown("Tracing.BareArrays", evidence.Coded, message("%.*s %s[];")),
	shown("Uprobes.ReturnCall", "", wholly(has(systemcall.Wrapped+"uretprobe"))),
	shown("Log.DumpFields", evidence.Coded, either(".symbol_name = ", "Dumping kprobe:")),
	shown("Log.OptimizationWords", evidence.Coded, message("kprobe jump-optimization is ")),
	shown("Log.EnabledBool", evidence.Coded, calls("write_enabled_file_bool", "kstrtobool_from_user", "kstrtobool")),
}

// only believes a look that finds something.
func only(l look) look {
	return func(e *Evidence) (bool, string, bool) {
		on, why, _ := l(e)
		return on, why, on
	}
}

// lacking is the opposite of a look.
func lacking(l look) look {
	return func(e *Evidence) (bool, string, bool) {
		on, why, ok := l(e)
		return !on, why, ok
	}
}

// either looks for two texts of which a kernel has one.
func either(newer, older string) look {
	return func(e *Evidence) (bool, string, bool) {
		data := e.readOnly()
		if on, why, ok := found(data, newer, ".rodata"); on {
			return on, why, ok
		}
		on, why, _ := found(data, older, ".rodata")
		return false, why, on
	}
}

// filterMessage looks for a message of the filters, of which all releases have this one.
func filterMessage(text string) look {
	return func(e *Evidence) (bool, string, bool) {
		if on, _, _ := found(e.readOnly(), "Invalid operator", ".rodata"); !on {
			return false, "", false
		}
		return found(e.readOnly(), text, ".rodata")
	}
}

// calls looks for a call in a function.
func calls(function string, callees ...string) look {
	return func(e *Evidence) (bool, string, bool) {
		for _, c := range callees {
			if opened.ReturnOf(e.img, function, c) != 0 {
				return true, fmt.Sprintf("%s calls %s", function, c), true
			}
		}
		_, ok := e.img.SymbolAddr(function)
		return false, fmt.Sprintf("%s calls no %s", function, callees[0]), ok
	}
}

// choice is a field that has one of several values.
type choice struct {
	field string
	// signs are looked for in order; the first that is found gives the value.
	signs []sign
	// known is found in every kernel that can be asked, and rest the value where no sign is; without
	// known there is no value then.
	known look
	rest  string
}

// sign shows a value.
type sign struct {
	look  look
	value string
}

var choices = []choice{
	// The text came after the set; older sets differ in types that the README does not list.
	{field: "Tracing.Types", signs: []sign{{readmeHas("%pd/%pD"), profile.Types612.String()}}},
	{field: "Tracing.MaxArgText", signs: []sign{{message("Typecast requires a field access"), "255"}}, known: message("Typecast requires a field access"), rest: "63"},
	{field: "Kret.FrameCheck", signs: []sign{{has("__kretprobe_find_ret_addr", "rethook_find_ret_addr"), profile.FrameEnds.String()}}},
	{field: "Log.Prefix", signs: []sign{{message("kprobes: Failed to"), "kprobes: "}}, known: message("kprobes: Failed to")},
}

// choose decides a field that has one of several values.
func (p *choice) choose(e *Evidence, c *profile.Config) {
	var list []evidence.Witness
	for _, s := range p.signs {
		if on, why, ok := s.look(e); ok && on {
			list = append(list, evidence.Witness{Value: s.value, Evidence: why, From: evidence.Coded})
			break
		}
	}
	if len(list) == 0 && p.known != nil {
		if _, why, ok := p.known(e); ok {
			list = append(list, evidence.Witness{Value: p.rest, Evidence: why, From: evidence.Coded})
		}
	}
	if len(list) == 0 {
		return
	}
	f, _ := evidence.Decided(p.field, append(list, evidence.ByRelease(c, p.field)))
	if err := c.SetField(p.field, f.Value); err == nil {
		e.facts.Add(f)
	}
}
