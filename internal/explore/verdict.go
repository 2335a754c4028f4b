package explore

import (
	"bytes"

	"kprobelab/x86"
)

// Verdict is the outcome of a run.
type Verdict string

// The verdicts. The worst of a scenario's runs is the first that was found.
const (
	// OK: nothing went wrong.
	OK Verdict = "ok"
	// Torn: a CPU executed bytes that were never an instruction.
	Torn Verdict = "torn"
	// Unhandled: nothing handles an int3 or a single-step: an oops.
	Unhandled Verdict = "int3"
	// WrongIP: a CPU went where no instruction is.
	WrongIP Verdict = "wrong-ip"
	// WrongResult: a function returned something else.
	WrongResult Verdict = "result"
	// Lost: the handler of an armed probe did not run.
	Lost Verdict = "lost"
	// Double: a handler ran more often than the CPU came by, or after its probe was
	// unregistered or disabled.
	Double Verdict = "double"
	// UseAfterFree: a slot, a buffer or a probe was used after it was freed.
	UseAfterFree Verdict = "use-after-free"
	// Deadlock: no task can continue.
	Deadlock Verdict = "deadlock"
	// Livelock: the run does not end.
	Livelock Verdict = "livelock"
	// Text: the text is not the original, after all probes are unregistered.
	Text Verdict = "text"
	// Bug: the subsystem reports a BUG.
	Bug Verdict = "bug"
	// Refused: an action was refused.
	Refused Verdict = "refused"
	// Accepted: an action that has to be refused was not.
	Accepted Verdict = "accepted"
	// Condition: a forbidden end was reached, or no run reached one that exists.
	Condition Verdict = "condition"
	// Unfinished: the exploration was ended before all runs were tried.
	Unfinished Verdict = "unfinished"
)

// Verdicts lists them all.
func Verdicts() []Verdict {
	return []Verdict{
		OK, Torn, Unhandled, WrongIP, WrongResult, Lost, Double, UseAfterFree, Deadlock, Livelock, Text, Bug, Refused, Accepted, Condition, Unfinished,
	}
}

// judge checks a call that has ended: its result against the one without probes, and the runs of
// the handlers against the passes of their probes.
func (r *run) judge(t *task, name string) {
	if want, ok := r.w.reference(name, uint64(t.n+1)); ok && t.regs.AX != want {
		r.fail(WrongResult, "%s: %s(%d) = %d, not %d", t.name, name, t.regs.DI, t.regs.AX, want)
		return
	}
	for _, p := range r.probes {
		steady := p.epoch == t.call.epochs[p]
		passes, hits := t.call.passes[p.at], t.call.hits[p]
		counted := hits + t.call.missed[p.at]
		switch {
		case steady && p.on && counted < passes:
			r.fail(Lost, "%s: %s passed %s %d times, and its handler ran %d times", t.name, name, p.Name, passes, counted)
		case steady && !p.on && hits > 0:
			r.fail(Double, "%s: the handler of %s ran in a call that began after it was taken out", t.name, p.Name)
		case steady && p.on && p.Return && !t.exited && t.call.returns[p] < hits:
			r.fail(Lost, "%s: %s is to tell %d returns of %s, and its handler ran %d times", t.name, p.Name, hits, name, t.call.returns[p])
		case steady && p.on && p.Post && t.call.posts[p] < hits:
			r.fail(Lost, "%s: %s was hit %d times in %s, and its post handler ran %d times", t.name, p.Name, hits, name, t.call.posts[p])
		case t.call.returns[p] > hits:
			r.fail(Double, "%s: the return handler of %s ran %d times, for %d calls", t.name, p.Name, t.call.returns[p], hits)
		case hits > passes:
			r.fail(Double, "%s: %s passed %s %d times, and its handler ran %d times", t.name, name, p.Name, passes, hits)
		}
	}
}

// reference returns the result of a function without probes.
func (w *world) reference(name string, di uint64) (uint64, bool) {
	key := resultKey{name, di}
	if v, ok := w.results[key]; ok {
		return v.ax, v.ends
	}
	bare := &world{program: w.program, mem0: w.text[:], stack: make([]byte, 2*stackSize), cpus: make([]core, 1)}
	bare.run = &run{w: bare, free: true}
	t := &task{w: bare, calling: true}
	t.regs = x86.PtRegs{DI: di, IP: uint64(w.program.at(name)), SP: uint64(stackBase) + stackSize, Flags: x86.FlagIF | x86.FlagFixed}
	t.push(uint64(magic))
	for range 10000 {
		if x86.Addr(t.regs.IP) == magic || t.exited || bare.run.verdict != "" {
			break
		}
		t.step()
	}
	v := result{t.regs.AX, x86.Addr(t.regs.IP) == magic}
	w.results[key] = v
	return v.ax, v.ends
}

type resultKey struct {
	name string
	di   uint64
}

type result struct {
	ax   uint64
	ends bool
}

// finish takes all probes out, when all tasks are done, and looks at the text.
func (r *run) finish() {
	r.conditions()
	r.free = true
	w, k := r.w, r.w.k
	r.cur = &task{w: w, name: "end", cpu: len(w.cpus) - 1}
	w.cpu = r.cur.cpu
	for _, p := range r.probes {
		if p.used {
			r.unregister(p)
		}
	}
	if err := k.Settle(); err != nil {
		r.fail(Bug, "the worker does not end: %v", err)
	}
	if err := k.Err(); err != nil {
		r.fail(Bug, "%v", err)
	}
	if err := k.Text().Finish(); err != nil {
		r.fail(Bug, "%v", err)
	}
	r.compareText()
}

func (r *run) compareText() {
	want := append([]byte(nil), r.w.text[:r.w.end]...)
	for _, s := range r.w.sites {
		off := s.at.Sub(textBase)
		if bytes.Equal(r.w.mem0[off:off+5], s.jmp) {
			copy(want[off:], s.jmp)
		}
	}
	if r.killedFtrace {
		for at := range r.w.fentry {
			off := at.Sub(textBase)
			copy(want[off:off+5], r.w.mem0[off:])
		}
	}
	for _, m := range r.w.s.Modules {
		if t, _ := r.w.ModuleText(m.Name); r.w.gone[m.Name] {
			copy(want[t.Text.Start.Sub(textBase):t.Text.End.Sub(textBase)], r.w.mem0[t.Text.Start.Sub(textBase):])
		}
	}
	for _, k := range r.killed {
		copy(want[k.Start.Sub(textBase):k.End.Sub(textBase)], r.w.mem0[k.Start.Sub(textBase):])
	}
	for i := range want {
		if want[i] != r.w.mem0[i] {
			at := textBase.Add(int64(i))
			r.fail(Text, "%s is %02x and was %02x, with all probes unregistered", r.w.symbolic(at), r.w.mem0[i], want[i])
			return
		}
	}
}

// conditions notes which of the scenario's conditions hold at the end.
func (r *run) conditions() {
	for _, c := range r.w.s.Exists {
		r.held = append(r.held, r.holds(c))
	}
	for _, c := range r.w.s.Forbidden {
		if r.holds(c) {
			r.fail(Condition, "a forbidden end: %s", c)
		}
	}
}

func (r *run) holds(c Cond) bool {
	for _, v := range c {
		if r.value(v) != v.N {
			return false
		}
	}
	return true
}

// missed counts the hits and the calls that a probe has missed.
func (p *probe) missed() int { return int(p.kp.Nmissed + p.rp.Nmissed) }

func (r *run) value(v Value) int {
	if p := r.named(v.Of); p != nil {
		switch v.What {
		case "hits":
			return p.hits
		case "returns":
			return p.returns
		case "optimized":
			if e := r.w.k.Find(p.at); e != nil && e.Optimized() {
				return 1
			}
			return 0
		}
		return p.missed()
	}
	for _, t := range r.tasks {
		if t.name != v.Of {
			continue
		}
		switch v.What {
		case "traps":
			return t.traps
		case "detours":
			return t.detours
		case "pokes":
			return t.pokes
		}
	}
	return 0
}
