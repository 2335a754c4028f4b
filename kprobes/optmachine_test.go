package kprobes_test

import (
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

// broken44 reports the two places where 4.4 goes wrong by itself. First, an aggregator that was
// undone by force before it could be removed stays, off every list, and the next probe that is
// registered there is optimized without an int3 before. Second, an aggregator that is enabled while
// it waits to be undone gets an int3 over the jump's first byte, but keeps the displacement; once
// OPTIMIZED is cleared, a hit is stepped and comes back into the middle of the displacement.
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

// waitOver acts as a caller that needs kprobe_mutex does on a waiting worker: the worker ends, or
// starts over.
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

// optSteps returns the number of steps of the model test, summed over all releases.
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
