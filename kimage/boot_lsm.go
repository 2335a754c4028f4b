package kimage

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"kprobelab/kimage/internal/opened"
	"kprobelab/x86"
)

// securityModule is one struct lsm_info.
type securityModule struct {
	name string
	// init is the function that boot calls.
	init x86.Addr
	// order is negative for the first ones, positive for the last; the
	// configuration orders the others.
	order int32
	// exclusive: of these only one is initialised.
	exclusive bool
}

const lsmExclusive = 2

// lsmLayouts are the ways that releases have laid out struct lsm_info: from 5.1
// to 6.18 it begins with the module's name, from 6.19 on with a pointer to struct
// lsm_id, which does; 7.3 has one more initcall. Order and flags have the same place in both.
var lsmLayouts = []struct {
	size  int
	hasID bool
}{{48, false}, {104, true}, {112, true}}

// securityModules reads the table between two symbols, by the layout in which
// every entry has a name.
func (p *bootPatcher) securityModules(start, stop string) (list []securityModule) {
	from, ok1 := p.img.symbolAddr(start)
	to, ok2 := p.img.symbolAddr(stop)
	if !ok1 || !ok2 {
		return p.namelessModules(start)
	}
	if to < from {
		return nil
	}
	for _, l := range lsmLayouts {
		if list = p.securityModulesAs(p.img.bytes(from, int(to-from)), l.size, l.hasID); list != nil {
			return list
		}
	}
	return nil
}

// securityModulesAs is nil where an entry has no name.
func (p *bootPatcher) securityModulesAs(data []byte, size int, hasID bool) (list []securityModule) {
	if len(data)%size != 0 {
		return nil
	}
	for ; len(data) > 0; data = data[size:] {
		at := opened.Abs64(data)
		if hasID {
			id := p.img.bytes(at, 8)
			if id == nil {
				return nil
			}
			at = opened.Abs64(id)
		}
		name := p.img.cString(at)
		if name == "" || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return nil
		}
		m := securityModule{name: name, order: int32(le.Uint32(data[8:])), exclusive: le.Uint64(data[16:])&lsmExclusive != 0}
		for off := 24; off < size && m.init == 0; off += 8 { // the first function of the entry
			if a := opened.Abs64(data[off:]); p.img.inExec(a) {
				m.init = a
			}
		}
		list = append(list, m)
	}
	return list
}

// initialised lists the security modules in the order in which boot initialises
// them (ordered_lsm_init): early ones, first ones, the ones that CONFIG_LSM names
// (only the first exclusive one), last ones.
func (p *bootPatcher) initialised() []securityModule {
	list := p.securityModules("__start_early_lsm_info", "__end_early_lsm_info")
	all := p.securityModules("__start_lsm_info", "__end_lsm_info")
	pick := func(want func(*securityModule) bool) {
		for i := range all {
			if want(&all[i]) {
				list = append(list, all[i])
			}
		}
	}
	pick(func(m *securityModule) bool { return m.order < 0 })
	exclusive := false
	for _, name := range p.moduleOrder(slices.Concat(list, all)) {
		pick(func(m *securityModule) bool {
			if m.name != name || m.order != 0 || m.exclusive && exclusive {
				return false
			}
			exclusive = exclusive || m.exclusive
			return true
		})
	}
	pick(func(m *securityModule) bool { return m.order > 0 })
	return list
}

// moduleOrder finds CONFIG_LSM, which the kernel holds as a string: modules'
// names between commas.
func (p *bootPatcher) moduleOrder(all []securityModule) []string {
	known := map[string]bool{}
	for i := range all {
		known[all[i].name] = true
	}
	for _, s := range p.img.sections {
		if s.Exec {
			continue
		}
		for name := range known {
			if list := orderAt(s.Data, name, known); list != nil {
				return list
			}
		}
	}
	return nil
}

// enoughModules is the number of known modules that a string must name to be taken
// for CONFIG_LSM: distributions also list some that are not built in.
const enoughModules = 3

// orderAt finds a string with the name between commas that names enough modules.
func orderAt(data []byte, name string, known map[string]bool) []string {
	for {
		i := bytes.Index(data, []byte(","+name+","))
		if i < 0 {
			return nil
		}
		start := bytes.LastIndexByte(data[:i], 0) + 1
		text, rest, _ := bytes.Cut(data[start:], []byte{0})
		list, hits := strings.Split(string(text), ","), 0
		for _, n := range list {
			if known[n] {
				hits++
			}
		}
		if hits >= enoughModules {
			return list
		}
		data = rest
	}
}

// securityHook is one struct security_hook_list (6.12): the hook's static calls,
// one for each module that could use it, and this module's function.
type securityHook struct{ calls, function x86.Addr }

const (
	securityHookSize = 24
	// securityCallSize is the size of struct lsm_static_call: key,
	// trampoline, the hook that took it, the static key that it is in use.
	securityCallSize = 32
)

// securityHooks reads a module's hooks from its arrays NAME_hooks or
// NAME_…_hooks.
func (p *bootPatcher) securityHooks(module securityModule, table x86.Range, all []securityModule) (list []securityHook) {
	if table == (x86.Range{}) {
		return p.namelessHooks(module, all)
	}
	for _, s := range p.hookArrays(module.name) {
		data := p.img.bytes(s.Addr, int(s.Size))
		for ; len(data) >= securityHookSize; data = data[securityHookSize:] {
			if h := (securityHook{opened.Abs64(data), opened.Abs64(data[8:])}); table.Contains(h.calls) {
				list = append(list, h)
			}
		}
	}
	return list
}

func (p *bootPatcher) hookArrays(module string) (list []Symbol) {
	for _, s := range p.img.index.all[:p.img.index.image] {
		if s.Type == 'd' && strings.HasSuffix(s.Name, "_hooks") && strings.HasPrefix(s.Name, module+"_") {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b Symbol) int { return cmp.Compare(a.Addr, b.Addr) })
	return list
}

// securityCalls gives each hook of each module the first static call that is
// free, and turns that one's key (6.12; before, hooks are lists in data).
func (p *bootPatcher) securityCalls(turned map[x86.Addr]bool) {
	var table x86.Range // without symbols of data it is not known
	if at, ok := p.img.symbolAddr("static_calls_table"); ok {
		s, _ := p.img.SymbolAt(at)
		table = x86.Range{Start: at, End: at.Add(int64(s.Size))}
	} else if !p.img.bounds.onlyText {
		return
	}
	sc, taken := p.newStaticCalls(tableOwner{img: p.img}), map[x86.Addr]bool{}
	all := p.initialised()
	for _, m := range all {
		for _, h := range p.securityHooks(m, table, all) {
			call := h.calls
			for taken[call] {
				call += securityCallSize
			}
			taken[call] = true
			if entry := p.img.bytes(call, securityCallSize); entry != nil {
				sc.Set(opened.Abs64(entry), opened.Abs64(entry[8:]), h.function)
				turned[opened.Abs64(entry[24:])] = true
			}
		}
	}
}
