package run

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/integration/pages"
)

// docs/exec.md has the workloads by name, and the files and variables that a test of Go brings along.
func TestPageOfExecHasWorkloadsAndSurroundings(t *testing.T) {
	names := regexp.MustCompile(`(?s)one after the other: (.*?)\(\[`).FindStringSubmatch(pages.Read(t, "exec.md"))
	require.NotNil(t, names, "docs/exec.md: the workloads follow \"one after the other: \"")
	pages.Same(t, "docs/exec.md, A workload beside it", WorkloadNames(), pages.Quoted(names[1]))

	table := pages.Of(t, "exec.md", "Tests of a project", 0)
	for _, row := range table.Rows {
		switch row[0] {
		case "files that come out":
			var want []string
			for _, f := range append(goFiles, "gocoverdir") {
				want = append(want, "-test."+f)
			}
			pages.Same(t, table.Where+", "+row[0], want, pages.Quoted(row[1]))
		case "environment":
			pages.Same(t, table.Where+", "+row[0], append(goVariables, "PWD"), pages.Quoted(row[1]))
		}
	}
}
