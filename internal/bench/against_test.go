package bench

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// measuredHere is a report as Run makes it, with round figures.
func measuredHere() *Report {
	return &Report{Rounds: 1, Hits: 1, Paths: []Result{
		{Path: "k", Profile: "6.1", Handler: "go", NS: 500, Parts: Parts{Traps: 1, Steps: 1}},
		{Path: "k-tf", Profile: "5.8+PREEMPTION", Handler: "go", NS: 520, Parts: Parts{Traps: 1, Steps: 1}},
		{Path: "b", Profile: "5.10 (no PREEMPTION)", Handler: "go", NS: 400, Parts: Parts{Traps: 1}},
		{Path: "o", Profile: "6.1", Handler: "go", Others: 10, NS: 1, Parts: Parts{Detours: 1}},
		{Path: "o", Profile: "6.1", Handler: "go", NS: 140, Parts: Parts{Detours: 1}},
		{Path: "disabled", Profile: "6.1", Handler: "none", NS: 0.01},
	}}
}

func find(t *testing.T, list []Compared, path, kernel string) (found []Compared) {
	for _, c := range list {
		if c.Path == path && c.Kernel == kernel {
			found = append(found, c)
		}
	}
	require.NotEmpty(t, found, "%s %s", path, kernel)
	return found
}

const (
	bookworm = "6.1.0-56-cloud-amd64"
	bullseye = "5.10.0-46-cloud-amd64 (no PREEMPTION)"
)

// Each path is compared with the same path of the release whose rules it runs on, in each of its
// forms, and never with another release's.
func TestAgainstTheSameRelease(t *testing.T) {
	list := measuredHere().Against(recorded(t))
	k := find(t, list, "k", bookworm)
	require.Len(t, k, 2)
	require.Equal(t, Compared{Path: "k", Form: "plain", Profile: "6.1", Handler: "go", NS: 500, Kernel: bookworm,
		RealNS: 1249.4, RealLow: 1232.73, RealHigh: 1268.08, Times: 2.5}, k[0])
	require.True(t, k[0].Twice())
	b := find(t, list, "b", bullseye)
	require.Equal(t, 1.59, b[0].Times)
	require.False(t, b[0].Twice())
	for _, c := range list {
		require.False(t, c.Path == "k" && c.Kernel == bullseye)
	}
}

// Where only another release was measured, its figure is better than none.
func TestAgainstAnotherRelease(t *testing.T) {
	m, err := ParseReal("kernel release=6.12.1\nbench path=k ns=1000\n")
	require.NoError(t, err)
	k := find(t, measuredHere().Against(m), "k", "6.12.1 (no PREEMPTION)")
	require.Equal(t, 2.0, k[0].Times)
	require.True(t, k[0].Twice())

	// 1.998 times is printed as 2.0, but is not twice.
	m.Rows[0].Samples[0] = 999
	k = find(t, measuredHere().Against(m), "k", "6.12.1 (no PREEMPTION)")
	require.Equal(t, 2.0, k[0].Times)
	require.False(t, k[0].Twice())
}

// Figures with other probes are never compared.
func TestAgainstLeavesOtherProbesOut(t *testing.T) {
	o := find(t, measuredHere().Against(recorded(t)), "o", bookworm)
	require.Len(t, o, 1)
	require.Equal(t, 140.0, o[0].NS)
}

// A path that one side lacks, a failed one, and a free one have no ratio.
func TestAgainstWithoutRatio(t *testing.T) {
	m := recorded(t)
	m.add(Real{Path: "k", Form: "plain", Kernel: bookworm, Preemption: true, Error: "101 calls: 100 hits"})
	list := measuredHere().Against(m)
	require.Equal(t, Compared{Path: "k-tf", Profile: "5.8+PREEMPTION", Handler: "go", NS: 520}, list[2])
	failed := find(t, list, "k", bookworm)[0]
	require.Equal(t, "101 calls: 100 hits", failed.RealError)
	require.Zero(t, failed.RealNS)
	for _, c := range []Compared{failed, find(t, list, "disabled", bookworm)[0], find(t, list, "kro", bullseye)[0]} {
		require.Zero(t, c.Times, c.Path)
		require.False(t, c.Twice())
	}
	require.Empty(t, find(t, list, "kro", bookworm)[0].Profile)
}
