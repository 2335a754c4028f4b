package kimage

import "slices"

// NearestCPU picks one of the named processors to run the image's text on: the one that
// lacks fewest features of the processor for which the text was made. Among equals it
// takes that very processor, or else the one with the fewest additional features. The
// case of names does not matter. Names that are not among CPUModels are skipped; the
// result is empty if no name is left.
func (img *Image) NearestCPU(names []string) string {
	want := img.cpu
	if want == nil {
		want = namedModel(DefaultCPU)
	}
	best, bestName := [3]int{}, ""
	for _, name := range names {
		m := namedModel(name)
		if m == nil {
			continue
		}
		d := want.distance(m)
		if bestName == "" || slices.Compare(d[:], best[:]) < 0 {
			best, bestName = d, name
		}
	}
	return bestName
}

// distance compares a processor with the wanted one: the number of features it
// lacks, 1 if its model is another one, and the number of features it has in
// addition.
func (want *cpuModel) distance(m *cpuModel) [3]int {
	var d [3]int
	for f := range want.flags {
		if !m.flags[f] {
			d[0]++
		}
	}
	if m.name != want.name {
		d[1] = 1
	}
	for f := range m.flags {
		if !want.flags[f] {
			d[2]++
		}
	}
	return d
}
