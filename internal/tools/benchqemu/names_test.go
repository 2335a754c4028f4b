package benchqemu

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/bench"
)

// The module names what it sees with kprobelab's names, or nothing would be
// compared. A step by the trap flag is the exception: none of Debian's kernels
// that it is built for makes one.
func TestTheModuleKnowsThePaths(t *testing.T) {
	text, err := os.ReadFile("module/plant.c")
	require.NoError(t, err)
	for _, p := range bench.Paths() {
		if p.Name != "k-tf" {
			require.True(t, strings.Contains(string(text), `"`+p.Name+`"`), p.Name)
		}
	}
}
