package contract

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"kprobelab/internal/integration/pages"
)

// docs/load.md has a row for each key of a contract, and all flags of a load.
func TestPageOfLoadHasTheContract(t *testing.T) {
	table := pages.Of(t, "load.md", "Contracts", 0)
	var program, page []string
	for part, of := range map[string]any{"maps.": Map{}, "programs.": Program{}} {
		for _, key := range pages.Keys(of) {
			program = append(program, part+"NAME."+key)
		}
	}
	program = append(program, "constants.NAME")
	for _, row := range table.Rows {
		names := pages.Quoted(row[0])
		before := names[0][:strings.LastIndex(names[0], ".")+1]
		page = append(page, names[0])
		for _, name := range names[1:] {
			page = append(page, before+name)
		}
		switch names[0] {
		case "programs.NAME.flags":
			pages.Same(t, table.Where+", flags", slices.Sorted(maps.Keys(Flags)), pages.Quoted(row[1]))
		case "maps.NAME.inner":
			pages.Same(t, table.Where+", inner", pages.Keys(Inner{}), pages.Quoted(row[1]))
		}
	}
	pages.Same(t, table.Where, program, page)
	if reflect.TypeFor[Contract]().NumField() != 3 {
		t.Errorf("%s: a contract has a new part: write its rows", table.Where)
	}
}
