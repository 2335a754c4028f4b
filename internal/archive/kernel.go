package archive

import (
	"encoding/json"
	"fmt"
	"io/fs"

	"kprobelab/internal/report"
	"kprobelab/kimage"
	"kprobelab/kprobes/probepoint"
	"kprobelab/profile"
	"kprobelab/x86"
)

// kernelPart is the section "kernel".
type kernelPart struct {
	Banner   string          `json:"banner"`
	Profile  json.RawMessage `json:"profile"`
	Facts    []kimage.Fact   `json:"facts"`
	Verdicts []verdict       `json:"verdicts"`
	Areas    []area          `json:"areas"`
	// Traces: the kernel has ftrace sites.
	Traces      bool                `json:"traces"`
	Tracepoints []kimage.Tracepoint `json:"tracepoints"`
	// Inlined are the functions that have the code of inlined ones; nil where no
	// DWARF was at hand.
	Inlined map[string][]string `json:"inlined,omitempty"`
}

// Kernel is a file of an archive; it answers what an image would. It is for one
// goroutine. A damaged part that is met on the way makes answers wrong: Err tells.
type Kernel struct {
	*kimage.Names
	// Header says which kernel it is.
	Header  Header
	name    string
	file    *file
	part    kernelPart
	profile *profile.Config
	answers []answer
	texts   texts
	marks   []byte
	entries []byte
	windows map[int][]byte
	types   *kimage.Types
	err     error
}

var _ report.Kernel = (*Kernel)(nil)

// Open reads a file.
func Open(name string) (*Kernel, error) {
	f, err := readFile(name)
	if err != nil {
		return nil, err
	}
	k, err := newKernel(name, f)
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return k, nil
}

func newKernel(name string, f *file) (*Kernel, error) {
	k := &Kernel{Header: f.Header, name: name, file: f, windows: map[int][]byte{}}
	head, err := f.section("kernel")
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(head, &k.part); err != nil {
		return nil, damaged("part \"kernel\": %v", err)
	}
	if len(k.part.Areas) == 0 {
		return nil, damaged("it has no kernel")
	}
	if k.profile, err = readProfile(f.Release, k.part.Profile); err != nil {
		return nil, err
	}
	if k.answers, err = answers(k.part.Verdicts); err != nil {
		return nil, err
	}
	c, err := readColumns(f)
	if err != nil {
		return nil, err
	}
	t, err := table(k.part.Areas, &c)
	if err != nil {
		return nil, err
	}
	k.Names = kimage.NewNames(t)
	k.texts = textsOf(k.part.Areas)
	if k.texts.len() > maxSection {
		return nil, damaged("its text has %d bytes", k.texts.len())
	}
	if k.marks, err = f.section("marks"); err != nil {
		return nil, err
	}
	if k.entries, err = f.section("entries"); err != nil {
		return nil, err
	}
	if n := len(k.Names.Symbols()); len(k.marks) != n || len(k.entries) != n {
		return nil, damaged("it has marks for %d symbols, there are %d", len(k.marks), n)
	}
	return k, nil
}

// readProfile reads a profile. Fields that came after the file was made are as in the
// release's own profile.
func readProfile(release string, text []byte) (*profile.Config, error) {
	c, _ := profile.Named(profile.Default)
	if v, ok := profile.ParseVersion(release); ok {
		c = profile.ForRelease(v)
	}
	if err := json.Unmarshal(text, c); err != nil {
		return nil, damaged("its profile: %v", err)
	}
	return c, nil
}

// Err is the first damage that was met while answering, or nil.
func (k *Kernel) Err() error {
	if k.err == nil {
		return nil
	}
	return &fs.PathError{Op: "read", Path: k.name, Err: k.err}
}

func (k *Kernel) failed(err error) {
	if k.err == nil {
		k.err = err
	}
}

// Column implements report.Kernel.
func (k *Kernel) Column() report.CheckImage {
	return report.CheckImage{
		Name: k.name, Release: k.Header.Release, Profile: k.Header.Profile, Standing: k.Header.Standing, CPU: k.Header.CPU,
		Distribution: k.Header.Distribution, Package: k.Header.Package, BuildID: k.Header.BuildID,
	}
}

// Profile implements report.Kernel.
func (k *Kernel) Profile() *profile.Config { return k.profile }

// Traces implements report.Kernel.
func (k *Kernel) Traces() bool { return k.part.Traces }

// symbol is the number of the first symbol at an address.
func (k *Kernel) symbol(a x86.Addr) (int, bool) {
	from := 0
	for i := range k.part.Areas {
		n := k.part.Areas[i].Symbols
		if found, ok := at(k.Names.Symbols()[from:from+n], a); ok {
			return from + found, true
		}
		from += n
	}
	return 0, false
}

// Traceable implements report.Kernel.
func (k *Kernel) Traceable(a x86.Addr) bool {
	s, ok := k.SymbolAt(a)
	if !ok {
		return false
	}
	i, ok := k.symbol(s.Addr)
	return ok && k.marks[i]&markTraceable != 0
}

// CodeAt gives the first bytes of a symbol: those of an ENDBR, or zeros where
// there is something else. It knows no others.
func (k *Kernel) CodeAt(a x86.Addr, b []byte) int {
	i, ok := k.symbol(a)
	if !ok {
		return 0
	}
	return copy(b, heads[k.marks[i]&markHead])
}

// Verdict implements report.Kernel.
func (k *Kernel) Verdict(p *probepoint.Point) (string, error) {
	n := k.verdict(p)
	if int(n) >= len(k.answers) {
		k.failed(damaged("there is no verdict %d", n))
		n = notText
	}
	if v := &k.answers[n]; v.err != nil {
		refused := *v.err
		refused.Addr, refused.Symbol = p.Addr, p.String()
		return "", &refused
	} else if v.runs == report.RunsFtrace {
		p.Ftrace = true
		return v.runs, nil
	} else {
		return v.runs, nil
	}
}

func (k *Kernel) verdict(p *probepoint.Point) byte {
	if p.Entry {
		if i, ok := k.symbol(p.Symbol.Addr); ok && k.InText(p.Addr) {
			return k.entries[i]
		}
	}
	off, ok := k.texts.offset(p.Addr)
	if !ok {
		return notText
	}
	w, err := k.window(int(off / window))
	if err != nil {
		k.failed(err)
		return notText
	}
	return w[off%window]
}

// window is a piece of the text's verdicts.
func (k *Kernel) window(i int) ([]byte, error) {
	if w, ok := k.windows[i]; ok {
		return w, nil
	}
	if k.Header.Entries {
		return nil, ErrEntries
	}
	b, err := k.file.section(windowName(i))
	if err != nil {
		return nil, err
	}
	if b == nil {
		return nil, damaged("the part %q is missing", windowName(i))
	}
	w, err := unpackWindow(b, window)
	if err == nil {
		k.windows[i] = w
	}
	return w, err
}

// Types implements report.Kernel.
func (k *Kernel) Types() *kimage.Types {
	if k.types != nil {
		return k.types
	}
	k.types = &kimage.Types{}
	if k.Header.Entries {
		k.failed(ErrEntries)
		return k.types
	}
	raw, err := k.file.section("types")
	if err != nil {
		k.failed(err)
	} else if raw != nil {
		t, err := readTypes(raw)
		if err != nil {
			k.failed(damaged("its types: %v", err))
			return k.types
		}
		k.types = t
	}
	return k.types
}

// Tracepoints implements report.Kernel.
func (k *Kernel) Tracepoints() []kimage.Tracepoint { return k.part.Tracepoints }

// FuncID implements report.Kernel.
func (k *Kernel) FuncID(name string) (int, bool) { return k.Types().FuncID(name) }

// Inlined implements report.Kernel.
func (k *Kernel) Inlined(name string) ([]string, bool) {
	return k.part.Inlined[name], k.part.Inlined != nil
}

// Package implements report.Kernel.
func (k *Kernel) Package(string) []string { return nil }

// With implements report.Kernel.
func (k *Kernel) With(module string) (report.Kernel, error) {
	return nil, fmt.Errorf("%s has no module %s", k.name, module)
}
