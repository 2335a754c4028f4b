package explore

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"kprobelab/internal/integration/pages"
)

// docs/explore.md has each line of a scenario and each action.
func TestPageOfScenariosHasLinesAndActions(t *testing.T) {
	table := pages.Of(t, "explore.md", "A scenario", 0)
	var lines []string
	for _, name := range table.Names(0) {
		if word, _, _ := strings.Cut(name, " "); !strings.HasPrefix(word, "cpu") {
			lines = append(lines, word)
		}
	}
	pages.Same(t, table.Where, lineWords, lines)

	_, rest, _ := strings.Cut(pages.Read(t, "explore.md"), "\nActions: ")
	rest, _, _ = strings.Cut(rest, "\n\n")
	var actions []string
	for _, name := range pages.Quoted(rest) {
		word, _, _ := strings.Cut(name, " ")
		actions = append(actions, word)
	}
	pages.Same(t, "docs/explore.md, Actions", append(slices.Sorted(maps.Keys(verbs)), "refused", "perhaps"), actions)
}
