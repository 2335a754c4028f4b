package film

import (
	"strings"
	"testing"

	"kprobelab/internal/integration/pages"
)

// docs/film.md has a row for each field of a state, with the fields inside of it, and the fields of the head.
func TestPageOfFilmsHasTheFields(t *testing.T) {
	table := pages.Of(t, "film.md", "The format", 0)
	pages.Same(t, table.Where, pages.Keys(frame{}), table.Names(0))
	for _, row := range table.Rows {
		inside, ok := map[string]any{"`symbols`": Symbol{}, "`cpus`": cpuChange{}, "`new`": newCode{}, "`write`": write{}, "`probes`": Probe{}}[row[0]]
		if ok {
			pages.Named(t, table.Where+", "+row[0], pages.Keys(inside), pages.Quoted(row[1]))
		}
	}
	_, head, _ := strings.Cut(pages.Read(t, "film.md"), "The first line is the head:")
	head, _, _ = strings.Cut(head, "\n")
	pages.Same(t, table.Where+", the head", pages.Keys(Head{}), pages.Quoted(head))
}
