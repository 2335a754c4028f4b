package run

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/bpf/losses"
)

// TestMaxCost: a run that takes more instructions than allowed is an error of the kind refused, which is exit code 1.
func TestMaxCost(t *testing.T) {
	l := &losses.Ledger{Programs: []losses.Program{{Name: "a", Probe: "f", Cost: losses.Cost{Runs: 2, Instructions: 30, Least: 10, Most: 20}}}}
	require.NoError(t, refusedCost(l, 0))
	require.NoError(t, refusedCost(l, 20))
	err := refusedCost(l, 19)
	require.ErrorIs(t, err, ErrCost)
	require.EqualError(t, err, "a program takes more instructions than --max-cost allows, 19: a at f takes up to 20")
	kind := (*Error)(nil)
	require.ErrorAs(t, err, &kind)
	require.Equal(t, Refused, kind.Kind)
}

// TestLedgerText: a ledger is one event, for people and as JSON, and a stage that is not known is no number.
func TestLedgerText(t *testing.T) {
	n := uint64(7)
	l := &losses.Ledger{Programs: []losses.Program{{Name: "a", Kind: "kprobe", Probe: "f", Stages: []losses.Stage{
		{Name: losses.Calls, Why: "too many"}, {Name: losses.Reached, N: &n, Lost: []losses.Loss{{Cause: losses.Active, N: 3, In: []losses.Place{{PID: 1, Comm: "init", N: 3}}}}}}}},
		Notes: []string{"something was not seen"}}
	var log, out strings.Builder
	text := NewText(&out, &TextOptions{Log: &log})
	require.NoError(t, text.Put(Lost{l}))
	require.Contains(t, log.String(), "?  calls: too many\n")
	require.Contains(t, log.String(), "-3    prog->active")
	require.Contains(t, log.String(), "3 in init (1)\n")
	require.Contains(t, log.String(), "note: something was not seen\n")
	records := records(Lost{l})
	require.Len(t, records, 1)
	require.Equal(t, l, records[0].Losses)
}
