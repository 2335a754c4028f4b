package report

import (
	"errors"
	"fmt"
	"sync"

	"kprobelab/internal/tracing/definition"
	"kprobelab/kimage"
	"kprobelab/kimage/btf"
	"kprobelab/kprobes/hazard"
	"kprobelab/kprobes/probepoint"
	"kprobelab/kprobes/rule"
	"kprobelab/profile"
	"kprobelab/x86"
)

// Kernel answers Check's questions. It is an image (ImageKernel), or a file that was
// made of an image.
type Kernel interface {
	probepoint.Names
	// Column describes the kernel, without any answers.
	Column() CheckImage
	Profile() *profile.Config
	// Symbols returns the kernel's symbols by ascending address, then the modules'.
	Symbols() []kimage.Symbol
	// Modules are the names of the loaded modules.
	Modules() []string
	// InText and InInit are a kimage.View's.
	InText(addr x86.Addr) bool
	InInit(addr x86.Addr) (module string, ok bool)
	Types() *btf.Types
	// Traces reports whether the kernel has ftrace sites at all, Traceable
	// whether the function at an address has one.
	Traces() bool
	Traceable(addr x86.Addr) bool
	// Verdict gives register_kprobe's answer at a point that Resolve has found: how the
	// probe runs (RunsFtrace…), or a *probepoint.Refusal.
	Verdict(p *probepoint.Point) (runs string, err error)
	// Hazards returns the hazards of an accepted probe at a point that Resolve has found.
	Hazards(p *probepoint.Point) []hazard.Finding
	// Tracepoints returns the tracepoints of the kernel and its loaded modules, by system and name.
	Tracepoints() []kimage.Tracepoint
	// FuncID is a function's number in BTF, by which BPF programs attach to it.
	FuncID(name string) (id int, ok bool)
	// Typed: the kernel has BTF. Passed says how a trampoline passes on the arguments of a function
	// in BTF.
	Typed() bool
	Passed(name string) (p btf.Passed, ok bool)
	// Programs are the kernel's lists of the BPF programs that it takes at each place.
	// Injectable reports whether errors may be injected into the function at an address.
	Programs() *kimage.Programs
	Injectable(at x86.Addr) bool
	// Inlined are the functions that have the code of one which the compiler has
	// inlined there. Known is false where no DWARF tells.
	Inlined(name string) (callers []string, known bool)
	// Package are the modules of the kernel's package that are not loaded and have
	// a symbol of the name, With is the kernel with one of them loaded.
	Package(name string) (modules []string)
	With(module string) (Kernel, error)
}

// ImageKernel is the Kernel of an image. It is for one goroutine.
type ImageKernel struct {
	*kimage.Image
	scan *scanner
	// Callers, if not nil, lists for each inlined function the functions that contain its code.
	Callers func() (map[string][]string, error)
	// Define, if not nil, turns a probe in the words of the source into definitions.
	Define func(line definition.Line) ([]definition.Line, error)
}

var (
	_ Kernel  = (*ImageKernel)(nil)
	_ Definer = (*ImageKernel)(nil)
)

// Definitions implements Definer.
func (k *ImageKernel) Definitions(line definition.Line) ([]definition.Line, error) {
	if k.Define == nil {
		return nil, errors.New("no debugging information is at hand")
	}
	return k.Define(line)
}

// OfImage makes the Kernel of an image.
func OfImage(img *kimage.Image) *ImageKernel {
	return &ImageKernel{Image: img, scan: NewScan(img).scanner()}
}

// Describing has an image's debugging information.
type Describing interface {
	Definitions(line definition.Line) ([]definition.Line, error)
	Inlined() (map[string][]string, error)
}

// CheckImageFile asks an image about probes. asked is the word of --kernel, "" for a file.
func CheckImageFile(img *kimage.Image, d Describing, asked string, probes []Probe, allow map[hazard.ID]bool) *Check {
	kernel := OfImage(img)
	kernel.Define, kernel.Callers = d.Definitions, d.Inlined
	c := &Check{Allow: allow}
	c.Add(kernel, probes)
	c.Images[0].Asked = asked
	return c
}

// Column describes the image.
func (k *ImageKernel) Column() CheckImage {
	return CheckImage{
		Name: k.Name(), Release: k.Fact("release").Value, Profile: k.Profile().Name, Standing: k.Standing(), CPU: k.Fact("CPU").Value,
		BuildID: k.BuildID(),
	}
}

// Traces implements Kernel.
func (k *ImageKernel) Traces() bool { return len(k.Sites(kimage.SiteFtrace)) > 0 }

// Traceable implements Kernel.
func (k *ImageKernel) Traceable(at x86.Addr) bool {
	s, ok := k.SymbolAt(at)
	if !ok {
		return false
	}
	if module, init := k.InInit(s.Addr); init && module == "" && !k.InText(s.Addr) {
		return false // the tracer has forgotten it together with boot's code
	}
	_, ok = k.SiteIn(kimage.SiteFtrace, x86.Range{Start: s.Addr, End: s.Addr.Add(int64(s.Size))})
	return ok
}

// Verdict implements Kernel.
func (k *ImageKernel) Verdict(p *probepoint.Point) (string, error) {
	v := k.scan.verdict(p, nil)
	return v.Runs, v.Err
}

// FuncID implements Kernel.
func (k *ImageKernel) FuncID(name string) (int, bool) { return k.Types().FuncID(name) }

// Typed implements Kernel.
func (k *ImageKernel) Typed() bool { return !k.Types().Empty() }

// Passed implements Kernel.
func (k *ImageKernel) Passed(name string) (btf.Passed, bool) { return k.Types().Passed(name) }

// Inlined implements Kernel.
func (k *ImageKernel) Inlined(name string) ([]string, bool) {
	all := k.AllInlined()
	return all[name], all != nil
}

// AllInlined is Inlined for all functions, nil where no DWARF tells.
func (k *ImageKernel) AllInlined() map[string][]string {
	if k.Callers == nil {
		return nil
	}
	all, _ := k.Callers()
	return all
}

// Package implements Kernel: an image knows no modules but the loaded ones.
func (k *ImageKernel) Package(string) []string { return nil }

// With implements Kernel.
func (k *ImageKernel) With(module string) (Kernel, error) {
	return nil, fmt.Errorf("%s has no module %s", k.Name(), module)
}

// Verdict is register_kprobe's answer at a point.
type Verdict struct {
	// Runs says how the probe runs; Err is the *probepoint.Refusal if it is refused.
	Runs string
	Err  error
	// Hazards are the hazards of an accepted probe.
	Hazards []hazard.Finding
}

// verdict answers for a point. step is the walk's step at the point, or nil.
func (s *scanner) verdict(p *probepoint.Point, step *kimage.Step) Verdict {
	var row ScanRow
	s.where = *p
	if err := s.place(&row, &s.where, s.SlotAddr, step); err != nil {
		return Verdict{Err: err}
	}
	return Verdict{Runs: row.runs(), Hazards: row.Hazards}
}

// EachVerdict calls emit with the verdict at every address of the text that a
// symbol covers, from several goroutines at once, each with functions of its
// own. progress, when not nil, is told how far it is, in bytes of code.
func EachVerdict(img *kimage.Image, progress func(done, total int64), emit func(at x86.Addr, v Verdict)) error {
	s := NewScan(img)
	functions, err := s.Functions()
	if err != nil {
		return err
	}
	var done, total int64
	chunks := codeChunks(functions, chunkCode)
	for _, c := range chunks {
		total += c.size
	}
	scanners := sync.Pool{New: func() any { return s.scanner() }}
	return inOrder(len(chunks), func(i int) int64 {
		one := scanners.Get().(*scanner)
		defer scanners.Put(one)
		for _, sym := range functions[chunks[i].from:chunks[i].to] {
			one.eachVerdict(sym, emit)
		}
		return chunks[i].size
	}, func(_ int, size int64) error {
		if done += size; progress != nil {
			progress(done, total)
		}
		return nil
	})
}

// insideInsn is the one verdict for all places at which no instruction starts: a kernel
// has ten million of them.
var insideInsn = Verdict{Err: probepoint.Refuse(rule.NotBoundary, 0, "")}

// eachVerdict is the verdict at every address of a function.
func (s *scanner) eachVerdict(sym kimage.Symbol, emit func(at x86.Addr, v Verdict)) {
	point := func(a x86.Addr) *probepoint.Point {
		s.where = probepoint.Point{Addr: a, Symbol: sym, Offset: uint64(a.Sub(sym.Addr))}
		return &s.where
	}
	at, end := sym.Addr, sym.Addr.Add(int64(sym.Size))
	inside := func(to x86.Addr) {
		for ; at < to && s.View.InText(at); at++ {
			p := point(at)
			v := Verdict{Err: probepoint.CheckAddress(s.View, p, s.Profile)}
			switch {
			case v.Err != nil:
			case p.Ftrace || !s.Profile.Check.Boundary:
				v = s.verdict(p, nil)
			default:
				v = insideInsn
			}
			emit(at, v)
		}
	}
	var padding error // the last verdict on an int3 of padding, of which there are millions
	for step := range s.walk(sym) {
		if inside(step.Addr); !s.View.InText(step.Addr) {
			return
		}
		v := Verdict{Err: padding}
		p := point(step.Addr)
		if !step.IsPadding() || !step.AfterInt3 || padding == nil || probepoint.CheckAddress(s.View, p, s.Profile) != nil || p.Ftrace {
			v = s.verdict(p, step)
		}
		if padding = nil; step.IsPadding() && step.AfterInt3 {
			padding = v.Err
		}
		emit(step.Addr, v)
		at = step.Addr + 1
	}
	inside(end)
}

// runs says how an accepted probe runs.
func (row *ScanRow) runs() string {
	switch {
	case row.Ftrace:
		return RunsFtrace
	case row.Optimized:
		return RunsOptimized
	}
	return RunsInt3
}
