package suite

import (
	"slices"
	"testing"

	"kprobelab/internal/integration/pages"
)

// docs/suite.md has a row for each field of a decision and of an answer at a byte.
func TestPageOfTheSuiteHasTheFields(t *testing.T) {
	table := pages.Of(t, "suite.md", "A decision", 0)
	pages.Same(t, table.Where, slices.Concat(pages.Keys(Decision{}), pages.Keys(Answer{}), pages.Keys(Offset{})), table.Names(0))
}
