package explore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/kprobes/textpoke"
	"kprobelab/profile"
)

func kernel(t testing.TB, name string) *profile.Config {
	c, ok := profile.Named(name)
	require.True(t, ok, name)
	return c
}

func compile(t testing.TB, name string) *Program {
	p, err := FromLibrary(name)
	require.NoError(t, err, name)
	return p
}

func explore(t testing.TB, p *Program, o Options) *Result {
	t.Helper()
	res, err := p.Explore(context.Background(), o)
	require.NoError(t, err)
	return res
}

// Each scenario of the library has the verdict that it says, on every profile
// that was compared with a kernel, and on the newest. Within few switches a bad one
// may not be found; none is found that is not there.
func TestLibraryHasItsVerdicts(t *testing.T) {
	soak := os.Getenv("KPROBELAB_SOAK") != ""
	for _, name := range Library() {
		p := compile(t, name)
		require.Equal(t, name, p.Scenario().Name)
		for _, k := range append(profile.Names(), "7.3") {
			bound := 1
			switch {
			case soak:
				bound = 2
			case k != profile.Default && (testing.Short() || p.p.s.cpus() > 2):
				continue
			case k == profile.Default && !testing.Short() && p.p.s.cpus() <= 2:
				bound = 2
			}
			t.Run(name+"/"+k, func(t *testing.T) {
				want := p.Scenario().Expected(k)
				res := explore(t, p, Options{Profile: kernel(t, k), Bound: bound})
				if bound < 2 && res.Verdict == OK {
					return
				}
				require.Equal(t, want, res.Verdict, res.Reason)
			})
		}
	}
}

// A bug of the past is found with its switch on, and is not there without.
func TestBugsAreFound(t *testing.T) {
	for _, b := range Switches() {
		t.Run(b.ID, func(t *testing.T) {
			p := compile(t, b.Scenario)
			name := b.Kernel
			if name == "" {
				name = profile.Default
			}
			c := kernel(t, name)
			if !testing.Short() {
				require.Equal(t, OK, explore(t, p, Options{Profile: c, Bound: 2}).Verdict)
			}
			require.NoError(t, b.Set(c))
			res := explore(t, p, Options{Profile: c, Bound: 2})
			require.NotEqual(t, OK, res.Verdict)
			if res.Verdict == Condition {
				return // it is about all runs
			}
			again, err := p.Replay(c, res.Failing.Decisions())
			require.NoError(t, err)
			require.Equal(t, res.Failing.String(), again.String())
		})
	}
	_, err := Find("99")
	require.ErrorContains(t, err, `there is no bug "99"`)
}

// without is a protocol with one step left out.
func without(p textpoke.Protocol, i int) textpoke.Protocol {
	return append(append(textpoke.Protocol{}, p[:i]...), p[i+1:]...)
}

// swapped is a protocol with step i and the next in the other order.
func swapped(p textpoke.Protocol, i int) textpoke.Protocol {
	q := append(textpoke.Protocol{}, p...)
	q[i], q[i+1] = q[i+1], q[i]
	return q
}

// delayed is a protocol whose step i comes last.
func delayed(p textpoke.Protocol, i int) textpoke.Protocol {
	return append(without(p, i), p[i])
}

// Every edit of a protocol is found, or is on the list of edits that kprobes tolerates,
// each with its reason.
func TestEditsOfTheProtocol(t *testing.T) {
	const (
		optimize = "optimize-hit"
		undo     = "unoptimize-hit"
		label    = "jump-label"
		// A kernel that does not look whether an int3 has vanished.
		strict = "6.12"
	)
	spare := map[string]string{
		"optimize-hit without 1 int3":     "the probe's own int3 is there",
		"optimize-hit without 2 sync":     "and everybody has seen it",
		"optimize-hit swapped 2 sync":     "and everybody has seen it",
		"optimize-hit swapped 5 first":    "a CPU that still sees the int3 goes through the detour",
		"jump-label without 7 withdraw":   "the next change takes its place; until then the landing is right",
		"optimize-hit without 5 first":    "the int3 stays, and leads through the detour",
		"optimize-hit without 6 sync":     "a CPU that still sees the int3 goes through the detour",
		"optimize-hit without 0 announce": "kprobes handle the int3: OPTIMIZED is set, and the hit goes through the detour",
		"optimize-hit without 7 withdraw": "the next change takes its place; until then the landing is right",
		"optimize-hit swapped 0 announce": "the probe's own int3 is there before",
		"optimize-hit swapped 1 int3":     "the probe's own int3 is there before",
		"optimize-hit swapped 6 sync":     "kprobes handle what the announcement does not",
		"optimize-hit delayed 0 announce": "kprobes handle the int3, and then the landing is right",
		"optimize-hit delayed 1 int3":     "the int3 stays, and leads through the detour",
		"optimize-hit delayed 2 sync":     "everybody has seen the probe's own int3",
		"optimize-hit delayed 5 first":    "a CPU that still sees the int3 goes through the detour",

		// The int3 is the probe's own: OPTIMIZED is set, and kprobes go through the detour.
		"unoptimize-hit without 0 announce": "kprobes know the int3",
		"unoptimize-hit swapped 0 announce": "kprobes know the int3",
		"unoptimize-hit delayed 0 announce": "kprobes know the int3, and then the landing is right",
		"unoptimize-hit swapped 4 sync":     "kprobes know the int3",
		"unoptimize-hit without 5 withdraw": "the landing stays right while the buffer is there, and the next change takes its place",

		"ftrace-disarm-hit delayed 0 announce": "what the arming has announced stays, and the tracer's handler finds no probe",
		"ftrace-disarm-hit without 7 withdraw": "the next change takes its place; until then the landing is right",
	}
	for _, c := range []struct {
		scenario string
		table    *textpoke.Protocol
		field    string // of the profile, that has the kernel use the table
	}{
		{optimize, &textpoke.Optimize, ""}, {undo, &textpoke.Undo, ""}, {label, &textpoke.Batch, ""}, {"ftrace-disarm-hit", &textpoke.Batch, ""},
		{"call-twice", &textpoke.Arm, ""}, {"unregister-and-call", &textpoke.Disarm, ""},
		{undo, &textpoke.UndoAnnounced, "Optimize.ThreeStepUnoptimize"}, {"optimize-call", &textpoke.Stopped, "Optimize.StopMachine"},
	} {
		good := *c.table
		for i := range good {
			for edit, edited := range map[string]func(textpoke.Protocol, int) textpoke.Protocol{"without": without, "swapped": swapped, "delayed": delayed} {
				if edit != "without" && (i+1 == len(good) || good[i] == good[i+1]) || edit == "delayed" && i+2 == len(good) {
					continue
				}
				name := fmt.Sprintf("%s %s %d %s", c.scenario, edit, i, good[i])
				t.Run(name, func(t *testing.T) {
					defer func() { *c.table = good }()
					*c.table = edited(good, i)
					p := compile(t, c.scenario)
					kernel := kernel(t, strict)
					if c.field != "" {
						require.NoError(t, kernel.SetField(c.field, "true"))
					}
					res := explore(t, p, Options{Profile: kernel, Bound: 1})
					t.Log(res.Verdict, res.Reason)
					if why := spare[name]; why != "" {
						require.Equal(t, OK, res.Verdict, why)
						return
					}
					require.NotEqual(t, OK, res.Verdict)
				})
			}
		}
	}
}

// A schedule that a run has taken is replayed to the byte, from its file.
func TestReplayOfRandomRuns(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	names := Library()
	for range 100 {
		p := compile(t, names[rng.IntN(len(names))])
		c := kernel(t, profile.Default)
		r, err := newRun(p.p, c)
		require.NoError(t, err)
		var picks []string
		for {
			list := r.choices(nil)
			if r.over(len(list)) {
				break
			}
			one := list[rng.IntN(len(list))]
			picks = append(picks, one.decision())
			r.take(one)
		}
		r.close()
		first, err := p.Replay(c, picks)
		require.NoError(t, err)
		read, err := ParseSchedule(first.String())
		require.NoError(t, err)
		again, err := Compile(read.Text)
		require.NoError(t, err)
		second, err := again.Replay(c, read.Decisions())
		require.NoError(t, err)
		require.Equal(t, first.String(), second.String())
	}
}

func TestReplayThatDoesNotFit(t *testing.T) {
	p := compile(t, "register-hit")
	c := kernel(t, profile.Default)
	_, err := p.Replay(c, []string{"cpu7"})
	require.ErrorContains(t, err, `step 1: "cpu7" cannot be`)
	s, err := p.Replay(c, nil)
	require.NoError(t, err)
	require.Equal(t, OK, s.Verdict)
	_, err = p.Replay(c, append(s.Decisions(), "cpu0"))
	require.ErrorContains(t, err, "the run ends after")
}

// An exploration that is cut short says so.
func TestUnfinished(t *testing.T) {
	p := compile(t, "optimize-hit")
	res := explore(t, p, Options{Profile: kernel(t, profile.Default), Bound: 3, MaxRuns: 10})
	require.Equal(t, Unfinished, res.Verdict)
	require.Equal(t, 10, res.Counts.Runs)
}

// Conditions on the ends of runs.
func TestConditions(t *testing.T) {
	const text = `
scenario hits
text f: mov add add add add ret
probe p: f+3
setup register p
cpu0   | cpu1
call f | unregister p
`
	for cond, want := range map[string]Verdict{
		"exists p.hits=1":                     OK,
		"exists p.hits=0 and cpu0.traps=0":    OK,
		"exists p.hits=2":                     Condition,
		"exists p.missed=1":                   Condition,
		"forbidden p.hits=0":                  Condition,
		"forbidden cpu0.pokes=1 and p.hits=3": OK,
		"exists cpu0.detours=1 and p.hits=1":  OK,
	} {
		t.Run(cond, func(t *testing.T) {
			p, err := Compile(text + "\n" + cond + "\n")
			require.NoError(t, err)
			res := explore(t, p, Options{Profile: kernel(t, "6.1"), Bound: 2})
			require.Equal(t, want, res.Verdict, res.Reason)
		})
	}
}

// Walks find a bug, and are the same with the same seed.
func TestWalks(t *testing.T) {
	b, err := Find("34")
	require.NoError(t, err)
	c := kernel(t, profile.Default)
	p := compile(t, b.Scenario)
	walk := func(seed uint64) *Result {
		res, err := p.Walk(context.Background(), Options{Profile: c}, 2000, seed)
		require.NoError(t, err)
		return res
	}
	require.Equal(t, OK, walk(1).Verdict)
	require.NoError(t, b.Set(c))
	first := walk(5)
	require.Equal(t, Unhandled, first.Verdict)
	require.Equal(t, first, walk(5))
}

// Whatever order a run takes, two that differ in the order of independent steps only
// are in the same state.
func TestOrderDecidesTheState(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	runs := 60
	if testing.Short() {
		runs = 8
	}
	for _, name := range Library() {
		p := compile(t, name)
		byTrail := map[uint64]uint64{}
		for range runs {
			r, err := newRun(p.p, kernel(t, profile.Default))
			require.NoError(t, err)
			for {
				list := r.choices(nil)
				if r.over(len(list)) {
					break
				}
				r.take(list[rng.IntN(len(list))])
				was, ok := byTrail[r.trail()]
				require.True(t, !ok || was == r.state, "%s: a dependence is missing", name)
				byTrail[r.trail()] = r.state
			}
			r.close()
		}
	}
}

// A picture has a row for each step, and no markup from a file.
func TestSVG(t *testing.T) {
	s := &Schedule{Scenario: "<x>", Verdict: OK, Lines: []Line{{Step: 1, Lane: "cpu0", What: "store f: cc"}, {Step: 2, Lane: "cpu1", What: "fetch f: 90, stale: <90>"}}}
	svg := s.SVG()
	require.Equal(t, 3, strings.Count(svg, "<rect"))
	require.NotContains(t, svg, "<x>")
	require.NotContains(t, svg, "<90>")
	require.Contains(t, svg, "&lt;90&gt;")
}

// A scenario that does not end, ends.
func TestEndless(t *testing.T) {
	for name, code := range map[string]string{"loop": "jmp:f", "recursion": "call:f ret"} {
		t.Run(name, func(t *testing.T) {
			p, err := Compile("scenario endless\ntext f: " + code + "\nprobe p: f\ncpu0 | cpu1\ncall f | call f\n")
			require.NoError(t, err)
			res := explore(t, p, Options{Profile: kernel(t, profile.Default), Bound: 1})
			require.Contains(t, []Verdict{Livelock, WrongIP}, res.Verdict)
			p, err = Compile("scenario endless\ntext f: mov " + code + "\ntext g: ret\nprobe p: g\ncpu0\ncall f\n")
			require.NoError(t, err)
			res = explore(t, p, Options{Profile: kernel(t, profile.Default), Bound: 1})
			require.Contains(t, []Verdict{Livelock, WrongIP}, res.Verdict)
		})
	}
}
