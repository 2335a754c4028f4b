package page

import (
	"testing"

	"kprobelab/internal/integration/pages"
)

// docs/lessons.md has a row for each field of a lesson and for each part of a condition.
func TestPageOfLessonsHasTheFields(t *testing.T) {
	table := pages.Of(t, "lessons.md", "The file", 0)
	pages.Same(t, table.Where, pages.Keys(Lesson{}), table.Names(0))
	for _, row := range table.Rows {
		inside, ok := map[string]any{"`question`, `answers`": Choice{}, "`vary`": Variation{}}[row[0]]
		if ok {
			pages.Named(t, table.Where+", "+row[0], pages.Keys(inside), pages.Quoted(row[1]))
		}
	}
	table = pages.Of(t, "lessons.md", "Conditions", 0)
	pages.Same(t, table.Where, pages.Keys(Condition{}), table.Names(0))
}
