package optimized

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/internal/engine"
	"kprobelab/kimage"
	"kprobelab/kprobes"
	"kprobelab/machine"
	"kprobelab/profile"
	"kprobelab/x86"
)

// patcher is the machine, with the steps that a test leaves out.
type patcher struct {
	*machine.Machine
	leaveOut string
}

func (p patcher) SetTraps(t x86.Traps) { p.Machine.SetTraps(t) }

func (p patcher) PokeTextNoSync(addr x86.Addr, b []byte) error {
	if p.leaveOut == "tail" && len(b) == 4 {
		return nil
	}
	return p.Machine.PokeTextNoSync(addr, b)
}

func (p patcher) TaskSwitches(task int) (uint64, bool, bool) {
	n, inside, ok := p.Machine.TaskSwitches(task)
	return n, inside && p.leaveOut != "wait", ok
}

// cpusRun has tasks on two CPUs call a function, one instruction at a time, while probes at random
// places of the function are registered and unregistered, become jumps and are undone.
type cpusRun struct {
	k    *kprobes.Kprobes
	m    *machine.Machine
	rng  *rand.Rand
	hits int
	seen map[kprobes.EventKind]int
}

// called is the function, and where in it probes can be optimized: they overlap.
const called = "gcd"

func newCpusRun(t testing.TB, kernel, leaveOut string, seed uint64) *cpusRun {
	c, _ := profile.Named(kernel)
	img, err := kimage.FromBytes("guest", kprobelab.GuestELF(), &kimage.Options{Profile: c})
	require.NoError(t, err)
	m, err := engine.New("", img, &machine.Options{CPUs: 2, Seed: int64(seed), Slice: 2, EveryInstruction: true})
	require.NoError(t, err)
	r := &cpusRun{m: m, rng: rand.New(rand.NewPCG(seed, 3)), seen: map[kprobes.EventKind]int{}}
	r.k = kprobes.New(patcher{m, leaveOut}, img, c)
	require.NoError(t, r.k.InitOptprobes())
	r.k.Observe(func(e kprobes.Event) { r.seen[e.Kind]++ })
	return r
}

// lets the CPUs run a few slices.
func (r *cpusRun) slices(n int) error {
	return r.m.RunUntil(func() bool { n--; return n < 0 })
}

// play makes one run. The error is a task's or the subsystem's.
func (r *cpusRun) play(places []x86.Addr) error {
	var tasks []*machine.Task
	for range 3 {
		var calls []machine.Invocation
		for range 40 {
			calls = append(calls, machine.Invoke(called, 48, 18))
		}
		task, err := r.m.Go("caller", calls...)
		if err != nil {
			return err
		}
		tasks = append(tasks, task)
	}
	for range 6 {
		if err := r.life(places); err != nil {
			return err
		}
	}
	if err := r.m.Run(); err != nil {
		return err
	}
	for _, task := range tasks {
		for _, res := range task.Results() {
			if res.Ret != 6 {
				return fmt.Errorf("%s(48, 18) = %d", called, res.Ret)
			}
		}
	}
	return r.k.Err()
}

// life takes one or two probes from registration to removal.
func (r *cpusRun) life(places []x86.Addr) error {
	var probes []*kprobes.Kprobe
	for range 1 + r.rng.IntN(2) {
		p := &kprobes.Kprobe{Addr: places[r.rng.IntN(len(places))]}
		p.PreHandler = func(*kprobes.Kprobe, *x86.PtRegs) int { r.hits++; return 0 }
		if err := r.slices(r.rng.IntN(20)); err != nil {
			return err
		}
		if err := r.k.RegisterKprobe(p); err != nil {
			return err
		}
		probes = append(probes, p)
	}
	if err := r.worker(); err != nil {
		return err
	}
	if err := r.slices(r.rng.IntN(400)); err != nil {
		return err
	}
	for _, p := range probes {
		r.k.UnregisterKprobe(p)
	}
	return r.worker()
}

// worker runs the optimizer's worker to its end, with the CPUs running between
// its steps.
func (r *cpusRun) worker() error {
	for {
		if err := r.slices(r.rng.IntN(12)); err != nil {
			return err
		}
		if r.k.WorkerStep() == kprobes.Idle {
			return nil
		}
	}
}

// Two CPUs run anywhere in a function, and between all steps, while probes of overlapping regions
// become jumps and are undone: every call returns the right result, and the text is restored.
// Without one of the waits or writes, the test fails.
func TestCPUsRunBetweenTheSteps(t *testing.T) {
	seeds := uint64(12)
	if testing.Short() {
		seeds = 2
	}
	for _, c := range []struct {
		kernel, leaveOut string
	}{{"5.10", ""}, {"6.1", ""}, {"6.12", ""}, {"6.1", "wait"}, {"6.1", "tail"}} {
		name := c.kernel
		if c.leaveOut != "" {
			name += "_without_the_" + c.leaveOut
		}
		t.Run(name, func(t *testing.T) {
			seen, hits := map[kprobes.EventKind]int{}, 0
			var err error
			for seed := uint64(0); err == nil && (seed < seeds || c.leaveOut != "" && seed < 200); seed++ {
				r := newCpusRun(t, c.kernel, c.leaveOut, seed)
				places, text := r.places(t)
				err = r.play(places)
				if err == nil && c.leaveOut == "" {
					require.Equal(t, text, r.text(t), "seed %d", seed)
					require.Zero(t, r.k.Registered())
				}
				for kind, n := range r.seen {
					seen[kind] += n
				}
				hits += r.hits
				r.m.Close()
			}
			if c.leaveOut != "" {
				require.Error(t, err, "nobody noticed")
				t.Log(err)
				return
			}
			require.NoError(t, err)
			t.Logf("%d hits: %d by int3, %d of those through the detour, %d by the jump, %d in the middle of a poke",
				hits, seen[kprobes.EventTrap], seen[kprobes.EventDetour], seen[kprobes.EventOptimized], seen[kprobes.EventPoke])
			require.NotZero(t, seen[kprobes.EventDetour])
			require.NotZero(t, seen[kprobes.EventOptimized])
		})
	}
}

// places returns the addresses of the function at which probes can be optimized, and its text.
func (r *cpusRun) places(t *testing.T) (list []x86.Addr, text []byte) {
	sym := r.k.View().Lookup(called)[0]
	for at := sym.Addr; at < sym.Addr.Add(int64(sym.Size)); at++ {
		p := &kprobes.Kprobe{Addr: at, Flags: kprobes.FlagDisabled}
		if r.k.RegisterKprobe(p) != nil {
			continue
		}
		if _, ok := r.k.Detour(at); ok {
			list = append(list, at)
		}
		r.k.UnregisterKprobe(p)
	}
	require.Greater(t, len(list), 3)
	return list, r.text(t)
}

func (r *cpusRun) text(t *testing.T) []byte {
	sym := r.k.View().Lookup(called)[0]
	b := make([]byte, sym.Size)
	require.NoError(t, r.m.ReadMem(sym.Addr, b))
	return b
}
