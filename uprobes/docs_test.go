package uprobes

import (
	"testing"

	"kprobelab/internal/integration/pages"
)

// docs/uprobes.md has a row for each hazard.
func TestPageOfUprobesHasTheHazards(t *testing.T) {
	var program []string
	for h := range hazardTexts {
		program = append(program, string(h))
	}
	table := pages.Of(t, "uprobes.md", "What goes wrong", 0)
	pages.Same(t, table.Where, program, table.Names(0))
}
