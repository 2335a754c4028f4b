package kimage

import (
	"slices"

	"kprobelab/kimage/internal/opened"
	"kprobelab/x86"
)

// moduleWalkers are the functions that walk the table of security modules, by the symbol of its start.
var moduleWalkers = map[string][]string{
	"__start_lsm_info":       {"ordered_lsm_init", "ordered_lsm_parse", "lsm_order_parse", "security_init"},
	"__start_early_lsm_info": {"early_security_init"},
}

// namelessModules are the security modules between two addresses that stand in the code of these functions, the
// longest list. The table of the early ones may lie just before the other.
func (p *bootPatcher) namelessModules(start string) []securityModule {
	early, list := p.modulesWalked("__start_early_lsm_info", x86.Range{})
	if start != "__start_early_lsm_info" {
		_, list = p.modulesWalked(start, early)
	}
	return list
}

// modulesWalked is the longest table that has nothing of another one.
func (p *bootPatcher) modulesWalked(start string, other x86.Range) (table x86.Range, longest []securityModule) {
	u := newUnnamed(p.img)
	var ends []x86.Addr
	for _, name := range moduleWalkers[start] {
		for _, s := range p.img.Lookup(name) {
			ends = append(ends, u.operands(s)...)
		}
	}
	slices.Sort(ends)
	ends = slices.Compact(ends)
	for i, from := range ends {
		for _, to := range ends[i+1:] {
			if from < other.End && other.Start < to {
				continue
			}
			if list := p.modulesBetween(from, to); len(list) > len(longest) {
				table, longest = x86.Range{Start: from, End: to}, list
			}
		}
	}
	return table, longest
}

// modulesBetween returns the security modules of a table, each with its first function; nil if it
// is no such table.
func (p *bootPatcher) modulesBetween(from, to x86.Addr) []securityModule {
	for _, l := range lsmLayouts {
		n := to.Sub(from)
		if n > int64(maxSecurityModules*l.size) {
			continue
		}
		list := p.securityModulesAs(p.img.bytes(from, int(n)), l.size, l.hasID)
		if len(list) > 0 && !slices.ContainsFunc(list, func(m securityModule) bool { return m.init == 0 }) {
			return list
		}
	}
	return nil
}

// maxSecurityModules bounds how many security modules a kernel has.
const maxSecurityModules = 64

// namelessHooks returns the hooks of arrays whose addresses are in the code of a module's first
// function, or of a function that it calls. An array ends at the beginning of another module's array.
func (p *bootPatcher) namelessHooks(module securityModule, all []securityModule) (list []securityHook) {
	u := newUnnamed(p.img)
	begins := map[x86.Addr]bool{}
	for _, m := range all {
		for _, at := range p.hookArraysNamed(u, m.init) {
			begins[at] = true
		}
	}
	for _, at := range p.hookArraysNamed(u, module.init) {
		for first := true; first || !begins[at]; first = false {
			h, ok := p.hookAt(u, at)
			if !ok {
				break
			}
			list = append(list, h)
			at += securityHookSize
		}
	}
	return list
}

// hookArraysNamed are the addresses of hooks in the code of a function, and of the functions that it calls.
func (p *bootPatcher) hookArraysNamed(u *unnamed, init x86.Addr) (list []x86.Addr) {
	s, ok := p.img.SymbolAt(init)
	if !ok {
		return nil
	}
	for _, f := range append(p.called(s), init) {
		s, ok := p.img.SymbolAt(f)
		if !ok || s.Addr != f {
			continue
		}
		for _, at := range u.operands(s) {
			if _, ok := p.hookAt(u, at); ok {
				list = append(list, at)
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// called are the targets of the direct calls in a function.
func (p *bootPatcher) called(s Symbol) (list []x86.Addr) {
	code := p.img.bytes(s.Addr, int(min(s.Size, opened.MaxSearched)))
	for i := 0; i+5 <= len(code); i++ {
		if code[i] == x86.Call32 {
			list = append(list, opened.Rel32(s.Addr.Add(int64(i)+5), code[i+1:]))
		}
	}
	return list
}

// hookAt reads a hook: its first static call has a key, a trampoline, no hook yet, and a static key.
func (p *bootPatcher) hookAt(u *unnamed, at x86.Addr) (securityHook, bool) {
	entry := p.img.bytes(at, securityHookSize)
	if entry == nil {
		return securityHook{}, false
	}
	h := securityHook{opened.Abs64(entry), opened.Abs64(entry[8:])}
	call := p.img.bytes(h.calls, securityCallSize)
	ok := u.code(h.function) && call != nil && u.data(opened.Abs64(call)) && u.trampoline(opened.Abs64(call[8:])) && u.data(opened.Abs64(call[24:]))
	return h, ok
}
