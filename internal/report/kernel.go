package report

import (
	"kprobelab/kimage"
	"kprobelab/kprobes/probepoint"
	"kprobelab/profile"
	"kprobelab/x86"
)

// Kernel is what Check asks of a kernel. An image answers (ImageKernel), and so
// does a file that was made of an image.
type Kernel interface {
	probepoint.Names
	// Column is what the kernel is.
	Column() CheckImage
	Profile() *profile.Config
	// Symbols are the kernel's by ascending address, then the modules'.
	Symbols() []kimage.Symbol
	// Modules are the names of the loaded modules.
	Modules() []string
	// InText and InInit are a kimage.View's.
	InText(addr x86.Addr) bool
	InInit(addr x86.Addr) (module string, ok bool)
	Types() *kimage.Types
	// Traces reports whether the kernel has ftrace sites at all, Traceable
	// whether the function at an address has one.
	Traces() bool
	Traceable(addr x86.Addr) bool
	// Verdict is what register_kprobe answers at a point that Resolve has
	// found: how the probe runs (RunsFtrace…), or a *probepoint.Refusal.
	Verdict(p *probepoint.Point) (runs string, err error)
}

// ImageKernel is the Kernel of an image. It is for one goroutine.
type ImageKernel struct {
	*kimage.Image
	scan *scanner
}

var _ Kernel = (*ImageKernel)(nil)

// OfImage makes the Kernel of an image.
func OfImage(img *kimage.Image) *ImageKernel {
	return &ImageKernel{Image: img, scan: NewScan(img).scanner()}
}

// Column is what the image says of itself.
func (k *ImageKernel) Column() CheckImage {
	return CheckImage{
		Name: k.Name(), Release: k.Fact("release").Value, Profile: k.Profile().Name, Standing: k.Standing(), CPU: k.Fact("CPU").Value,
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
func (k *ImageKernel) Verdict(p *probepoint.Point) (string, error) { return k.scan.verdict(p, nil) }

// verdict is Kernel's; step may be nil, or the walk's at the point.
func (s *scanner) verdict(p *probepoint.Point, step *kimage.Step) (string, error) {
	var row ScanRow
	s.where = *p
	if err := s.place(&row, &s.where, s.SlotAddr, step); err != nil {
		return "", err
	}
	return row.runs(), nil
}

// runs is how an accepted probe runs.
func (row *ScanRow) runs() string {
	switch {
	case row.Ftrace:
		return RunsFtrace
	case row.Optimized:
		return RunsOptimized
	}
	return RunsInt3
}
