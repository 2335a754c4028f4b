package hazard

import (
	"kprobelab/decoder"
	"kprobelab/kimage"
	"kprobelab/x86"
)

// stretch is a part of a function.
type stretch int

// The stretches. The atomic instruction of rcu_dynticks_eqs_enter and _exit tells RCU
// that the CPU is idle, or is not: on its idle side, the int3 exception calls the function.
const (
	allOfIt stretch = iota
	upToAtomic
	pastAtomic
)

// onPath are the functions that the int3 exception runs outside of the kprobes handler
// (do_int3 before 5.8: poke_int3_handler, ist_enter, the handler, ist_exit). A kernel that has some of
// them on its blacklist refuses those: 5.1 put the first three there.
var onPath = map[string]struct {
	part  stretch
	after bool
}{
	"poke_int3_handler":      {part: allOfIt},
	"ist_enter":              {part: allOfIt},
	"rcu_nmi_enter":          {part: allOfIt},
	"rcu_dynticks_eqs_exit":  {part: upToAtomic},
	"ist_exit":               {part: allOfIt, after: true},
	"rcu_nmi_exit":           {part: allOfIt, after: true},
	"rcu_dynticks_eqs_enter": {part: pastAtomic, after: true},
}

func int3Path(p *point) (Effect, string) {
	sym, ok := p.view.SymbolAt(p.at)
	if !ok {
		return "", ""
	}
	f, ok := onPath[sym.Name]
	if !ok || !p.within(sym, f.part) {
		return "", ""
	}
	when := "as often as a CPU comes out of idle"
	if f.part == allOfIt {
		when = "at every hit of any probe in the kernel"
	}
	if f.after {
		return Oops, "the exception runs " + sym.Name + " on its way out, " + when + ": it hits the int3 again, until the kernel stops with BUG or the stack ends"
	}
	return Oops, "the exception runs " + sym.Name + " before it comes to the kprobes handler, " + when + ": it hits the int3 again, until the stack ends"
}

// within reports whether the point is in a part of its function.
func (p *point) within(sym kimage.Symbol, part stretch) bool {
	if part == allOfIt {
		return true
	}
	atomic, ok := p.atomic(sym)
	return ok && (p.at <= atomic) == (part == upToAtomic)
}

// atomic is the first xadd of a function.
func (p *point) atomic(sym kimage.Symbol) (x86.Addr, bool) {
	var buf [decoder.MaxInsnSize]byte
	for at := sym.Addr; at < sym.Addr.Add(int64(sym.Size)); {
		b := buf[:p.view.CodeAt(at, buf[:])]
		i, err := decoder.Decode(b)
		if err != nil {
			return 0, false
		}
		op := i.Bytes()
		for len(op) > 2 && (decoder.IsLegacyPrefix(op[0]) || op[0]&0xF0 == 0x40) {
			op = op[1:]
		}
		if len(op) > 1 && op[0] == 0x0F && op[1]&0xFE == 0xC0 {
			return at, true
		}
		at = at.Add(int64(len(i.Bytes())))
	}
	return 0, false
}
