package kimage

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"

	"kprobelab/kimage/evidence"
	"kprobelab/x86"
)

// moduleFile is a module (or any relocatable object) on its way into the
// image: .ko, .ko.xz, .ko.zst, .ko.gz or .o.
type moduleFile struct {
	img  *Image
	f    *elfFile
	name string
	// placed are the sections by their index in the file, nil if not loaded.
	placed []*Section
	syms   []elfSymbol
	addrs  []x86.Addr
	area   moduleArea
	// sections and segments are the ones that the image gets.
	sections []*Section
	segments []Segment
	// got is the offset table for the relocations that need one.
	got *offsetTable
	// next is the first free address.
	next x86.Addr
}

// maxModuleSpace is the size of module space to the fixed maps at its end.
const maxModuleSpace = 1 << 30

// room returns the bytes of memory that the module may take. Only a damaged file
// asks for far more than its size.
func (m *moduleFile) room() uint64 { return 16*uint64(len(m.f.data)) + 64<<20 }

// loadModule places a module after the loaded ones and relocates it, resolves
// its symbols against the image and then the earlier modules, and does to its
// text what the kernel does when it loads one.
func (img *Image) loadModule(path string) error {
	b, err := readFile(path)
	if err != nil {
		return err
	}
	return img.loadModuleBytes(path, b)
}

func (img *Image) loadModuleBytes(path string, b []byte) error {
	b, err := unwrap(path, b, nil)
	if err != nil {
		return err
	}
	f, err := parseModule(path, b)
	if err != nil {
		return err
	}
	return img.loadModuleELF(f)
}

func parseModule(path string, b []byte) (*elfFile, error) {
	f, err := parseELF(path, b)
	if err == nil && f.typ != etRel {
		err = badFormat(path, 16, "a module is a relocatable object (ELF type 1), the type is %d", f.typ)
	}
	return f, err
}

func (img *Image) loadModuleELF(f *elfFile) error {
	m := &moduleFile{img: img, f: f, next: x86.Addr(pageUp(uint64(img.ModuleEnd()))), placed: make([]*Section, len(f.shdrs))}
	steps := []func() error{m.identify, m.layOut, m.resolve, m.relocate}
	if img.core != nil {
		steps = slices.Insert(steps, 1, m.goBeside)
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return m.join()
}

// ModuleEnd is the first free address of module space after the loaded modules,
// at a page's start: kprobes' slots and detour buffers go there.
func (img *Image) ModuleEnd() x86.Addr {
	end := x86.Addr(img.profile.ModuleBase)
	for _, m := range img.modules {
		for _, r := range m.regions {
			end = max(end, r.End)
		}
	}
	return x86.Addr(pageUp(uint64(end)))
}

// ModuleText holds the address ranges of a module's code.
type ModuleText struct {
	// Text is the core code, Init what only its loading runs.
	Text, Init x86.Range
}

// ModuleText returns the ranges of a loaded module's code; false if there is no module
// of that name.
func (img *Image) ModuleText(name string) (ModuleText, bool) {
	for _, m := range img.modules {
		if m.name == name {
			return ModuleText{Text: m.text, Init: m.initText}, true
		}
	}
	return ModuleText{}, false
}

// identify finds the module's name and compares its vermagic.
func (m *moduleFile) identify() error {
	m.name = m.nameOf()
	for _, other := range m.img.modules {
		if other.name == m.name {
			return badFormat(m.f.name, -1, "a module named %s is loaded already", m.name)
		}
	}
	m.area.name = m.name
	magic, _, _ := strings.Cut(m.modinfo("vermagic"), " ")
	release := m.img.facts.Value("release")
	if magic != "" && release != "" && magic != release {
		m.img.facts = append(m.img.facts, evidence.Fact{Name: "module " + m.name, Value: "made for " + magic,
			Evidence: "vermagic; the image is " + release + ", the module was loaded all the same"})
	}
	return nil
}

// nameOf is the name in .modinfo, or in the module's struct module, or made
// of the file's name as kbuild does.
func (m *moduleFile) nameOf() string {
	if n := m.modinfo("name"); n != "" {
		return n
	}
	// struct module begins with its state and list links, then the name.
	const nameAt = 24
	if s := m.f.section(".gnu.linkonce.this_module"); s != nil {
		if b := m.f.content(s); len(b) > nameAt {
			if n := cstring(string(b[nameAt:min(len(b), nameAt+56)]), 0); n != "" {
				return n
			}
		}
	}
	base, _, _ := strings.Cut(filepath.Base(m.f.name), ".")
	return strings.ReplaceAll(base, "-", "_")
}

// modinfo is the value of a key in .modinfo, "" without it.
func (m *moduleFile) modinfo(key string) string {
	s := m.f.section(".modinfo")
	if s == nil {
		return ""
	}
	for _, line := range bytes.Split(m.f.content(s), []byte{0}) {
		if k, v, ok := strings.Cut(string(line), "="); ok && k == key {
			return v
		}
	}
	return ""
}

// moduleSections says which sections make one piece of a module's memory, in
// the order in which they lie there.
type moduleSections struct {
	init, exec, write bool
}

// layOut places the sections: core text, read-only data, data; then the same
// of init, each piece from a page boundary on.
func (m *moduleFile) layOut() error {
	for i := range m.f.shdrs {
		if s := &m.f.shdrs[i]; s.isPerCPU() {
			if err := m.placePerCPU(i, s); err != nil {
				return err
			}
		}
	}
	for _, init := range []bool{false, true} {
		for _, class := range []moduleSections{{init, true, false}, {init, false, false}, {init, false, true}} {
			if err := m.place(class); err != nil {
				return err
			}
		}
	}
	return m.placeCommon()
}

// notLoaded are allocated sections that the kernel reads and drops.
var notLoaded = map[string]bool{".modinfo": true, "__versions": true, ".gnu.warning": true}

func (c moduleSections) has(s *elfSection) bool {
	exec, write := s.flags&shfExec != 0, s.flags&shfWrite != 0
	return s.typ != 0 && s.flags&shfAlloc != 0 && s.flags&shfTLS == 0 && s.size > 0 && !notLoaded[s.name] && !s.isPerCPU() &&
		strings.HasPrefix(s.name, ".init") == c.init && exec == c.exec && (exec || write == c.write)
}

// place lays the sections of one class out as one segment.
func (m *moduleFile) place(c moduleSections) error {
	start := m.next
	at := uint64(start)
	var list []int
	for i := range m.f.shdrs {
		s := &m.f.shdrs[i]
		if !c.has(s) {
			continue
		}
		if s.align > pageSize {
			return badFormat(m.f.name, -1, "section %s of module %s wants to be aligned to %#x, a page is all there is", s.name, m.name, s.align)
		}
		at = (at + s.align - 1) &^ (s.align - 1)
		s.addr = at
		at += s.size
		if at-uint64(m.img.profile.ModuleBase) > maxModuleSpace || at < s.size || at-uint64(start) > m.room() {
			return badFormat(m.f.name, -1, "module %s does not fit into module space: section %s ends at %#x", m.name, s.name, at)
		}
		list = append(list, i)
	}
	if len(list) == 0 {
		return nil
	}
	g := m.segment(m.f.shdrs[list[0]].name, start, at-uint64(start), c.exec, c.write)
	for _, i := range list {
		s := &m.f.shdrs[i]
		off := s.addr - uint64(start)
		data := g.Data[off : off+s.size : off+s.size]
		copy(data, m.f.content(s))
		sec := newSection(s, x86.Addr(s.addr), data)
		sec.Module, sec.zero = m.name, s.typ == shtNobits
		m.placed[i] = sec
		m.sections = append(m.sections, sec)
	}
	if c.exec {
		r := x86.Range{Start: start, End: x86.Addr(at)}
		if c.init {
			m.area.initText = r
		} else {
			m.area.text = r
		}
	}
	return nil
}

func (s *elfSection) isPerCPU() bool {
	return s.flags&shfAlloc != 0 && s.size > 0 && s.name == ".data..percpu"
}

// placePerCPU puts the module's per-CPU variables after the image's: the
// template of the per-CPU area grows by them, as the kernel reserves room for
// modules after its own.
func (m *moduleFile) placePerCPU(i int, s *elfSection) error {
	p := m.img.percpu
	if p == nil {
		return badFormat(m.f.name, -1, "module %s has per-CPU data (%d bytes), the image has no per-CPU area", m.name, s.size)
	}
	if s.size > m.room() || s.align > pageSize {
		return badFormat(m.f.name, -1, "the per-CPU data of module %s does not fit: %#x bytes aligned to %#x", m.name, s.size, s.align)
	}
	at := (p.Size + s.align - 1) &^ (s.align - 1)
	data := make([]byte, at+s.size)
	copy(data, p.Data)
	copy(data[at:], m.f.content(s))
	p.Data, p.Size = data, at+s.size
	sec := newSection(s, p.Addr+x86.Addr(at), data[at:])
	sec.Module = m.name
	m.placed[i] = sec
	return nil
}

// segment adds a segment of the module; its data is all there, so that it can
// be relocated and read alike.
func (m *moduleFile) segment(name string, start x86.Addr, size uint64, exec, write bool) *Segment {
	m.segments = append(m.segments, Segment{Name: m.name + " " + name, Addr: start, Data: make([]byte, size), Size: size, Exec: exec, Write: write})
	end := start + x86.Addr(size)
	m.area.regions = append(m.area.regions, x86.Range{Start: start, End: end})
	m.next = x86.Addr(pageUp(uint64(end)))
	return &m.segments[len(m.segments)-1]
}

// placeCommon gives the common symbols of a plain object their place. (The
// kernel refuses them: modules are compiled without.)
func (m *moduleFile) placeCommon() error {
	m.syms = m.f.symbols()
	m.addrs = make([]x86.Addr, len(m.syms))
	start := m.next
	at := uint64(start)
	for i := range m.syms {
		s := &m.syms[i]
		if s.shndx != shnCommon {
			continue
		}
		align := max(s.value, 1)
		if align&(align-1) != 0 || align > pageSize || s.size > maxModuleSpace || at+s.size-uint64(start) > m.room() {
			return badFormat(m.f.name, -1, "common symbol %s of %#x bytes aligned to %#x does not fit", s.name, s.size, s.value)
		}
		at = (at + align - 1) &^ (align - 1)
		m.addrs[i] = x86.Addr(at)
		at += s.size
	}
	if at == uint64(start) {
		return nil
	}
	g := m.segment(".common", start, at-uint64(start), false, true)
	m.sections = append(m.sections, &Section{Name: ".common", Addr: start, Data: g.Data, Size: g.Size, Align: 16,
		Alloc: true, Write: true, Module: m.name, zero: true})
	return nil
}

// join makes the module part of the image: its memory, symbols and tables,
// and its text as loading leaves it.
func (m *moduleFile) join() error {
	img := m.img
	i := -1
	m.area.symbols = kallsymsOf(m.syms, func(s *elfSymbol) (x86.Addr, *Section) {
		for i++; &m.syms[i] != s; i++ { // kallsymsOf goes through the table in order
		}
		return m.addrs[i], m.sectionOf(s)
	})
	for i := range m.area.symbols {
		m.area.symbols[i].Module = m.name
	}
	if s := m.f.section(".BTF"); s != nil {
		m.area.btf = m.f.content(s)
	}
	img.addModule(&m.area, m.sections)
	img.segments = append(img.segments, m.segments...)
	o := tableOwner{img: img, module: m.name}
	img.readTables(o)
	img.tables.sort()
	img.gatherBlacklist(o)
	if img.opts.NoBoot || img.core != nil {
		return nil
	}
	p, err := img.newBootPatcher()
	if err != nil {
		return err
	}
	p.patch(o)
	return nil
}

// sectionOf returns the loaded section of a symbol, nil if it has none.
func (m *moduleFile) sectionOf(s *elfSymbol) *Section {
	if s.shndx == shnCommon {
		return m.sections[len(m.sections)-1]
	}
	if int(s.shndx) < len(m.placed) {
		return m.placed[s.shndx]
	}
	return nil
}

// resolve gives every symbol its address.
func (m *moduleFile) resolve() error {
	var unknown []string
	for i := range m.syms {
		s := &m.syms[i]
		switch {
		case i == 0 || s.shndx == shnCommon:
		case s.shndx == shnUndef:
			a, ok := m.external(s)
			if !ok {
				unknown = append(unknown, s.name)
			}
			m.addrs[i] = a
		case s.shndx == shnAbs:
			m.addrs[i] = x86.Addr(s.value)
		case int(s.shndx) < len(m.placed) && m.placed[s.shndx] != nil:
			m.addrs[i] = m.placed[s.shndx].Addr + x86.Addr(s.value)
		}
	}
	switch len(unknown) {
	case 0:
		return nil
	case 1:
		return badFormat(m.f.name, -1, "module %s: unknown symbol %s", m.name, unknown[0])
	default:
		return badFormat(m.f.name, -1, "module %s: unknown symbol %s, and %d more", m.name, unknown[0], len(unknown)-1)
	}
}

// external resolves an undefined symbol: the image's, else the first module's
// that has it, else 0 for a weak one. What is patched out of the text anyway
// need not be there.
func (m *moduleFile) external(s *elfSymbol) (x86.Addr, bool) {
	if a, ok := m.img.symbolAddr(s.name); ok {
		return a, true
	}
	if found := m.img.named[s.name]; len(found) > 0 {
		return found[0].Addr, true
	}
	switch s.name {
	case "__fentry__", "__x86_return_thunk", offsetTableName:
		return 0, true
	}
	return 0, s.binding() == stbWeak
}
