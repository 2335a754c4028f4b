package kimage

import "slices"

// NearestCPU picks, of processors known by name (in any case), the one on
// which to run the image's text: the one that lacks least of what the processor
// has for which the text was made; of several that very one, or else the one
// with the fewest features beside those. Names that are not among CPUModels are
// passed over; the result is empty where none is left.
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

// distance is how far a processor is from the wanted one: the features that
// it lacks, whether it is another, and the features that it has beside.
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
