package doctor

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/integration/pages"
)

// docs/install.md says of each line of a report what does not work without the thing.
func TestPageOfInstallationHasTheLines(t *testing.T) {
	var program []string
	for _, c := range (&Facts{}).Report().Checks {
		program = append(program, c.Name)
	}
	table := pages.Of(t, "install.md", "What a machine lacks", 0)
	pages.Same(t, table.Where, program, table.Names(1))
	without := strings.Join(table.Column(0), "\n")
	require.Contains(t, without, "glibc "+oldestLibc)
	require.Contains(t, without, size(usualMemory)+" of free memory")
	require.Contains(t, without, size(usualRoom)+" of room")
}
