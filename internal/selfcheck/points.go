package selfcheck

import (
	"iter"
	"math/rand/v2"
	"slices"
	"sort"

	"kprobelab/kimage"
	"kprobelab/x86"
)

// maxFunction is the size of the largest function that points are drawn from: the
// kernel decodes a function from its start for each, and a symbol before a stretch
// of padding can be megabytes.
const maxFunction = 64 << 10

// drawing draws points of an image.
type drawing struct {
	img       *kimage.Image
	rand      *rand.Rand
	functions []kimage.Symbol
	// ends are the ends of the functions in a row: sums of their sizes, in bytes.
	ends []uint64
}

// Draw draws n points of the text. Of four points two are the first byte of an
// instruction, one is any byte (the inside of an instruction, padding), and one is a
// function's entry, or at or near a place that the kernel patches.
func Draw(img *kimage.Image, n int, seed uint64) []x86.Addr {
	d := &drawing{img: img, rand: rand.New(rand.NewPCG(seed, 0))}
	total := uint64(0)
	for _, sym := range functions(img) {
		total += sym.Size
		d.functions, d.ends = append(d.functions, sym), append(d.ends, total)
	}
	if total == 0 {
		return nil
	}
	points := make([]x86.Addr, n)
	for i := range points {
		points[i] = d.point(i % 4)
	}
	return points
}

// Boundaries draws n addresses at which an instruction begins; Insides draws n addresses
// inside instructions, at most one in each. Both return them in ascending order, and
// fewer if the text does not have so many.
func Boundaries(img *kimage.Image, n int, seed uint64) []x86.Addr {
	return drawn(All(img), n, seed)
}

// Insides is described at Boundaries.
func Insides(img *kimage.Image, n int, seed uint64) []x86.Addr {
	r := rand.New(rand.NewPCG(seed, 1))
	var points []x86.Addr
	for s := range instructions(img) {
		if s.Reading.Length > 1 {
			points = append(points, s.Addr+1+x86.Addr(r.IntN(s.Reading.Length-1)))
		}
	}
	return drawn(points, n, seed)
}

// drawn leaves n of the points.
func drawn(points []x86.Addr, n int, seed uint64) []x86.Addr {
	r := rand.New(rand.NewPCG(seed, 0))
	r.Shuffle(len(points), func(i, j int) { points[i], points[j] = points[j], points[i] })
	points = points[:min(n, len(points))]
	slices.Sort(points)
	return points
}

// All returns the address of every instruction of the text, without padding.
func All(img *kimage.Image) (points []x86.Addr) {
	for s := range instructions(img) {
		points = append(points, s.Addr)
	}
	return points
}

// instructions walks over the instructions of the text, without padding.
func instructions(img *kimage.Image) iter.Seq[*kimage.Step] {
	return func(yield func(*kimage.Step) bool) {
		w := kimage.NewWalker(img, &img.Profile().Decoder)
		for _, sym := range functions(img) {
			for s := range w.Function(sym) {
				if !s.IsPadding() && !yield(s) {
					return
				}
			}
		}
	}
}

// functions returns the functions of the text, one for each address.
func functions(img *kimage.Image) (list []kimage.Symbol) {
	last := x86.Addr(0)
	for _, s := range img.Symbols() {
		if s.Module != "" || s.Addr == last || s.Size == 0 || s.Size > maxFunction || !img.InText(s.Addr) {
			continue
		}
		if first, ok := img.SymbolAt(s.Addr); ok {
			list, last = append(list, first), s.Addr
		}
	}
	return list
}

func (d *drawing) point(kind int) x86.Addr {
	at := d.rand.Uint64N(d.ends[len(d.ends)-1])
	i := sort.Search(len(d.ends), func(i int) bool { return d.ends[i] > at })
	sym := d.functions[i]
	a := sym.Addr + x86.Addr(sym.Size-(d.ends[i]-at))
	switch kind {
	case 0:
		return a
	case 1:
		return d.special(sym, a)
	}
	return d.start(sym, a)
}

// start returns the address of the instruction that covers an address.
func (d *drawing) start(sym kimage.Symbol, a x86.Addr) x86.Addr {
	at := sym.Addr
	for s := range kimage.NewWalker(d.img, &d.img.Profile().Decoder).Function(sym) {
		if s.Addr > a {
			break
		}
		at = s.Addr
	}
	return at
}

// near is the number of bytes after an address in which a place that the kernel patches is searched.
const near = 16 << 10

// special returns a place that the kernel patches, or a byte or two from it; or a function's entry.
func (d *drawing) special(sym kimage.Symbol, a x86.Addr) x86.Addr {
	kind := kimage.SiteKind(d.rand.IntN(int(kimage.NumSiteKinds) + 1))
	if kind == kimage.NumSiteKinds {
		return sym.Addr + x86.Addr(d.rand.IntN(2)*4)
	}
	site, ok := d.img.SiteIn(kind, x86.Range{Start: a, End: a + near})
	if !ok {
		return sym.Addr
	}
	off := int64(d.rand.IntN(site.Len+4)) - 2
	if at := site.Addr.Add(off); d.img.InText(at) {
		return at
	}
	return site.Addr
}
