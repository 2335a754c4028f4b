package transparency

import (
	"strings"
	"testing"

	"kprobelab/internal/integration/pages"
)

// docs/transparency.md has a row for each difference, by its field.
func TestPageOfTransparencyHasTheDifferences(t *testing.T) {
	var program []string
	for _, d := range differences {
		program = append(program, strings.TrimPrefix(d.field, "Step."))
	}
	table := pages.Of(t, "transparency.md", "What was found", 0)
	pages.Same(t, table.Where, program, table.Names(2))
}
