package tracing_test

import (
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/integration/pages"
	"kprobelab/tracing"
)

// docs/tracing.md has a row for each file of the tree, and each of its rows is a file; the options and triggers in it are the tree's.
func TestPageOfTracingHasTheFiles(t *testing.T) {
	g := newGuest(t, "6.1", 2, tracing.Options{})
	g.define("p:my/e leaf x=%di")
	require.NoError(t, g.Mkdir("instances/i"))
	var files []string
	require.NoError(t, fs.WalkDir(g, ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, path)
		}
		return err
	}))
	table := pages.Of(t, "tracing.md", "The files", 0)
	var rows []*regexp.Regexp
	for _, name := range table.Names(0) {
		rows = append(rows, ofFiles(name))
		if !slices.ContainsFunc(files, rows[len(rows)-1].MatchString) {
			t.Errorf("%s: no file is %s: take it out, or write its name as it is", table.Where, name)
		}
	}
	for _, file := range files {
		if !slices.ContainsFunc(rows, func(r *regexp.Regexp) bool { return r.MatchString(file) }) {
			t.Errorf("%s: write a row for %s", table.Where, file)
		}
	}

	var options []string
	list, err := g.ReadDir("options")
	require.NoError(t, err)
	for _, o := range list {
		options = append(options, o.Name())
	}
	_, triggers, _ := strings.Cut(g.read("events/my/e/trigger"), ":\n#")
	for _, row := range table.Rows {
		switch {
		case strings.Contains(row[0], "`trace_options`"):
			pages.Same(t, table.Where+", trace_options", options, pages.Quoted(row[1]))
		case strings.Contains(row[0], "/trigger`"):
			pages.Same(t, table.Where+", trigger", strings.Fields(triggers), pages.Quoted(row[1]))
		}
	}
}

// ofFiles matches the paths of a name on the page: words in capitals and N stand for any, brackets for a part that may be missing,
// a slash at the end for all files below.
func ofFiles(name string) *regexp.Regexp {
	pattern := regexp.QuoteMeta(name)
	pattern = strings.NewReplacer(`\[`, "(", `\]`, ")?").Replace(pattern)
	pattern = regexp.MustCompile(`GROUP|EVENT|NAME`).ReplaceAllString(pattern, "[^/]+")
	pattern = strings.ReplaceAll(pattern, "cpuN", "cpu[0-9]+")
	if strings.HasSuffix(pattern, "/") {
		pattern += ".*"
	}
	return regexp.MustCompile("^" + pattern + "$")
}
