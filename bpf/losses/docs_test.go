package losses

import (
	"strings"
	"testing"

	"kprobelab/internal/integration/pages"
)

// docs/losses.md has a row for each stage and for each cause. A row names several with semicolons between them, each up to its colon.
func TestPageOfLossesHasStagesAndCauses(t *testing.T) {
	for n, group := range []string{"Names of stages", "Causes of losses"} {
		table := pages.Of(t, "losses.md", "The ledger", n)
		var program, page []string
		for _, text := range pages.Constants(t, "ledger.go", group) {
			name, _, _ := strings.Cut(text, ":")
			program = append(program, strings.TrimSpace(name))
		}
		for _, cell := range table.Column(0) {
			page = append(page, strings.Split(cell, "; ")...)
		}
		pages.Same(t, table.Where, program, page)
	}
}
