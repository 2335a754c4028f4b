package runs

import (
	"testing"

	"kprobelab/internal/integration/pages"
)

// docs/suite.md has a row for each field of a case, and the fields of a step.
func TestPageOfTheSuiteHasTheFieldsOfRuns(t *testing.T) {
	table := pages.Of(t, "suite.md", "Interleavings", 0)
	pages.Same(t, table.Where, pages.Keys(Case{}), table.Names(0))
	for _, row := range table.Rows {
		if row[0] == "`steps`" {
			pages.Named(t, table.Where+", steps", pages.Keys(Step{}), pages.Quoted(row[1]))
		}
	}
}
