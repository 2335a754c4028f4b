package guestfast

import (
	"fmt"

	"kprobelab/kprobes"
	"kprobelab/x86"
)

// start places all code and tables that there may be a use for. It is done at
// once, because hits are learned during runs, and a caller may put the memory of
// a run back. The order is a matter of speed alone: the engine finds the targets
// of returns and indirect calls in a cache that has 64 places for a page, and in
// this order those of one hit do not displace each other.
func (p *path) start() {
	r, rules := &p.routes, p.in.Config()
	p.err = p.in.PlaceCallbacks()
	r.learned, r.gates, r.chains = map[x86.Addr]bool{}, map[x86.Addr]bool{}, map[chainKey]x86.Addr{}
	r.room = p.alloc(chainRoom)
	r.chain, r.chainAll = p.place("aggr_pre_handler"), p.place("opt_pre_handler")
	p.callout("int3_out", "kprobe_int3_handler.out", p.int3Out)
	p.callout("step_out", "kprobe_post_process.out", p.stepOut)
	r.entry, r.post = p.place("asm_exc_int3"), p.place("asm_exc_int3.post_handler")
	p.calls.lent, p.calls.pools = map[x86.Addr]loan{}, map[x86.Addr]bool{}
	if rules.Kret.Rethook != rules.Kret.HandlerIPIsTrampoline {
		p.startCalls(rules.Kret.Rethook)
	}
	if !rules.Step.FtraceIRQsOff {
		r.sites = p.table("sites")
		p.take(kprobes.WayTracer, "tracer_out", "kprobe_ftrace_handler.guest")
	}
	p.startDetours()
}

// startCalls places the code of entries and returns.
func (p *path) startCalls(rethook bool) {
	c := &p.calls
	if c.none, c.heads = p.alloc(kprobes.InstanceData), p.alloc(8*maxTasks); p.err != nil {
		return
	}
	p.emptyHeads()
	p.code.values["heads"], p.code.values["trampoline"] = c.heads, p.in.Trampoline()
	p.callout("missed_out", "kretprobe_missed.out", p.missed)
	name := "trampoline_handler.guest"
	if rethook {
		name = "arch_rethook_trampoline_callback.guest"
	}
	// In this order no two calls of a hit share a slot in the engine's cache of
	// jumps, which would cost 50 ns (TestJumpCache of internal/bench).
	p.place("kretprobe_missed")
	c.entry = p.place("pre_handler_kretprobe")
	p.take(kprobes.WayReturn, "return_out", name)
	c.asking = p.place("pre_handler_kretprobe.entry_handler")
	c.nothing = p.place("kretprobe_no_handler")
}

// emptyHeads has no task have anything pending.
func (p *path) emptyHeads() {
	p.set(p.calls.none+riNext, uint64(p.calls.none))
	for task := range maxTasks {
		p.set(p.calls.heads+x86.Addr(8*task), uint64(p.calls.none))
	}
}

// startDetours places the routes of detour buffers once the optimizer has
// started.
func (p *path) startDetours() {
	rules := &p.in.Config().Optimize
	if p.routes.detours != 0 || p.in.Callback(kprobes.WayDetour) == 0 || rules.IRQsOff {
		return
	}
	name := "optimized_callback.guest"
	if rules.SSWord {
		name += ".ss"
	}
	p.routes.detours = p.table("detours")
	p.take(kprobes.WayDetour, "optimized_out", name)
}

// take has the hits of a way come to a function, which goes on to what they came
// to before.
func (p *path) take(way kprobes.Way, out, name string) {
	p.code.values[out] = p.in.Callback(way)
	if at := p.place(name); p.err == nil {
		p.err = p.in.SetCallback(way, at)
	}
}

// table makes a table of routes.
func (p *path) table(symbol string) x86.Addr {
	at := p.alloc(tableSize)
	p.code.values[symbol] = at
	return at
}

func (p *path) alloc(n int) (at x86.Addr) {
	if p.err == nil {
		at, p.err = p.m.Alloc(n)
	}
	return at
}

func (p *path) place(name string) (at x86.Addr) {
	if p.err == nil {
		if at, p.err = p.code.place(p.m, name); p.err != nil {
			p.err = fmt.Errorf("%s: %w", name, p.err)
		}
	}
	return at
}

// callout makes a call-out and gives its symbol the value.
func (p *path) callout(symbol, name string, fn func(x86.Addr, *x86.PtRegs)) {
	if p.err == nil {
		p.code.values[symbol], p.err = p.m.Callout(name, fn)
	}
}
