package bench

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Every path is made of the parts that it says, in every hit, and allocates
// nothing. What it takes is not tested.
func TestRun(t *testing.T) {
	r, err := Run(&Options{Rounds: 2, Hits: 300})
	require.NoError(t, err)
	require.Len(t, r.Floor, len(floorSpecs))
	require.Len(t, r.Paths, len(Paths()))
	for n, p := range Paths() {
		res := r.Paths[n]
		t.Logf("%-9s %-5s %8.0f ns floor %6.0f %v %.1f instr %v crossings %v allocs", res.Path, res.Handler, res.NS, res.Floor, res.Parts, res.Instructions, res.Crossings, res.Allocs)
		require.Equal(t, p.Name, res.Path)
		require.Equal(t, p.handler(), res.Handler)
		require.Equal(t, p.parts, res.Parts, p.Name)
		require.Zero(t, res.Allocs, p.Name)
		require.Len(t, res.Samples, 2)
		require.Equal(t, crossings(&p), res.Crossings, p.Name)
		if p.parts != (Parts{}) {
			require.Positive(t, res.Instructions+res.Traps, p.Name)
		}
	}
	for _, f := range r.Floor {
		t.Logf("%s %.0f", f.Name, f.NS)
	}
}

// crossings returns the number of calls into Go of a hit: one for a trap and its continuation after
// the handler, one for a call of a handler.
func crossings(p *Path) float64 {
	n := p.parts.Traps + p.parts.Detours + p.parts.Tracers + p.parts.Trampolines
	if p.kind == withPost || p.kind == nestedMiss || p.byDebug {
		n += p.parts.Steps
	}
	return n
}

// Many probes elsewhere do not change the parts of a hit.
func TestOtherProbes(t *testing.T) {
	r, err := Run(&Options{Rounds: 1, Hits: 300, Paths: []string{"k", "o", "ro"}, Others: []int{1, 10, 5001}})
	require.NoError(t, err)
	require.Len(t, r.Paths, 9)
	for i, res := range r.Paths {
		require.Equal(t, []int{1, 10, 5001}[i%3], res.Others)
		require.Zero(t, res.Allocs, res.Path)
	}
}

func TestRunRefuses(t *testing.T) {
	_, err := Run(&Options{Paths: []string{"k", "x"}})
	require.ErrorIs(t, err, ErrNoPath)
	_, err = Run(&Options{Rounds: -1})
	require.Error(t, err)
	_, err = Run(&Options{Others: []int{MaxOthers + 1}})
	require.Error(t, err)
	_, err = Run(&Options{Hits: MaxHits + 1})
	require.Error(t, err)
}
