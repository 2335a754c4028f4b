package kprobes_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/kprobes"
	"kprobelab/profile"
	"kprobelab/x86"
)

// optRun drives the subsystem and the model with the same random choices.
type optRun struct {
	*optWorld
	m      *optModel
	rng    *rand.Rand
	places []int64
	probes []*optMember
	// ran are the handlers that ran in the step under way.
	ran []*optMember
	// inWait: the worker waits for the calls in waits.
	inWait bool
	waits  map[*thread]bool
	failed error
	args   [2]uint64
	counts map[string]int
}

func newOptRun(kernel string, seed uint64) *optRun {
	c, _ := profile.Named(kernel)
	// Without the mistakes that 4.4 and 5.8 make around a jump that waits to be
	// undone: they do run torn instructions, and have tests of their own.
	c.Optimize.RecoversUnlistedOnly = false
	c.Optimize.EnabledNeighboursOnly = false
	c.Optimize.FirstProbeEndsSearch = false
	r := &optRun{
		optWorld: newOptWorldOf(c, seed), m: newOptModel(c), rng: rand.New(rand.NewPCG(seed, 2)),
		places: []int64{0, 3, 7, 11, 15, 19, 23, 28}, waits: map[*thread]bool{}, counts: map[string]int{},
	}
	r.m.jump = func(off int64) []byte {
		d, _ := r.k.Detour(r.place(off))
		return d.Jump[:]
	}
	// Other CPUs run between the steps of every change of text.
	r.k.ObserveOptimizer(func(e kprobes.OptEvent) {
		r.counts[e.Kind.String()]++
		if e.Kind >= kprobes.OptPokeInt3 && e.Kind <= kprobes.OptPokeStopped {
			r.others()
		}
	})
	return r
}

func (r *optRun) fail(format string, args ...any) {
	if r.failed == nil {
		r.failed = fmt.Errorf(format, args...)
	}
}

func (r *optRun) one() *optMember { return r.probes[r.rng.IntN(len(r.probes))] }

// act makes one random step, and gives its name.
func (r *optRun) act() string {
	n := r.rng.IntN(20)
	switch {
	case n < 4:
		return r.register()
	case n < 8 && len(r.probes) > 0:
		return r.change(n)
	case n < 11:
		return r.worker()
	case n == 11 && r.rng.IntN(6) == 0:
		return r.knob()
	case n < 15:
		cpu := r.rng.IntN(2)
		r.steps(cpu, 1+r.rng.IntN(12))
		return "steps"
	default:
		cpu := r.rng.IntN(2)
		r.steps(cpu, 1000)
		return "finish call"
	}
}

func (r *optRun) register() string {
	p := &optMember{off: r.places[r.rng.IntN(len(r.places))], post: r.rng.IntN(4) == 0, disabled: r.rng.IntN(4) == 0}
	if r.broken44(r.m.table[p.off]) {
		return "register: left out"
	}
	p.p = &kprobes.Kprobe{Addr: r.place(p.off)}
	if p.disabled {
		p.p.Flags = kprobes.FlagDisabled
	}
	if p.post {
		p.p.PostHandler = func(*kprobes.Kprobe, *x86.PtRegs, uint64) {}
	}
	p.p.PreHandler = func(*kprobes.Kprobe, *x86.PtRegs) int {
		r.ran = append(r.ran, p)
		return 0
	}
	r.waitOver()
	if err := r.k.RegisterKprobe(p.p); err != nil {
		r.fail("register: %v", err)
	}
	r.m.register(p)
	r.probes = append(r.probes, p)
	return fmt.Sprintf("register %+v", *p)
}

// broken44 are the two places where 4.4 goes wrong by itself. An aggregator that
// it undid by force before it could be removed stays, off every list, and
// whoever registers there is optimized without an int3 before. And one that is
// enabled while it waits to be undone gets an int3 over the jump's first byte,
// but keeps the displacement; once OPTIMIZED is cleared, a hit is stepped and
// comes back into the middle of that.
func (r *optRun) broken44(e *optEntry) bool {
	if e == nil || !r.m.c.Optimize.ClearedWhenQueued {
		return false
	}
	return e.unused() && e.list == "" || e.disabled && e.list == "unoptimizing" && len(e.members) > 0
}

func (r *optRun) change(n int) string {
	p := r.one()
	r.waitOver()
	switch n {
	case 4, 5:
		r.k.UnregisterKprobe(p.p)
		r.m.unregister(p)
		for i, o := range r.probes {
			if o == p {
				r.probes = append(r.probes[:i], r.probes[i+1:]...)
				break
			}
		}
		return fmt.Sprintf("unregister +%d", p.off)
	case 6:
		if err := r.k.DisableKprobe(p.p); err != nil {
			r.fail("disable: %v", err)
		}
		r.m.disable(p)
		return fmt.Sprintf("disable +%d", p.off)
	}
	if r.broken44(r.m.table[p.off]) {
		return "enable: left out"
	}
	if err := r.k.EnableKprobe(p.p); err != nil {
		r.fail("enable: %v", err)
	}
	r.m.enable(p)
	return fmt.Sprintf("enable +%d", p.off)
}

// waitOver is what a caller that wants kprobe_mutex does to a waiting worker:
// it ends, or starts over.
func (r *optRun) waitOver() {
	if !r.inWait {
		return
	}
	r.inWait = false
	if r.held() {
		r.m.queued = true
		return
	}
	r.m.workerDo()
}

func (r *optRun) held() bool {
	for t := range r.waits {
		if !t.done {
			return true
		}
	}
	return false
}

// worker lets it go as far as it can.
func (r *optRun) worker() string {
	was := r.inWait || r.m.queued
	if !r.inWait && r.m.queued {
		// The model goes first up to the wait; nothing of it depends on what
		// the CPUs do between the steps.
		r.undoBoth()
	}
	if !r.inWait {
		return "worker: nothing to do"
	}
	if r.held() {
		if got := r.k.WorkerStep(); got != kprobes.Waiting {
			r.fail("the worker does not wait: %v", got)
		}
		return "worker waits"
	}
	r.inWait = false
	r.toIdle()
	r.m.workerDo()
	return fmt.Sprintf("worker %v", was)
}

// undoBoth brings worker and model to the wait.
func (r *optRun) undoBoth() {
	waiting := false
	old := r.counts["wait"]
	for !waiting {
		if r.k.WorkerStep() != kprobes.Advanced {
			r.fail("the worker is not scheduled")
			return
		}
		waiting = r.counts["wait"] > old
	}
	clear(r.waits)
	for _, t := range r.threads {
		if t != nil && !t.done {
			r.waits[t] = true
		}
	}
	r.m.workerUndo()
	r.inWait = true
}

func (r *optRun) toIdle() {
	for end := r.counts["worker-end"]; r.counts["worker-end"] == end; {
		if r.k.WorkerStep() != kprobes.Advanced {
			r.fail("the worker does not go on")
			return
		}
	}
}

// drained is the wait of a knob for the worker: once through.
func (r *optRun) drained() {
	if len(r.m.lists["optimizing"])+len(r.m.lists["unoptimizing"]) == 0 {
		return
	}
	r.m.workerUndo()
	clear(r.waits)
	for _, t := range r.threads {
		if t != nil && !t.done {
			r.waits[t] = true
		}
	}
	if r.inWait = r.held(); !r.inWait {
		r.m.workerDo()
	}
}

func (r *optRun) knob() string {
	r.waitOver()
	if r.rng.IntN(2) == 0 {
		on := !r.m.allowed
		if err := r.k.SetOptimization(on); err != nil {
			r.fail("sysctl: %v", err)
		}
		r.m.allowed = on
		r.m.all(func(e *optEntry) {
			if on {
				r.m.optimize(e)
			} else {
				r.m.unoptimize(e, false)
			}
		})
		if !on {
			r.drained()
		}
		return fmt.Sprintf("sysctl %v", on)
	}
	on := r.m.off
	if err := r.k.SetEnabled(on); err != nil {
		r.fail("enabled: %v", err)
	}
	r.m.off = !on
	r.m.all(func(e *optEntry) {
		if on {
			r.m.arm(e)
		} else {
			r.m.disarm(e)
		}
	})
	if !on {
		r.drained()
	}
	return fmt.Sprintf("enabled %v", on)
}

// others lets both CPUs run some instructions, in the middle of a change.
func (r *optRun) others() {
	for range r.rng.IntN(6) {
		r.cpuStep(r.rng.IntN(2), false)
	}
}

func (r *optRun) steps(cpu, n int) {
	if t := r.threads[cpu]; t == nil || t.done {
		r.args[cpu] = r.rng.Uint64N(1000)
		r.begin(cpu, r.args[cpu])
	}
	for range n {
		if r.cpuStep(cpu, true) {
			return
		}
	}
}

// cpuStep executes one instruction and compares the handlers that it ran.
// strict is false in the middle of an operation, when the model is not where
// the subsystem is.
func (r *optRun) cpuStep(cpu int, strict bool) bool {
	t := r.threads[cpu]
	if t == nil || t.done {
		return true
	}
	r.ran = r.ran[:0]
	jumped := r.callouts[x86.Addr(t.regs.IP)] != nil
	at, hit := r.hitBy(t)
	done := r.step(cpu)
	if strict && hit {
		want := r.m.wants(at.Sub(r.over), jumped)
		if len(want) != len(r.ran) {
			r.fail("a hit of over+%#x ran %d handlers, not %d", at.Sub(r.over), len(r.ran), len(want))
		} else {
			for i := range want {
				if want[i] != r.ran[i] {
					r.fail("handler %d of over+%#x is another", i, at.Sub(r.over))
				}
			}
		}
	} else if strict && len(r.ran) > 0 {
		r.fail("handlers ran at %#x", t.regs.IP)
	}
	if done {
		if t.err != nil {
			r.fail("cpu %d: %v", cpu, t.err)
		} else if t.regs.AX != r.args[cpu]+overResult {
			r.fail("cpu %d: over(%d) = %d", cpu, r.args[cpu], t.regs.AX)
		}
		r.counts["calls"]++
	}
	return done
}

// hitBy reports whether the next instruction is a hit, and where: an int3 at a
// probe, or the call-out of a detour buffer.
func (r *optRun) hitBy(t *thread) (x86.Addr, bool) {
	ip := x86.Addr(t.regs.IP)
	if r.callouts[ip] != nil {
		frame := r.mem(x86.Addr(t.regs.DI), x86.PtRegsSize)
		at := kprobes.HandleAddr(r.k, binary.LittleEndian.Uint64(frame[120:]))
		r.counts["optimized hits"]++
		return at, at != 0
	}
	if off := ip.Sub(r.over); off >= 0 && off < int64(len(overCode)) && r.mem(ip, 1)[0] == 0xcc {
		r.counts["int3 hits"]++
		return ip, true
	}
	return 0, false
}

// compare is what has to be the same after every step.
func (r *optRun) compare() error {
	if r.failed != nil {
		return r.failed
	}
	if len(r.torn) > 0 {
		return fmt.Errorf("torn: %s", r.torn[0])
	}
	if err := r.k.Err(); err != nil {
		return err
	}
	if got := r.mem(r.over, len(overCode)); string(got) != string(r.m.text) {
		return fmt.Errorf("text is\n% x, not\n% x", got, r.m.text)
	}
	view := make([]byte, len(overCode))
	if r.k.View().CodeAt(r.over, view); string(view) != overCode {
		return fmt.Errorf("the view shows % x", view)
	}
	for _, off := range r.places {
		if err := r.compareEntry(off); err != nil {
			return fmt.Errorf("over+%#x: %w", off, err)
		}
	}
	return nil
}

func (r *optRun) compareEntry(off int64) error {
	p, e := r.k.Find(r.place(off)), r.m.table[off]
	switch {
	case (p == nil) != (e == nil):
		return fmt.Errorf("in the table: %v, not %v", p != nil, e != nil)
	case p == nil:
		return nil
	case p.Disabled() != e.disabled:
		return fmt.Errorf("disabled: %v, not %v", p.Disabled(), e.disabled)
	case p.Optimized() != e.optimized:
		return fmt.Errorf("OPTIMIZED: %v, not %v", p.Optimized(), e.optimized)
	case r.k.Queue(r.place(off)) != e.list:
		return fmt.Errorf("on list %q, not %q", r.k.Queue(r.place(off)), e.list)
	}
	for _, m := range e.members {
		if m.p.Disabled() != m.disabled {
			return fmt.Errorf("member disabled: %v, not %v", m.p.Disabled(), m.disabled)
		}
	}
	return nil
}

// end takes everything away; the text has to be what it was.
func (r *optRun) end() error {
	for len(r.probes) > 0 {
		r.k.UnregisterKprobe(r.probes[0].p)
		r.probes = r.probes[1:]
	}
	for cpu := range 2 {
		if r.threads[cpu] != nil && !r.threads[cpu].done {
			if err := r.finish(cpu); err != nil {
				return err
			}
		}
	}
	r.adopt()
	if err := r.k.Settle(); err != nil {
		return err
	}
	used, garbage := kprobes.Detours(r.k)
	switch {
	case r.text() != r.clean:
		return fmt.Errorf("the text is not restored: % x", r.mem(r.over, len(overCode)))
	case used != garbage:
		return fmt.Errorf("%d detour buffers are lost", used-garbage)
	case len(r.torn) > 0:
		return fmt.Errorf("torn: %s", r.torn[0])
	}
	return r.k.Err()
}

// adopt takes away what a disabled probe left behind that was registered where
// an aggregator waited to be removed (TestRule1_6DisabledProbeRevivesForGood),
// and in 4.4 what was undone by force before it could be removed.
func (r *optRun) adopt() {
	if !r.k.Enabled() {
		if err := r.k.SetEnabled(true); err != nil {
			r.fail("enabled: %v", err)
		}
	}
	for _, off := range r.places {
		if r.k.Find(r.place(off)) != nil {
			orphan := &kprobes.Kprobe{Addr: r.place(off)}
			if err := r.k.RegisterKprobe(orphan); err != nil {
				r.fail("adopt: %v", err)
			}
			r.k.UnregisterKprobe(orphan)
		}
	}
}

// optSteps is how many steps the model is tried with, over all releases.
func optSteps() int {
	if os.Getenv("KPROBELAB_SOAK") != "" {
		return 2_000_000
	}
	if testing.Short() {
		return 20_000
	}
	return 200_000
}

// TestOptimizerAgainstModel: random sequences of register, unregister, enable,
// disable, both knobs, worker steps and hits on overlapping regions, with two
// CPUs that run between all of them and between the steps of every change of
// text, on what they may still have fetched.
func TestOptimizerAgainstModel(t *testing.T) {
	const runLength = 200
	total := map[string]int{}
	for _, kernel := range optKernels {
		t.Run(kernel, func(t *testing.T) {
			for seed := range optSteps() / runLength / len(optKernels) {
				r := newOptRun(kernel, uint64(seed))
				var log []string
				for range runLength {
					log = append(log, r.act())
					if err := r.compare(); err != nil {
						for _, line := range log[max(0, len(log)-40):] {
							t.Log(line)
						}
						t.Fatalf("seed %d, step %d: %v", seed, len(log), err)
					}
				}
				require.NoError(t, r.end(), "seed %d", seed)
				total["steps"] += runLength
				for name, n := range r.counts {
					total[name] += n
				}
			}
		})
	}
	t.Log(total)
	if testing.Short() {
		return // too few for everything to happen
	}
	for _, kind := range []string{"queued", "queued-undo", "dequeued", "kept", "forced", "freeing", "poke-first", "undone", "removed", "freed", "given-up", "optimized hits", "int3 hits"} {
		require.NotZero(t, total[kind], kind)
	}
}
