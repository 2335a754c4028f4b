package rule

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/integration/pages"
)

// docs/optimization.md has a row for each reason, in the kernel's order, with its errno, its sentence and its source.
func TestPageOfOptimizationHasTheReasons(t *testing.T) {
	table := pages.Of(t, "optimization.md", "The rules", 0)
	var want [][]string
	for _, id := range Of(Optimization) {
		no := "-"
		if id.Errno() != 0 {
			no = id.Errno().Name()
		}
		want = append(want, []string{"`" + id.String() + "`", no, id.Why(), id.Source()})
	}
	pages.Same(t, table.Where, names(Of(Optimization)), table.Names(0))
	require.Equal(t, want, table.Rows, "%s: write the rows as kprobelab explain --reasons prints them", table.Where)
}

// docs/rules.md names each rule at its section of docs/spec: who adds a rule writes its sentence there.
func TestPageOfRulesHasTheNames(t *testing.T) {
	table := pages.Of(t, "rules.md", "Names of refusals", 0)
	pages.Same(t, table.Where, names(slices.Concat(Of(Registration), Of(OutOfLine), Of(Optimization), Of(Asking))), table.Names(1))
	var spec []byte
	files, err := filepath.Glob("../../docs/spec/*.md")
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		spec = append(spec, text...)
	}
	for _, cell := range table.Column(0) {
		if number := regexp.MustCompile(`^[\d.]+`).FindString(cell); number != "" {
			require.Regexp(t, `(?m)^#+ `+regexp.QuoteMeta(number)+`[. ]`, string(spec), "%s: docs/spec has no section %s", table.Where, number)
		}
	}
}

func names(ids []ID) (list []string) {
	for _, id := range ids {
		list = append(list, id.String())
	}
	return list
}
