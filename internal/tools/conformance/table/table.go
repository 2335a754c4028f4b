package table

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"kprobelab/internal/tools/conformance"
	"kprobelab/internal/tools/conformance/boottext"
)

// flavours are the endings of releases, as the table calls them.
var flavours = []struct{ ending, name string }{{"-cloud-amd64", "cloud"}, {"-rt-amd64", "rt"}, {"-amd64", "amd64"}}

// split divides a release into the version and the flavour, "" where it is no
// Debian release.
func split(release string) (version, flavour string) {
	for _, f := range flavours {
		if v, ok := strings.CutSuffix(release, f.ending); ok {
			return v, f.name
		}
	}
	return release, ""
}

// numbers are the numbers in a version.
func numbers(version string) []int {
	var list []int
	for _, w := range strings.FieldsFunc(version, func(r rune) bool { return r < '0' || r > '9' }) {
		n, _ := strconv.Atoi(w)
		list = append(list, n)
	}
	return list
}

// sortResults puts the newest version first, then flavours and processors by name.
func sortResults(list []conformance.Result) {
	slices.SortFunc(list, func(a, b conformance.Result) int {
		va, fa := split(a.Kernel)
		vb, fb := split(b.Kernel)
		return cmp.Or(slices.Compare(numbers(vb), numbers(va)), strings.Compare(vb, va), strings.Compare(fa, fb), strings.Compare(a.CPU, b.CPU))
	})
}

// row is a line of the table: results of one version and processor that are the
// same but for the flavour.
type row struct {
	version, cpu string
	flavours     []string
	cells        string
}

// table is the list as a table, and how much it holds in a sentence before it.
func table(list []conformance.Result) string {
	var rows []row
	var points, kernels, differing int
	seen := map[string]bool{}
	for i := range list {
		r := &list[i]
		points += r.Points.Asked
		if !seen[r.Kernel] {
			seen[r.Kernel] = true
			kernels++
		}
		if r.Differences() > 0 {
			differing++
		}
		version, flavour := split(r.Kernel)
		next := row{version, r.CPU, []string{flavour}, cells(r)}
		j := slices.IndexFunc(rows, func(o row) bool { return o.version == version && o.cpu == next.cpu && o.cells == next.cells })
		if j < 0 {
			rows = append(rows, next)
			continue
		}
		rows[j].flavours = append(rows[j].flavours, flavour)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s kernels, %s points; of %s boots, %s have a difference without a known cause.\n\n",
		thousands(kernels), thousands(points), thousands(len(list)), thousands(differing))
	b.WriteString("| kernel | flavours | CPU | points | names | programs | bytes of text that differ | asked on |\n|---|---|---|---|---|---|---|---|\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", r.version, strings.Join(r.flavours, ", "), r.cpu, r.cells)
	}
	b.WriteString("\nCauses of bytes that differ:\n\n")
	for _, c := range boottext.Causes {
		fmt.Fprintf(&b, "- %s: %s.\n", c.Name, c.About)
	}
	return b.String()
}

// cells are a result's columns.
func cells(r *conformance.Result) string {
	return strings.Join([]string{score(r.Points), score(r.Names), score(r.Programs), text(r), r.Date}, " | ")
}

func score(s conformance.Score) string {
	if s.Same == s.Asked {
		return thousands(s.Asked)
	}
	return fmt.Sprintf("**%s of %s**", thousands(s.Same), thousands(s.Asked))
}

func text(r *conformance.Result) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(r.Causes)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, r.Causes[name]))
	}
	if r.Unexplained > 0 {
		parts = append(parts, fmt.Sprintf("**without a known cause %s**", thousands(r.Unexplained)))
	}
	if parts == nil {
		return "0"
	}
	return strings.Join(parts, ", ")
}

// thousands is a number with commas.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
