package processor

import "slices"

// Nearest picks one of the named processors to run code for m on: the one that
// lacks fewest features of m. Among equals it takes m itself, or else the one with the fewest
// additional features. Names that are not known are skipped.
func (m *Model) Nearest(names []string) string {
	best, bestName := [3]int{}, ""
	for _, name := range names {
		other := Named(name)
		if other == nil {
			continue
		}
		d := m.distance(other)
		if bestName == "" || slices.Compare(d[:], best[:]) < 0 {
			best, bestName = d, name
		}
	}
	return bestName
}

// distance compares a processor with the wanted one: the number of features it
// lacks, 1 if its model is another one, and the number of features it has in
// addition.
func (want *Model) distance(m *Model) [3]int {
	var d [3]int
	for f := range want.Flags {
		if !m.Flags[f] {
			d[0]++
		}
	}
	if m.Name != want.Name {
		d[1] = 1
	}
	for f := range m.Flags {
		if !want.Flags[f] {
			d[2]++
		}
	}
	return d
}
