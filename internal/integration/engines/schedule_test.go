//go:build unicorn && cgo && linux && amd64

package engines

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"kprobelab/emu"
	"kprobelab/interp"
	"kprobelab/kimage"
	"kprobelab/machine"
)

// guest is a machine of either engine, with the log of its switches.
type guest struct {
	*machine.Machine
	before *machine.Snapshot
	log    []string
}

func newGuest(t require.TestingT, open func(machine.Source, *machine.Options) (*machine.Machine, error), img *kimage.Image, o *machine.Options) *guest {
	m, err := open(img, o)
	require.NoError(t, err)
	before, err := m.Snapshot()
	require.NoError(t, err)
	g := &guest{Machine: m, before: before}
	m.OnSwitch(func(cpu int, task *machine.Task) {
		g.log = append(g.log, fmt.Sprintf("%d: cpu %d, task %d", g.Now(), cpu, task.Number()))
	})
	return g
}

// outcome is all that a run showed.
func (g *guest) outcome(t require.TestingT) []string {
	err := g.Run()
	list := append(g.log, fmt.Sprint(err), fmt.Sprint(g.Instructions(), g.Now()), string(g.Console()))
	for _, task := range g.Tasks() {
		list = append(list, fmt.Sprint(task.Name, task.Results(), task.Err(), task.Switches()))
	}
	for _, r := range g.Dirty(g.before) {
		b := make([]byte, r.Len())
		require.NoError(t, g.ReadMem(r.Start, b))
		list = append(list, fmt.Sprintf("%s: %x", r.Start, b))
	}
	return list
}

// For the same seed both engines choose the same tasks at the same times, and end
// with the same results, clock and memory.
func TestTheSameSeedIsTheSameRun(t *testing.T) {
	img, err := kimage.Open("../../../testdata/guest.elf", nil)
	require.NoError(t, err)
	calls := []func(n int) machine.Invocation{
		func(n int) machine.Invocation { return machine.Invoke("worker", n) },
		func(n int) machine.Invocation { return machine.Invoke("busy_worker", n) },
		func(n int) machine.Invocation { return machine.Invoke("sleepy_worker", n) },
		func(n int) machine.Invocation { return machine.Invoke("gcd", n*12, 18) },
		func(n int) machine.Invocation { return machine.Invoke("current_task_number") },
	}
	rapid.Check(t, func(t *rapid.T) {
		o := &machine.Options{
			CPUs: rapid.IntRange(1, 4).Draw(t, "cpus"), Seed: rapid.Int64().Draw(t, "seed"),
			Slice: rapid.Uint64Range(1, 300).Draw(t, "slice"), EveryInstruction: rapid.Bool().Draw(t, "every"), HeapSize: 1 << 20,
		}
		u, g := newGuest(t, emu.New, img, o), newGuest(t, interp.New, img, o)
		defer u.Close()
		defer g.Close()
		for n := range rapid.IntRange(1, 5).Draw(t, "tasks") {
			var list []machine.Invocation
			for range rapid.IntRange(1, 3).Draw(t, "calls") {
				list = append(list, rapid.SampledFrom(calls).Draw(t, "call")(rapid.IntRange(0, 30).Draw(t, "argument")))
			}
			for _, m := range []*guest{u, g} {
				_, err := m.Go(fmt.Sprint("t", n), list...)
				require.NoError(t, err)
			}
		}
		require.Equal(t, u.outcome(t), g.outcome(t))
	})
}

// What differs is shown to differ: a row of the table that does not is to go.
func TestDifferencesAreStillThere(t *testing.T) {
	for _, d := range differences {
		if d.example == "" {
			continue
		}
		t.Run(d.name, func(t *testing.T) {
			p := newPair(t)
			defer p.close()
			in := &input{code: unhex(t, d.example), data: make([]byte, 4*pageSize)}
			for n := range 16 {
				*in.regs.Reg(n) = uint64(dataBase) + pageSize
			}
			in.regs.SP, in.regs.Flags = uint64(dataBase)+2*pageSize, 0x202
			for i := range in.data {
				in.data[i] = byte(i)
			}
			u, g := p.u.run(t, in), p.g.run(t, in)
			require.NotEmpty(t, difference(&u, &g))
		})
	}
}
