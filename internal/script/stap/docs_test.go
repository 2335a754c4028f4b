package stap

import (
	"strings"
	"testing"

	"kprobelab/internal/integration/pages"
)

// docs/stap.md has no function and no alias that the library does not have. (TestDocsNameTheLibrary is the other direction.)
func TestDocsNameOnlyTheLibrary(t *testing.T) {
	known := map[string]bool{}
	for name := range builtins {
		known[name] = true
	}
	for _, f := range libraryParsed().functions {
		known[f.name] = true
	}
	table := pages.Of(t, "stap.md", "The library", 0)
	for _, shown := range table.Names(0) {
		if name, _, ok := strings.Cut(shown, "("); !ok || !known[name] {
			t.Errorf("%s: the library has no function %s: take its row out", table.Where, shown)
		}
	}

	var aliases, rows []string
	for _, list := range libraryAliases() {
		for _, r := range list {
			if !strings.HasPrefix(r.name, "__") {
				aliases = append(aliases, strings.TrimSuffix(r.name, ".return"))
			}
		}
	}
	table = pages.Of(t, "stap.md", "Aliases of the library", 0)
	for _, name := range table.Names(0) {
		if name != ".return" {
			rows = append(rows, strings.TrimSuffix(name, ".return"))
		}
	}
	pages.Same(t, table.Where, aliases, rows)
}
