// Package spelling finds the name that a slip of the keyboard made another one.
// It must not know what the names are of.
package spelling

import "iter"

// Nearest returns the name that is nearest to the given one, the first of several. It considers names that a
// third of its letters at most, but not all, tell apart from it; "" for none.
func Nearest(names iter.Seq[string], name string) string {
	best, near := min(1+len(name)/3, len(name)-1), ""
	var row []int
	for n := range names {
		// The lengths alone can tell that a name is farther.
		if d := len(n) - len(name); max(d, -d) > best || n == "" {
			continue
		}
		var d int
		if d, row = distance(n, name, row); d < best || d == best && near == "" {
			best, near = d, n
		}
	}
	return near
}

// distance counts the letters to insert, delete or replace (Levenshtein). It
// works in row, and returns it for the next call.
func distance(a, b string, row []int) (int, []int) {
	row = row[:0]
	for j := range len(b) + 1 {
		row = append(row, j)
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)], row
}
