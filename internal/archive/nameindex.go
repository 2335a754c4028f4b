package archive

import (
	"hash/maphash"
	"iter"
	"slices"
	"strings"
)

// nameIndex finds names in a column of names. It takes 8 bytes for each: the modules of
// a kernel's package have a quarter of a million.
type nameIndex struct {
	text string
	seed maphash.Seed
	// at has the offsets of names in text, by the bucket of their hash and then
	// ascending; bucket b has the elements ends[b] to ends[b+1].
	at, ends []uint32
}

// indexNames makes the index of a column of n names.
func indexNames(text string, n int) *nameIndex {
	buckets := 1
	for buckets < n {
		buckets *= 2
	}
	x := &nameIndex{text: text, seed: maphash.MakeSeed(), ends: make([]uint32, buckets+1)}
	of := make([]uint32, 0, n)
	for _, name := range x.names() {
		b := x.bucket(name)
		of = append(of, b)
		x.ends[b+1]++
	}
	for b := range buckets {
		x.ends[b+1] += x.ends[b]
	}
	x.at = make([]uint32, len(of))
	free, i := slices.Clone(x.ends), 0
	for at := range x.names() {
		x.at[free[of[i]]] = uint32(at)
		free[of[i]]++
		i++
	}
	return x
}

// names returns the names and their offsets. Names of paddings are left out.
func (x *nameIndex) names() iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		for at := 0; at < len(x.text); {
			name, _, _ := strings.Cut(x.text[at:], "\x00")
			if name != paddingName && !yield(at, name) {
				return
			}
			at += len(name) + 1
		}
	}
}

func (x *nameIndex) bucket(name string) uint32 {
	return uint32(maphash.String(x.seed, name)) & uint32(len(x.ends)-2)
}

// find returns the offsets of a name, ascending. The offset of a padding is before the
// name that it is made of.
func (x *nameIndex) find(name string) []uint32 {
	found := x.written(name)
	if of, ok := strings.CutPrefix(name, paddingPrefix); ok {
		const before = uint32(len(paddingName) + 1)
		for _, at := range x.written(of) {
			if at >= before && x.text[at-before:at] == paddingName+"\x00" && (at == before || x.text[at-before-1] == 0) {
				found = append(found, at-before)
			}
		}
		slices.Sort(found)
	}
	return found
}

// written is find for a name as it is in the text.
func (x *nameIndex) written(name string) (found []uint32) {
	b := x.bucket(name)
	for _, at := range x.at[x.ends[b]:x.ends[b+1]] {
		if rest, ok := strings.CutPrefix(x.text[at:], name); ok && strings.HasPrefix(rest, "\x00") {
			found = append(found, at)
		}
	}
	return found
}
