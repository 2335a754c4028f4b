package explore

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/profile"
)

// brute returns every state that any schedule reaches. It tries all schedules, one
// after the other: it has no bound, takes no order for another one, and remembers
// nothing but the states. It shares only the machine with the search.
func brute(t *testing.T, p *Program, c *profile.Config) (states, ends map[uint64]bool, runs int) {
	states, ends = map[uint64]bool{}, map[uint64]bool{}
	byTrail := map[uint64]uint64{}
	var path []int
	for {
		r, err := newRun(p.p, c)
		require.NoError(t, err)
		runs++
		var widths []int
		for depth := 0; ; depth++ {
			list := r.choices(nil)
			if r.over(len(list)) {
				break
			}
			if depth == len(path) {
				path = append(path, 0)
			}
			widths = append(widths, len(list))
			r.take(list[path[depth]])
			states[r.state] = true
			// Runs that differ in the order of independent steps only are in the same
			// state.
			was, ok := byTrail[r.trail()]
			require.True(t, !ok || was == r.state, "a dependence is missing")
			byTrail[r.trail()] = r.state
		}
		require.Empty(t, r.verdict, r.reason)
		ends[r.state] = true
		r.close()
		path = path[:len(widths)]
		for len(path) > 0 && path[len(path)-1]+1 == widths[len(path)-1] {
			path = path[:len(path)-1]
		}
		if len(path) == 0 {
			return states, ends, runs
		}
		path[len(path)-1]++
	}
}

// The search reaches the states that all schedules reach, in fewer runs, whichever
// way it leaves schedules out.
func TestSearchAgainstBruteForce(t *testing.T) {
	for name, text := range map[string]string{
		"three_calls": `
scenario three-calls
text f: mov add add ret
probe p: f+11 post
cpu0   | cpu1   | cpu2
call f | call f | call f
`,
		"hit_and_call": `
scenario hit-and-call
text f: mov ret
text g: mov ret
probe p: f post
probe q: g post
setup register p
cpu0   | cpu1
call f | call g
`,
		"disable": `
scenario disable
text f: mov ret
probe p: f post
setup register p
cpu0   | cpu1
call f | disable p
`,
		"register": `
scenario register
text f: mov ret
probe p: f post
cpu0   | cpu1
call f | register p
`,
		"interrupt_in_a_hit": `
scenario interrupted
text f: mov ret
probe p: f post
setup register p
cpu0   | cpu0.nmi
call f | call f
`,
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Compile(text)
			require.NoError(t, err)
			c := kernel(t, profile.Default)
			states, ends, runs := brute(t, p, c)
			t.Logf("all schedules: %d runs, %d states, %d ends", runs, len(states), len(ends))
			for _, how := range []Reduction{ByState, ByOrder} {
				res := explore(t, p, Options{Profile: c, Bound: -1, Reduction: how})
				t.Logf("reduction %d: %+v", how, res.Counts)
				require.Equal(t, OK, res.Verdict)
				require.Len(t, states, res.Counts.States)
				require.Len(t, ends, res.Counts.Ends)
				require.LessOrEqual(t, res.Counts.Runs, runs)
			}
		})
	}
}
