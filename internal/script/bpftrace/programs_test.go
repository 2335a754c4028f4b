package bpftrace

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/script/host"
)

// An entry of the tool's list that the kernel does not have takes no other entry's probe.
func TestProbesOfEntries(t *testing.T) {
	one, three := &host.Probe{Symbol: "one"}, &host.Probe{Symbol: "three"}
	for name, c := range map[string]struct {
		pt   point
		list []string
		want []*host.Probe
	}{
		"each in order":           {point{expansion: each, probes: []*host.Probe{one, three}, matched: []string{"one", "one"}}, []string{"one", "one"}, []*host.Probe{one, three}},
		"the middle is not there": {point{expansion: linked, probes: []*host.Probe{one, three}, matched: []string{"one", "three"}}, []string{"one", "two", "three"}, []*host.Probe{one, nil, three}},
		"the first is not there":  {point{expansion: linked, probes: []*host.Probe{three}, matched: []string{"three"}}, []string{"one", "three"}, []*host.Probe{nil, three}},
		"no pattern":              {point{probes: []*host.Probe{one}, matched: []string{""}}, []string{"one"}, []*host.Probe{one}},
		"no probes":               {point{}, []string{"one"}, []*host.Probe{nil}},
	} {
		t.Run(name, func(t *testing.T) {
			for i, m := range c.list {
				got := c.pt.probesOf(i, m)
				if c.want[i] == nil {
					require.Empty(t, got, m)
					continue
				}
				require.Equal(t, []*host.Probe{c.want[i]}, got, m)
			}
		})
	}
}
