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
	n := 0
	for _, p := range Paths() {
		for _, handler := range p.handlers([]string{HandlerGo, HandlerGuest}) {
			res := r.Paths[n]
			n++
			t.Logf("%-9s %-5s %8.0f ns floor %6.0f %v %.1f instr %v crossings %v allocs", res.Path, res.Handler, res.NS, res.Floor, res.Parts, res.Instructions, res.Crossings, res.Allocs)
			require.Equal(t, p.Name, res.Path)
			require.Equal(t, handler, res.Handler)
			require.Equal(t, p.parts, res.Parts, p.Name)
			require.Zero(t, res.Allocs, p.Name)
			require.Len(t, res.Samples, 2)
			require.Equal(t, crossings(&p, handler), res.Crossings, "%s %s", p.Name, handler)
			if p.parts != (Parts{}) {
				require.Positive(t, res.Instructions+res.Traps, p.Name)
			}
		}
	}
	require.Len(t, r.Paths, n)
	for _, f := range r.Floor {
		t.Logf("%s %.0f", f.Name, f.NS)
	}
}

// crossings is how many calls into Go a hit takes: one for a trap, and for what
// goes on after its handler, one for a call of a handler in Go.
func crossings(p *Path, handler string) float64 {
	n := p.parts.Traps
	switch {
	case p.byDebug && handler == HandlerGuest:
		n += 1 // the handler is called from Go
	case p.kind == withPost, p.kind == nestedMiss, p.byDebug:
		n += p.parts.Steps
	}
	if handler != HandlerGuest {
		n += p.parts.Detours + p.parts.Tracers + p.parts.Trampolines
	}
	return n
}

// Many probes elsewhere change nothing of what a hit is made of.
func TestOtherProbes(t *testing.T) {
	r, err := Run(&Options{Rounds: 1, Hits: 300, Paths: []string{"k", "o", "ro"}, Others: []int{1, 10, 5001}, Handlers: []string{HandlerGo}})
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
	_, err = Run(&Options{Handlers: []string{"c"}})
	require.Error(t, err)
	_, err = Run(&Options{Rounds: -1})
	require.Error(t, err)
	_, err = Run(&Options{Others: []int{MaxOthers + 1}})
	require.Error(t, err)
	_, err = Run(&Options{Hits: MaxHits + 1})
	require.Error(t, err)
}
