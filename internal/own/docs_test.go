package own

import (
	"testing"

	"kprobelab/internal/integration/pages"
)

// docs/measured.md has a row for each function of an image that decides fields of the profile.
func TestPageOfMeasuredProfilesHasTheFunctions(t *testing.T) {
	table := pages.Of(t, "measured.md", "The functions that decide", 0)
	pages.Same(t, table.Where, asked, table.Names(0))
}
