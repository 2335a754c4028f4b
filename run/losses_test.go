package run

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/bpf/losses"
)

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
