package profile

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLineSaysThePreemptionThatIs: of each named profile, with its preemption and with the
// other one.
func TestLineSaysThePreemptionThatIs(t *testing.T) {
	for _, name := range All() {
		c, ok := Named(name)
		require.True(t, ok)
		require.Equal(t, c.Describes, c.Line())
		if !strings.Contains(c.Describes, "PREEMPTION") {
			continue
		}
		turned := *c
		turned.Preemption = !c.Preemption
		line := turned.Line()
		require.Equal(t, !turned.Preemption, strings.Contains(line, "no PREEMPTION"), line)
		require.Equal(t, 1, strings.Count(line, "PREEMPTION"), line)
		if strings.Contains(c.Describes, " boosting") {
			require.Equal(t, turned.Preemption, strings.Contains(line, "no boosting"), line)
		}
	}
	c, _ := Named("4.14")
	c.Preemption = true
	require.Equal(t, "Linux 4.14, PREEMPTION: jprobes, trap-flag stepping, no boosting, optimization", c.Line())
	c, _ = Named("6.9")
	c.Preemption = false
	require.Equal(t, "Linux 6.9, IBT, no PREEMPTION: more instructions boosted, exceptions refused", c.Line())
}
