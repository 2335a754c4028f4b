package report

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"kprobelab/decoder"
	"kprobelab/kimage"
	"kprobelab/kprobes/hazard"
	"kprobelab/kprobes/probepoint"
	"kprobelab/kprobes/rule"
	"kprobelab/kprobes/slot"
	"kprobelab/x86"
)

// HazardPoint is a point of a kernel with its hazard.
type HazardPoint struct {
	Addr   Addr          `json:"address"`
	Symbol string        `json:"symbol"`
	Offset uint64        `json:"offset"`
	Hazard hazard.ID     `json:"hazard"`
	Effect hazard.Effect `json:"effect"`
	Says   string        `json:"says"`
	// Lands is the wrong address at which the CPU continues, if the hazard has one.
	Lands Addr `json:"lands"`
	// Reproducer shows it on a running kernel; nil if the probe is refused.
	Reproducer *Reproducer `json:"reproducer"`
}

// Reproducer holds the commands that make a hazard happen.
type Reproducer struct {
	// Define is the line for kprobe_events, "" if that file takes no probe there and a
	// module has to register it (register_kprobe).
	Define string `json:"define"`
	// Run is the system call that reaches the function through the fewest direct calls,
	// and Path the functions on the way. "" if none is found: the function is called
	// through pointers, or not by system calls.
	Run  string   `json:"run"`
	Path []string `json:"path"`
}

// HazardPoints lists every point of the image's text that has a hazard, by
// ascending address. Those that the kernel refuses are among them. progress, when
// not nil, is told how far it is, in bytes of code.
func HazardPoints(img *kimage.Image, progress func(done, total int64)) ([]HazardPoint, error) {
	s := NewScan(img)
	functions, err := s.Functions()
	if err != nil {
		return nil, err
	}
	type found struct {
		points []HazardPoint
		calls  []call
	}
	var list []HazardPoint
	var calls []call
	var done, total int64
	chunks := codeChunks(functions, chunkCode)
	for _, c := range chunks {
		total += c.size
	}
	scanners := sync.Pool{New: func() any { return s.scanner() }}
	err = inOrder(len(chunks), func(i int) (f found) {
		one := scanners.Get().(*scanner)
		defer scanners.Put(one)
		for _, sym := range functions[chunks[i].from:chunks[i].to] {
			f.points = one.hazardPoints(f.points, sym)
			f.calls = one.calls(f.calls, sym)
		}
		return f
	}, func(i int, f found) error {
		list, calls = append(list, f.points...), append(calls, f.calls...)
		if done += chunks[i].size; progress != nil {
			progress(done, total)
		}
		return nil
	})
	reproduce(img, list, callGraph(functions, calls, img.CallOf))
	return list, err
}

// hazardPoints appends the points of a function.
func (s *scanner) hazardPoints(list []HazardPoint, sym kimage.Symbol) []HazardPoint {
	for step := range s.walk(sym) {
		if step.IsPadding() || step.Err != nil {
			continue
		}
		row := s.row(probepoint.Request{Addr: step.Addr}, s.SlotAddr, step)
		found := row.Hazards
		switch {
		case row.Errno == 0:
		case row.Rule == rule.BugTable: // refused because of what is said here
			continue
		default:
			found = s.refusedHazards(step.Addr)
		}
		for _, f := range found {
			list = append(list, HazardPoint{
				Addr: row.Addr, Symbol: row.Symbol, Offset: row.Offset, Hazard: f.ID, Effect: f.Effect, Says: f.Says,
				Lands: Addr{Addr: f.Lands, Known: f.Lands != 0},
			})
		}
	}
	return list
}

// refusedHazards returns the hazards that a refused point would have.
func (s *scanner) refusedHazards(at x86.Addr) (list []hazard.Finding) {
	out, err := slot.Build(s.View, at, s.SlotAddr, false, s.Profile)
	if err != nil {
		return nil
	}
	place := probepoint.Placement{How: probepoint.HowOf(&out, s.Profile), Slot: out}
	for _, f := range hazard.At(s.View, at, &place, s.Profile) {
		if f.Effect.Harms() {
			f.Effect = hazard.Refused
			list = append(list, f)
		}
	}
	return list
}

// call is a direct call or jump from a function to another.
type call struct{ from, to x86.Addr }

// calls appends the calls of a function, which is kept from the walk before.
func (s *scanner) calls(list []call, sym kimage.Symbol) []call {
	for step := range s.walk(sym) {
		if k := step.Reading.Kind; k != decoder.KindCall && k != decoder.KindJump {
			continue
		}
		if to := step.Reading.Target; to < sym.Addr || uint64(to.Sub(sym.Addr)) >= sym.Size {
			list = append(list, call{sym.Addr, to})
		}
	}
	return list
}

// reached says by which function each function is reached from a system call on the
// shortest way; a system call's is itself.
type reached map[x86.Addr]x86.Addr

// callGraph goes from the system calls on.
func callGraph(functions []kimage.Symbol, calls []call, systemCall func(function string) (entry string, ok bool)) reached {
	function := func(a x86.Addr) x86.Addr {
		i, ok := slices.BinarySearchFunc(functions, a, func(f kimage.Symbol, a x86.Addr) int { return cmp.Compare(f.Addr, a) })
		if !ok && i > 0 {
			i--
		}
		return functions[min(i, len(functions)-1)].Addr
	}
	to := map[x86.Addr][]x86.Addr{}
	for _, c := range calls {
		to[c.from] = append(to[c.from], function(c.to))
	}
	by := reached{}
	var queue []x86.Addr
	for i := range functions {
		if _, is := systemCall(functions[i].Name); is {
			by[functions[i].Addr] = functions[i].Addr
			queue = append(queue, functions[i].Addr)
		}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		for _, next := range to[queue[0]] {
			if _, seen := by[next]; !seen {
				by[next] = queue[0]
				queue = append(queue, next)
			}
		}
	}
	return by
}

// reproduce adds to each accepted point what makes it happen.
func reproduce(img *kimage.Image, list []HazardPoint, by reached) {
	k := newChecker(OfImage(img))
	for i := range list {
		if p := &list[i]; p.Effect != hazard.Refused {
			p.Reproducer = &Reproducer{Define: k.define(p)}
			p.Reproducer.Run, p.Reproducer.Path = way(img, p.Addr.Addr, by)
		}
	}
}

// define is the line for kprobe_events. A name that others have too is no place: the
// line then counts from _text, which works wherever the kernel lies.
func (k *checker) define(p *HazardPoint) string {
	if k.notrace(p.Addr.Addr) {
		return ""
	}
	if len(k.Lookup(p.Symbol)) == 1 {
		return fmt.Sprintf("p:h %s+%#x", p.Symbol, p.Offset)
	}
	if text, ok := k.first("_text"); ok {
		return fmt.Sprintf("p:h _text+%#x", uint64(p.Addr.Sub(text.Addr)))
	}
	return "p:h " + p.Addr.String()
}

// way is the shortest way from a system call to the function at an address.
func way(img *kimage.Image, at x86.Addr, by reached) (run string, path []string) {
	path = []string{}
	sym, _ := img.SymbolAt(at)
	for a := sym.Addr; ; a = by[a] {
		f, _ := img.SymbolAt(a)
		path = append(path, f.Name)
		switch from, ok := by[a]; {
		case !ok:
			return "", []string{}
		case from == a:
			slices.Reverse(path)
			run, _ = img.CallOf(path[0])
			return run, path
		}
	}
}
