package kimage

import (
	"fmt"
	"slices"
	"strings"

	"kprobelab/internal/bounded"
	"kprobelab/internal/printable"
	"kprobelab/x86"
)

const (
	// maxModuleName is the room for a module's name and its NUL; the kernel's is 56 (MODULE_NAME_LEN).
	maxModuleName = 64
	// moduleUnformed is the state of one that is not there yet (MODULE_STATE_UNFORMED).
	moduleUnformed = 3
)

// Types of a module's memory since 6.4 (enum mod_mem_type).
const (
	memText     = 0
	memInitText = 4
	memTypes    = 7
)

// loadedModule is a module of the running kernel.
type loadedModule struct {
	d    *dump
	at   x86.Addr
	area moduleArea
	// named are the parts that become sections.
	named    []namedRange
	sections []*Section
	segments []Segment
}

// moduleUse sums up the memory (bytes), types and symbols of a dump's modules: a few page tables
// can map one page a million times.
type moduleUse struct{ memory, types, symbols int }

// loadModules reads the list of modules. Without type information about them, that is a
// fact, and no error.
func (d *dump) loadModules() error {
	head, ok := d.img.symbolAddr("modules")
	if !ok || d.Word(head) == head {
		return nil
	}
	link, known := d.Place("module.list")
	if !known {
		d.fact("modules", "not known", "there is no type information (BTF) about them")
		return nil
	}
	var list []x86.Addr
	err := d.List(head, link, func(m x86.Addr) bool {
		list = append(list, m)
		return len(list) < bounded.DumpModules
	})
	slices.Reverse(list) // the last one loaded is the first
	types := d.moduleTypes()
	var names, odd []string
	for _, at := range list {
		m := &loadedModule{d: d, at: at}
		name, e := m.load(types)
		switch {
		case e != nil:
			odd = append(odd, fmt.Sprintf("%s: %v", name, e))
		case name != "":
			names = append(names, name)
		}
	}
	if err != nil {
		odd = append([]string{err.Error()}, odd...)
	}
	d.fact("modules", fmt.Sprintf("%d loaded", len(names)), "the kernel's list: "+strings.Join(names, ", "))
	switch len(odd) {
	case 0:
	case 1:
		d.fact("modules left out", "1", odd[0])
	default:
		d.fact("modules left out", fmt.Sprint(len(odd)), fmt.Sprintf("%s; and %d more", odd[0], len(odd)-1))
	}
	return nil
}

// moduleTypes are the modules' own types, which the kernel keeps by module.
func (d *dump) moduleTypes() map[x86.Addr][]byte {
	found := map[x86.Addr][]byte{}
	head, ok := d.img.symbolAddr("btf_modules")
	p, err := d.Places("btf_module.list", "btf_module.module", "btf_module.btf", "btf.data", "btf.data_size")
	if !ok || err != nil {
		return found
	}
	// A broken list loses some modules, which then have no prototypes.
	n := 0
	_ = d.List(head, p["btf_module.list"], func(e x86.Addr) bool {
		btf := d.Word(e.Add(int64(p["btf_module.btf"])))
		size := int(d.Half(btf.Add(int64(p["btf.data_size"]))))
		if d.used.types += size; d.used.types <= bounded.DumpRead {
			found[d.Word(e.Add(int64(p["btf_module.module"])))] = d.Read(d.Word(btf.Add(int64(p["btf.data"]))), size)
		}
		n++
		return n < bounded.DumpModules
	})
	return found
}

// field is the address of a member of the module.
func (m *loadedModule) field(path string) (x86.Addr, bool) {
	at, ok := m.d.Place("module." + path)
	return m.at.Add(int64(at)), ok
}

// word and number read members; they return 0 if the kernel's modules have no such member.
func (m *loadedModule) word(path string) x86.Addr {
	at, ok := m.field(path)
	if !ok {
		return 0
	}
	return m.d.Word(at)
}

func (m *loadedModule) number(path string) uint64 {
	at, ok := m.field(path)
	if !ok {
		return 0
	}
	return uint64(m.d.Half(at))
}

// load adds the module to the image and returns its name, "" for one that is not
// formed yet.
func (m *loadedModule) load(types map[x86.Addr][]byte) (string, error) {
	at, ok := m.field("name")
	name := m.d.Text(at, maxModuleName)
	if !ok || name == "" {
		return "a module without a name", fmt.Errorf("at %v", m.at)
	}
	if m.number("state") == moduleUnformed {
		return "", nil
	}
	img := m.d.img
	if slices.Contains(img.Modules(), name) {
		return name, fmt.Errorf("it is on the list twice")
	}
	m.area.name, m.area.btf = name, types[m.at]
	if err := m.findMemory(); err != nil {
		return name, err
	}
	m.findTables()
	for _, r := range m.area.regions {
		if err := m.layOut(r); err != nil {
			return name, err
		}
	}
	m.readSymbols()
	img.addModule(&m.area, m.sections)
	img.segments = append(img.segments, m.segments...)
	o := tableOwner{img: img, module: name}
	img.readTables(o)
	img.tables.sort()
	img.gatherBlacklist(o)
	return name, nil
}

// findMemory finds the module's memory: seven pieces by their use since 6.4, before that
// one of the module and one of its init code, which begin with the text.
func (m *loadedModule) findMemory() error {
	add := func(base x86.Addr, size uint64) (x86.Range, error) {
		r := x86.Range{Start: base, End: base + x86.Addr(size)}
		if base == 0 || size == 0 {
			return x86.Range{}, nil
		}
		if size > bounded.ModuleMemory || base%pageSize != 0 {
			return r, fmt.Errorf("its memory at %v has %#x bytes", base, size)
		}
		m.area.regions = append(m.area.regions, r)
		return r, nil
	}
	if mem, ok := m.d.Member("module.mem"); ok {
		elem, isArray := mem.Type.Elem()
		base, ok1 := elem.Member("base")
		size, ok2 := elem.Member("size")
		if !isArray || !ok1 || !ok2 {
			return fmt.Errorf("its memory is described in an unknown way")
		}
		for i := range memTypes {
			at := m.at.Add(int64(mem.Offset/8 + i*elem.Size()))
			r, err := add(m.d.Word(at.Add(int64(base.Offset/8))), uint64(m.d.Half(at.Add(int64(size.Offset/8)))))
			if err != nil {
				return err
			}
			switch i {
			case memText:
				m.area.text = r
			case memInitText:
				m.area.initText = r
			}
		}
		return nil
	}
	for layout, text := range map[string]*x86.Range{"core_layout": &m.area.text, "init_layout": &m.area.initText} {
		r, err := add(m.word(layout+".base"), m.number(layout+".size"))
		if err != nil {
			return err
		}
		*text = x86.Range{Start: r.Start, End: min(r.End, r.Start+x86.Addr(m.number(layout+".text_size")))}
	}
	if len(m.area.regions) == 0 {
		return fmt.Errorf("nothing says where its memory is")
	}
	return nil
}

// moduleTables are the tables that struct module points to.
var moduleTables = []struct{ section, at, count, entry string }{
	{"__ex_table", "extable", "num_exentries", "exception_table_entry"},
	{"__bug_table", "bug_table", "num_bugs", "bug_entry"},
	{"__jump_table", "jump_entries", "num_jump_entries", "jump_entry"},
	{".static_call_sites", "static_call_sites", "num_static_call_sites", "static_call_site"},
	{"_kprobe_blacklist", "kprobe_blacklist", "num_kprobe_blacklist", ""},
	{".kprobes.text", "kprobes_text_start", "kprobes_text_size", "byte"},
	{".noinstr.text", "noinstr_text_start", "noinstr_text_size", "byte"},
}

// findTables names the parts of the module's memory.
func (m *loadedModule) findTables() {
	m.named = []namedRange{{".text", m.area.text}, {".init.text", m.area.initText}}
	for _, t := range moduleTables {
		size := 8
		if s, ok := m.d.img.Types().Struct(t.entry); ok {
			size = s.Size()
		} else if t.entry == "byte" {
			size = 1
		}
		at, n := m.word(t.at), m.number(t.count)
		if r := (x86.Range{Start: at, End: at + x86.Addr(n*uint64(size))}); at != 0 && r.Start < r.End {
			m.named = append(m.named, namedRange{t.section, r})
		}
	}
}

// layOut makes segments and sections of a piece of memory.
func (m *loadedModule) layOut(r x86.Range) error {
	runs, err := m.d.walk(x86.Range{Start: r.Start, End: x86.Addr(pageUp(uint64(r.End)))})
	if err != nil {
		return err
	}
	for _, run := range runs {
		if m.d.used.memory += int(run.End.Sub(run.Start)); m.d.used.memory > bounded.Image {
			return fmt.Errorf("the modules have more than %d MiB of memory", bounded.Image>>20)
		}
		data := make([]byte, run.End.Sub(run.Start))
		for at := run.Start; at < run.End; at += pageSize {
			if err := m.d.readPage(at, data[at.Sub(run.Start):][:pageSize]); err != nil {
				return err
			}
		}
		m.segments = append(m.segments, Segment{
			Name: m.area.name, Addr: run.Start, Data: data, Size: uint64(len(data)), Write: run.write, Exec: run.exec,
		})
		for _, s := range cutSections(run.Range, data, run.write, m.named, restOfKernel) {
			s.Module = m.area.name
			m.sections = append(m.sections, s)
		}
	}
	return nil
}

// readSymbols reads the module's kallsyms: an ELF symbol table, its letters beside it
// (from 5.2 on) or in the place of st_info.
func (m *loadedModule) readSymbols() {
	p, err := m.d.Places("mod_kallsyms.symtab", "mod_kallsyms.num_symtab", "mod_kallsyms.strtab")
	at := m.word("kallsyms")
	if err != nil || at == 0 {
		return
	}
	n := min(int(m.d.Half(at.Add(int64(p["mod_kallsyms.num_symtab"])))), bounded.ModuleSymbols, bounded.Kallsyms-m.d.used.symbols)
	m.d.used.symbols += n
	table := m.d.Read(m.d.Word(at.Add(int64(p["mod_kallsyms.symtab"]))), n*symSize)
	var letters []byte
	if off, ok := m.d.Place("mod_kallsyms.typetab"); ok {
		letters = m.d.Read(m.d.Word(at.Add(int64(off))), n)
	}
	names := m.names(m.d.Word(at.Add(int64(p["mod_kallsyms.strtab"]))))
	for i := 0; len(table) >= symSize; i, table = i+1, table[symSize:] {
		name := cstring(names, le.Uint32(table))
		if name == "" || le.Uint16(table[6:]) == shnUndef {
			continue
		}
		letter := table[4]
		if i < len(letters) {
			letter = letters[i]
			if table[4]>>4 != stbLocal && letter >= 'a' {
				letter -= 'a' - 'A'
			}
		}
		if !isLetter(letter) {
			letter = '?'
		}
		m.area.symbols = append(m.area.symbols, Symbol{
			Name: printable.Name(name), Addr: x86.Addr(le.Uint64(table[8:])), Type: letter, Module: m.area.name,
		})
	}
}

// names is the string table, as far as the piece of memory goes that it is in.
func (m *loadedModule) names(at x86.Addr) string {
	for _, g := range m.segments {
		if off := at.Sub(g.Addr); off >= 0 && off < int64(len(g.Data)) {
			return string(g.Data[off:])
		}
	}
	return ""
}
