package report

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/kprobes/hazard"
	"kprobelab/kprobes/rule"
)

// TestRunsNameKernels: of many kernels hazards and refusals name the kernels and every reason, as the
// matrix does by the numbers of its columns.
func TestRunsNameKernels(t *testing.T) {
	harm := []hazard.Finding{{ID: "CALL_PREFIX", Effect: hazard.Oops, Says: "it lands in a wrong place"}}
	cells := []CheckCell{
		{Attaches: true, Runs: RunsInt3, Hazards: harm}, {Attaches: true, Runs: RunsInt3, Hazards: harm},
		{Errno: -22, Reason: rule.Denied, Detail: "it does not return"}, {Errno: -22, Reason: rule.Denied, Detail: "it is on another list"},
	}
	c := Check{
		Images: []CheckImage{{Release: "5.10.1"}, {Release: "6.1.2"}, {Release: "6.12.3"}, {Release: "7.3.4"}},
		Probes: []CheckRow{{Probe: Probe{Text: "fexit/x"}, Cells: cells}},
	}
	var text bytes.Buffer
	require.NoError(t, c.WriteRuns(&text, false))
	require.Contains(t, text.String(), "fexit/x on 5.10.1 to 6.1.2 (2), oops: it lands in a wrong place\n")
	require.NotContains(t, text.String(), "[1")
	require.Contains(t, text.String(), "DENIED: it does not return\n    fexit/x (6.12.3)\n")
	require.Contains(t, text.String(), "DENIED: it is on another list\n    fexit/x (7.3.4)\n")
	text.Reset()
	require.NoError(t, c.WriteText(&text))
	require.Contains(t, text.String(), "fexit/x on 5.10.1 to 6.1.2 (2), oops: it lands in a wrong place\n")
	require.Contains(t, text.String(), "DENIED: it does not return\n    fexit/x (6.12.3)\n")
}
