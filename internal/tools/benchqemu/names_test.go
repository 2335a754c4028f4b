package benchqemu

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/bench"
)

// The module uses kprobelab's names for paths; figures with another name would
// not be compared. A step by the trap flag has none there, because no kernel that
// the module is built for steps so.
func TestTheModuleKnowsThePaths(t *testing.T) {
	text, err := os.ReadFile("module/plant.c")
	require.NoError(t, err)
	for _, p := range bench.Paths() {
		if p.Name != "k-tf" {
			require.True(t, strings.Contains(string(text), `"`+p.Name+`"`), p.Name)
		}
	}
}
