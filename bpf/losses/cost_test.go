package losses

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMaxCost: a run that takes more instructions than allowed is an error that names the program.
func TestMaxCost(t *testing.T) {
	l := &Ledger{Programs: []Program{{Name: "a", Probe: "f", Cost: Cost{Runs: 2, Instructions: 30, Least: 10, Most: 20}}}}
	require.NoError(t, l.CheckCost(0))
	require.NoError(t, l.CheckCost(20))
	err := l.CheckCost(19)
	require.ErrorIs(t, err, ErrCost)
	require.EqualError(t, err, "a program takes more instructions than --max-cost allows, 19: a at f takes up to 20")
	one := uint64(1)
	l.Programs[0] = Program{Name: "a", Probe: "f", Stages: []Stage{{Name: Ran, N: &one}}}
	require.NoError(t, l.CheckCost(0))
	require.ErrorContains(t, l.CheckCost(19), "of a at f it is not known: an interrupt came into each of 1 runs")
}
