package pool

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/bounded"
)

// TestAccount: the peak is of the instances in use, what was wanted is of the calls without one too, and the holders are the ones at that moment.
func TestAccount(t *testing.T) {
	a := Account[string]{}
	asked := 0
	who := func(name string) func() Place {
		return func() Place { asked++; return Place{PID: len(name), Comm: name, Stack: []string{"f", "g"}} }
	}
	a.Enter("long", false, who("long"))
	a.Enter("one", false, who("one"))
	a.Leave("one", false)
	a.Enter("one", true, who("one"))
	a.Enter("one", true, who("one"))
	require.Equal(t, 2, a.Peak)
	require.Equal(t, 3, a.Wanted)
	require.Equal(t, []Place{{3, "one", 2, []string{"f", "g"}}, {4, "long", 1, []string{"f", "g"}}}, a.Holders)
	require.Equal(t, 3, asked, "of a task that comes back, again")
	a.Leave("one", true)
	a.Leave("one", true)
	a.Leave("long", false)
	a.Leave("long", false) // nothing is left
	a.Enter("new", false, who("new"))
	require.Equal(t, "long", a.Holders[1].Comm, "no higher peak")
	a.Probe, a.MaxActive, a.Missed = "f", 2, 2
	var b strings.Builder
	a.Write(&b)
	require.Equal(t, "return instances of f: maxactive 2, at most 2 in use at once, 2 calls without one\n"+
		"  the smallest maxactive that would have lost none: 3\n"+
		"                  2 in one (3): f < g\n                  1 in long (4): f < g\n", b.String())
	a.AtLeast = true
	b.Reset()
	a.Write(&b)
	require.Contains(t, b.String(), "none: at least 3\n")
}

// TestAccountOfManyTasks: the first tasks are named, and the others are counted together.
func TestAccountOfManyTasks(t *testing.T) {
	a := Account[int]{}
	for i := range bounded.LossTasks + 5 {
		a.Enter(i, false, func() Place { return Place{PID: i, Comm: fmt.Sprint(i)} })
	}
	require.Len(t, a.Holders, bounded.LossTasks+1)
	require.Equal(t, Place{Comm: "others", N: 5}, a.Holders[bounded.LossTasks])
}
