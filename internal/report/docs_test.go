package report

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"kprobelab/internal/integration/pages"
)

// docs/check.md has each way of --via and each section whose programs are asked about; docs/archive.md has each format.
func TestPagesOfChecksHaveWaysAndSections(t *testing.T) {
	table := pages.Of(t, "check.md", "Lines of a list", 1)
	pages.Same(t, table.Where, slices.Sorted(maps.Keys(Vias)), table.Names(0))

	table = pages.Of(t, "check.md", "Sections of an object", 0)
	pages.Same(t, table.Where, slices.Sorted(maps.Keys(bpfSections)), table.Names(0))

	table = pages.Of(t, "archive.md", "What check says of many kernels", 0)
	var formats []string
	for _, name := range table.Names(0) {
		if list, ok := strings.CutPrefix(name, "--format "); ok {
			formats = append(formats, strings.Split(list, ", ")...)
		}
	}
	pages.Same(t, table.Where+", --format", CheckFormats, formats)
}
