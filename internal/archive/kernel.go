package archive

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"kprobelab/internal/archive/ctypes"
	"kprobelab/internal/debuginfo"
	"kprobelab/internal/report"
	"kprobelab/internal/tracing/definition"
	"kprobelab/kimage"
	"kprobelab/kimage/btf"
	"kprobelab/kimage/evidence"
	"kprobelab/kprobes/probepoint"
	"kprobelab/profile"
	"kprobelab/x86"
)

// kernelPart is the section "kernel".
type kernelPart struct {
	Banner   string          `json:"banner"`
	Profile  json.RawMessage `json:"profile"`
	Facts    []evidence.Fact `json:"facts"`
	Verdicts []verdict       `json:"verdicts"`
	// Traces: the kernel has ftrace sites.
	Traces bool `json:"traces"`
	// Programs are the kernel's lists of the BPF programs that it takes at each place; an
	// older file has Sets alone.
	Programs *kimage.Programs `json:"programs,omitempty"`
	Sets     map[string][]int `json:"sets,omitempty"`
	// Passed are the functions that a trampoline does not pass on as it does most.
	Passed map[string]btf.Passed `json:"passed,omitempty"`
}

// Kernel is a file of an archive; it answers what an image would. It is for one
// goroutine. A damaged part that is met on the way makes answers wrong: Err tells.
type Kernel struct {
	*kimage.Names
	*opened
	// places are the areas that are loaded.
	places []place
	types  *btf.Types
	// described has the definitions by parameters, nil before the first.
	described *debuginfo.Info
}

// place is an area in its group.
type place struct {
	*group
	area int
}

// opened holds the parts that a kernel shares with the same kernel with a module loaded.
type opened struct {
	// Header says which kernel it is.
	Header  Header
	name    string
	part    kernelPart
	profile *profile.Config
	answers []answer
	own     *group
	// packaged has the modules of the package, nil until it is read.
	packaged *group
	inlined  map[string][]string
	btf      ctypes.Writer
	err      error
}

var (
	_ report.Kernel  = (*Kernel)(nil)
	_ report.Definer = (*Kernel)(nil)
)

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
	k := &Kernel{opened: &opened{Header: f.Header, name: name}}
	var err error
	if k.part, k.profile, err = f.kernel(); err != nil {
		return nil, err
	}
	if k.answers, err = answers(k.part.Verdicts); err != nil {
		return nil, err
	}
	if k.own, err = readGroup(f, ""); err != nil {
		return nil, err
	}
	if len(k.own.Areas) == 0 {
		return nil, damaged("it has no kernel")
	}
	var t kimage.NameTable
	for i := range k.own.Areas {
		a, err := k.own.area(i)
		if err != nil {
			return nil, err
		}
		k.places = append(k.places, place{k.own, i})
		if i > 0 {
			t.Modules = append(t.Modules, a)
		} else {
			t.Kernel = a
		}
	}
	k.Names = kimage.NewNames(&t)
	return k, nil
}

// kernel reads what the file says of the kernel as a whole, with its rules.
func (f *file) kernel() (p kernelPart, c *profile.Config, err error) {
	head, err := f.section("kernel")
	if err != nil {
		return p, nil, err
	}
	if err := json.Unmarshal(head, &p); err != nil {
		return p, nil, damaged("part \"kernel\": %v", err)
	}
	if p.Programs == nil { // an older file
		p.Programs = &kimage.Programs{Sets: p.Sets}
	}
	c, err = readProfile(f.Release, p.Profile)
	return p, c, err
}

// readProfile reads a profile. Fields that came after the file was made are as in the
// release's own profile.
func readProfile(release string, text []byte) (*profile.Config, error) {
	c, _ := profile.Named(profile.Default)
	if v, ok := profile.ParseVersion(release); ok {
		c = profile.ForRelease(v)
	}
	err := json.Unmarshal(text, c)
	var other *json.UnmarshalTypeError
	switch {
	case errors.As(err, &other):
		return nil, fmt.Errorf("%w (its rules have %s in another form)", ErrOlder, other.Field)
	case err != nil:
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

func (k *opened) failed(err error) {
	if k.err == nil {
		k.err = err
	}
}

// Column implements report.Kernel.
func (k *Kernel) Column() report.CheckImage {
	return report.CheckImage{
		Name: k.name, Release: k.Header.Release, Profile: k.Header.Profile, Standing: k.Header.Standing, CPU: k.Header.CPU,
		Distribution: k.Header.Distribution, Package: k.Header.Package, BuildID: k.Header.BuildID,
		NoHazards: !k.own.file.hazardous(),
	}
}

// Profile implements report.Kernel.
func (k *Kernel) Profile() *profile.Config { return k.profile }

// Traces implements report.Kernel.
func (k *Kernel) Traces() bool { return k.part.Traces }

// symbol is the first symbol at an address: its group and its number there.
func (k *Kernel) symbol(a x86.Addr) (*group, int, bool) {
	for _, p := range k.places {
		if i, ok := p.symbol(p.area, a); ok {
			return p.group, i, true
		}
	}
	return nil, 0, false
}

// Traceable implements report.Kernel.
func (k *Kernel) Traceable(a x86.Addr) bool {
	s, ok := k.SymbolAt(a)
	if !ok {
		return false
	}
	g, i, ok := k.symbol(s.Addr)
	return ok && g.marks[i]&markTraceable != 0
}

// CodeAt gives the first bytes of a symbol: an ENDBR, or zeros for all other code. It
// knows no other bytes.
func (k *Kernel) CodeAt(a x86.Addr, b []byte) int {
	g, i, ok := k.symbol(a)
	if !ok {
		return 0
	}
	return copy(b, heads[g.marks[i]&markHead])
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
		if g, i, ok := k.symbol(p.Symbol.Addr); ok && k.InText(p.Addr) {
			return g.entries[i]
		}
	}
	if !k.InText(p.Addr) {
		return notText
	}
	for _, g := range []*group{k.own, k.packaged} {
		if g == nil {
			continue
		}
		if n, ok, err := g.point(p.Addr); err != nil {
			k.failed(err)
			return notText
		} else if ok {
			return n
		}
	}
	return notText
}

// Types implements report.Kernel.
func (k *Kernel) Types() *btf.Types {
	if k.types != nil {
		return k.types
	}
	k.types = &btf.Types{}
	if k.Header.Entries {
		k.failed(ErrEntries)
		return k.types
	}
	types, err := k.readTypes()
	if err != nil {
		k.failed(err)
		return k.types
	}
	k.types = types
	return types
}

func (k *Kernel) readTypes() (*btf.Types, error) {
	types := &btf.Types{}
	for _, p := range k.places {
		t, err := k.table(p)
		if err != nil {
			return nil, err
		}
		switch {
		case t == nil:
		case p.group == k.own && p.area == 0:
			types, err = btf.New(k.btf.Kernel(t), nil)
		default:
			types, err = types.With(k.btf.Module(t))
		}
		if err != nil {
			return nil, damaged("its types: %v", err)
		}
	}
	return types, nil
}

// Definitions implements report.Definer, by the types of the file: as an image without DWARF does.
func (k *Kernel) Definitions(line definition.Line) ([]definition.Line, error) {
	if k.described == nil {
		var raw []byte
		var modules [][]byte
		for _, p := range k.places {
			t, err := k.table(p)
			switch {
			case err != nil:
				return nil, err
			case t == nil:
			case p.group == k.own && p.area == 0:
				raw = bytes.Clone(k.btf.Kernel(t))
			default:
				modules = append(modules, bytes.Clone(k.btf.Module(t)))
			}
		}
		var err error
		if k.described, err = debuginfo.OfTypes(raw, modules, k.Symbols(), k.profile); err != nil {
			return nil, err
		}
	}
	return k.described.Definitions(line)
}

// table returns the types of a loaded area, nil if it has none.
func (k *Kernel) table(p place) (*ctypes.Table, error) {
	err := k.own.readTables(nil)
	if err == nil && k.own.tables != nil && p.group != k.own {
		err = p.readTables(k.own.tables[0])
	}
	if err != nil || p.tables == nil {
		return nil, err
	}
	return p.tables[p.area], nil
}

// FuncID implements report.Kernel.
func (k *Kernel) FuncID(name string) (int, bool) {
	for _, p := range k.places {
		t, err := k.table(p)
		if err != nil {
			k.failed(err)
			return 0, false
		}
		if t == nil {
			continue
		}
		if id, ok := t.FuncID(name); ok {
			return id, true
		}
	}
	return 0, false
}

// Typed implements report.Kernel.
func (k *Kernel) Typed() bool {
	t, err := k.table(k.places[0])
	if err != nil {
		k.failed(err)
	}
	return t != nil
}

// Passed implements report.Kernel.
func (k *Kernel) Passed(name string) (btf.Passed, bool) {
	_, ok := k.FuncID(name)
	return k.part.Passed[name], ok
}

// Programs implements report.Kernel.
func (k *Kernel) Programs() *kimage.Programs { return k.part.Programs }

// Injectable implements report.Kernel.
func (k *Kernel) Injectable(a x86.Addr) bool {
	s, ok := k.SymbolAt(a)
	if !ok {
		return false
	}
	g, i, ok := k.symbol(s.Addr)
	return ok && g.marks[i]&markInjectable != 0
}

// Tracepoints implements report.Kernel.
func (k *Kernel) Tracepoints() (list []kimage.Tracepoint) {
	list = slices.Clip(k.own.Tracepoints)
	for _, p := range k.places {
		for _, t := range p.groupPart.Tracepoints {
			if p.group != k.own && t.Module == p.Areas[p.area].Name {
				list = append(list, t)
			}
		}
	}
	kimage.SortTracepoints(list)
	return list
}

// Inlined implements report.Kernel.
func (k *Kernel) Inlined(name string) ([]string, bool) {
	if k.inlined == nil && k.Header.Inlined {
		b, err := k.own.section("inlined")
		if err != nil {
			k.failed(err)
		}
		k.inlined = readInlined(b)
	}
	return k.inlined[name], k.Header.Inlined
}

// packageGroup returns the modules of the package, nil if there are none.
func (k *Kernel) packageGroup() *group {
	if k.packaged == nil && k.Header.Packaged > 0 {
		g, err := readGroup(k.own.file, packagePrefix)
		if err != nil {
			k.failed(err)
			return nil
		}
		k.packaged = g
	}
	return k.packaged
}

// Package implements report.Kernel.
func (k *Kernel) Package(name string) (modules []string) {
	g := k.packageGroup()
	if g == nil {
		return nil
	}
	for _, i := range g.having(name) {
		modules = append(modules, g.Areas[i].Name)
	}
	return modules
}

// With implements report.Kernel.
func (k *Kernel) With(module string) (report.Kernel, error) {
	if g := k.packageGroup(); g != nil {
		if i, ok := g.named(module); ok {
			a, err := g.area(i)
			if err != nil {
				return nil, err
			}
			return &Kernel{Names: k.Names.With(&a), opened: k.opened, places: append(slices.Clip(k.places), place{g, i})}, nil
		}
	}
	return nil, fmt.Errorf("%s has no module %s", k.name, module)
}
