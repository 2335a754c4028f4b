package selfcheck

import (
	"testing"

	"kprobelab/internal/integration/pages"
)

// docs/selfcheck.md has a row for each function of an image that is compared.
func TestPageOfSelfcheckHasTheFunctions(t *testing.T) {
	var program []string
	for _, q := range questions {
		program = append(program, q.function)
	}
	table := pages.Of(t, "selfcheck.md", "The rules against the image", 0)
	pages.Same(t, table.Where, program, table.Names(0))
}
