package conformance

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"kprobelab/internal/qemu/frame"
	"kprobelab/kimage"
	"kprobelab/x86"
)

// apart is the least distance of two points, in bytes. It is more than the
// longest region that an optimized probe covers, so that no probe prevents the
// optimization of another.
const apart = 64

// Points chooses n addresses of an image at random: instructions of functions,
// and places that a rule is about, such as entries, addresses inside
// instructions, patch sites and functions that may not be probed.
func Points(img *kimage.Image, n int, seed uint64) []x86.Addr {
	p := &picker{img: img, rand: rand.New(rand.NewPCG(seed, 0)), taken: map[x86.Addr]bool{}}
	p.findFunctions()
	if len(p.functions) == 0 {
		return nil
	}
	ways := []struct {
		share int
		pick  func() x86.Addr
	}{
		{60, p.boundary}, {12, p.entry}, {8, p.inside}, {12, p.site}, {3, p.blacklisted}, {3, p.exception}, {2, p.bug},
	}
	for tries := 0; len(p.list) < n && tries < 20*n; tries++ {
		r := p.rand.IntN(100)
		for _, w := range ways {
			if r -= w.share; r < 0 {
				p.take(w.pick())
				break
			}
		}
	}
	slices.Sort(p.list)
	return p.list
}

// picker chooses points.
type picker struct {
	img       *kimage.Image
	rand      *rand.Rand
	functions []kimage.Symbol
	list      []x86.Addr
	// taken are the blocks of apart bytes that have a point.
	taken map[x86.Addr]bool
}

func (p *picker) findFunctions() {
	for _, s := range p.img.Symbols() {
		if s.Module == "" && s.Size > 0 && p.img.InText(s.Addr) && s.IsFunction() {
			p.functions = append(p.functions, s)
		}
	}
}

// take adds a point, unless one is near.
func (p *picker) take(a x86.Addr) {
	if a == 0 || p.near(a) {
		return
	}
	p.taken[a/apart] = true
	p.list = append(p.list, a)
}

// near reports that there is a point in the block of the address or beside it.
func (p *picker) near(a x86.Addr) bool {
	block := a / apart
	return p.taken[block-1] || p.taken[block] || p.taken[block+1]
}

func (p *picker) function() kimage.Symbol { return p.functions[p.rand.IntN(len(p.functions))] }

// boundary is an instruction of a function.
func (p *picker) boundary() x86.Addr {
	s := p.function()
	var starts []x86.Addr
	for step := range kimage.NewWalker(p.img, &p.img.Profile().Decoder).Function(s) {
		if !step.IsPadding() {
			starts = append(starts, step.Addr)
		}
	}
	if len(starts) == 0 {
		return 0
	}
	return starts[p.rand.IntN(len(starts))]
}

func (p *picker) entry() x86.Addr { return p.function().Addr }

// inside is any byte of a function.
func (p *picker) inside() x86.Addr {
	s := p.function()
	return s.Addr.Add(p.rand.Int64N(int64(s.Size)))
}

// site is a patch site, or its second byte.
func (p *picker) site() x86.Addr {
	list := p.img.Sites(kimage.SiteKind(p.rand.IntN(int(kimage.NumSiteKinds))))
	if len(list) == 0 {
		return 0
	}
	return list[p.rand.IntN(len(list))].Addr.Add(int64(p.rand.IntN(2)))
}

// blacklisted is the entry of a blacklisted function, or near it: inside its
// ftrace site, too.
func (p *picker) blacklisted() x86.Addr {
	list := p.img.Blacklist()
	if len(list) == 0 {
		return 0
	}
	e := list[p.rand.IntN(len(list))]
	return e.Start.Add(p.rand.Int64N(min(6, e.End.Sub(e.Start))))
}

func (p *picker) exception() x86.Addr {
	list := p.img.ExceptionTable()
	if len(list) == 0 {
		return 0
	}
	return list[p.rand.IntN(len(list))].Addr
}

func (p *picker) bug() x86.Addr {
	list := p.img.BugTable()
	if len(list) == 0 {
		return 0
	}
	return list[p.rand.IntN(len(list))].Addr
}

// arguments of definitions. Kernels take some of them and refuse others; some are
// allowed only at an entry, only in a return probe, or only in some releases.
var arguments = []string{
	"a=%di b=+8(%si):u32", "$retval", "$arg1", "$comm", "a=@jiffies", "a=@is_no_name", "a=%no_register", "a=%di:s9", "1a=%di",
	"a=%di a=%si", "a=$stack999", "a=+0(%si):string[2]", "a=%di:b4@2/32", "a=%di:char", "a=b", "$arg*",
}

// Names makes n definitions by name: probes and return probes, at entries and
// inside functions, with and without arguments, on names that one symbol, several
// symbols or none has, and in modules that are not loaded. They keep away from the
// points, whose optimization they would prevent.
func Names(img *kimage.Image, points []x86.Addr, n int, seed uint64) []string {
	p := &picker{img: img, rand: rand.New(rand.NewPCG(seed, 1)), taken: map[x86.Addr]bool{}}
	p.findFunctions()
	for _, a := range points {
		p.taken[a/apart] = true
	}
	var several []string
	for i := 1; i < len(p.functions); i++ {
		if name := p.functions[i].Name; len(img.Lookup(name)) > 1 {
			several = append(several, name)
		}
	}
	var list []string
	for tries := 0; len(list) < n && tries < 20*n; tries++ {
		kind, name, off := "pr"[p.rand.IntN(2)], p.function().Name, ""
		switch p.rand.IntN(6) {
		case 0:
			if len(several) > 0 {
				name = several[p.rand.IntN(len(several))]
			}
		case 1:
			name += "_is_no_name"
		case 2:
			if p.rand.IntN(4) == 0 {
				name = "is_no_module:" + name
			}
		}
		if p.rand.IntN(3) == 0 {
			off = fmt.Sprintf("+%d", p.rand.IntN(16))
		}
		if p.rand.IntN(3) == 0 {
			off += " " + arguments[p.rand.IntN(len(arguments))]
		}
		if slices.ContainsFunc(img.Lookup(name), func(s kimage.Symbol) bool { return p.near(s.Addr) }) {
			continue
		}
		list = append(list, fmt.Sprintf("%c:%s/n%d %s%s", kind, frame.Group, len(list), name, off))
	}
	return list
}

// Definitions are the lines for kprobe_events that ask for the points, each an
// event of its own.
func Definitions(points []x86.Addr) string {
	var b strings.Builder
	for i, e := range events(len(points)) {
		fmt.Fprintf(&b, "p:%s/%s %s\n", frame.Group, e, points[i])
	}
	return b.String()
}

// pointEvent is the name of the event of the point with that index.
func pointEvent(i int) string { return fmt.Sprint("e", i) }

// events returns the names of the events of n points.
func events(points int) []string {
	list := make([]string, points)
	for i := range list {
		list[i] = pointEvent(i)
	}
	return list
}
