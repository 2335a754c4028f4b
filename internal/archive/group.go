package archive

import (
	"encoding/json"
	"sort"

	"kprobelab/internal/archive/ctypes"
	"kprobelab/kimage"
	"kprobelab/x86"
)

// packagePrefix begins the sections of the package's modules.
const packagePrefix = "package."

// groupPart is the section "areas" of a group.
type groupPart struct {
	Areas []area `json:"areas"`
	// Tracepoints are the group's, Types that there are types.
	Tracepoints []kimage.Tracepoint `json:"tracepoints"`
	Types       bool                `json:"types"`
}

// group holds the data of the kernel and its loaded modules, or of the modules of its
// package. Its parts are unpacked when they are first needed.
type group struct {
	groupPart
	file   *file
	prefix string
	texts  texts
	// packed has the columns at which each area's symbols begin, syms the symbols of areas
	// that were read (nil before), and first the number of each area's first symbol.
	packed         []columns
	syms           [][]kimage.Symbol
	first          []int
	marks, entries []byte
	windows        map[int][]byte
	tables         []*ctypes.Table
	hazards        *hazards
	index          *nameIndex
}

// readGroup reads all but the symbols, the types and the points.
func readGroup(f *file, prefix string) (*group, error) {
	g := &group{file: f, prefix: prefix, windows: map[int][]byte{}}
	head, err := g.section("areas")
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(head, &g.groupPart); err != nil {
		return nil, damaged("part %q: %v", prefix+"areas", err)
	}
	var c columns
	for name, to := range c.sections() {
		if *to, err = g.section(name); err != nil {
			return nil, err
		}
	}
	c.text = string(c.names)
	n := 0
	for i := range g.Areas {
		g.packed, g.first = append(g.packed, c), append(g.first, n)
		if err := c.skip(g.Areas[i].Symbols); err != nil {
			return nil, err
		}
		n += g.Areas[i].Symbols
	}
	g.syms = make([][]kimage.Symbol, len(g.Areas))
	g.texts = textsOf(g.Areas)
	if !g.texts.fits() {
		return nil, damaged("its text has %d bytes", g.texts.len())
	}
	if g.marks, err = g.section("marks"); err != nil {
		return nil, err
	}
	if g.entries, err = g.section("entries"); err != nil {
		return nil, err
	}
	if len(g.marks) != n || len(g.entries) != n {
		return nil, damaged("it has marks for %d symbols, there are %d", len(g.marks), n)
	}
	return g, nil
}

func (g *group) section(name string) ([]byte, error) { return g.file.section(g.prefix + name) }

// area is an area's symbols and places.
func (g *group) area(i int) (kimage.NameArea, error) {
	a := &g.Areas[i]
	syms, err := g.symbols(i)
	if err != nil {
		return kimage.NameArea{}, err
	}
	n := kimage.NameArea{Name: a.Name, Text: a.Text.rng(), Init: a.Init.rng(), Symbols: syms}
	for _, r := range a.Regions {
		n.Regions = append(n.Regions, r.rng())
	}
	return n, nil
}

// symbols returns the symbols of an area.
func (g *group) symbols(i int) ([]kimage.Symbol, error) {
	if g.syms[i] == nil {
		c := g.packed[i]
		syms, err := c.take(g.Areas[i].Name, g.Areas[i].Symbols)
		if err != nil {
			return nil, err
		}
		g.syms[i] = syms
	}
	return g.syms[i], nil
}

// symbol is the number of the first symbol at an address, of an area that was read.
func (g *group) symbol(area int, a x86.Addr) (int, bool) {
	syms := g.syms[area]
	i := sort.Search(len(syms), func(i int) bool { return syms[i].Addr >= a })
	return g.first[area] + i, i < len(syms) && syms[i].Addr == a
}

// point is the verdict's number at an address of the texts; ok is false for others.
func (g *group) point(a x86.Addr) (n byte, ok bool, err error) {
	off, ok := g.texts.offset(a)
	if !ok {
		return 0, false, nil
	}
	w, err := g.window(int(off / window))
	if err != nil {
		return 0, true, err
	}
	return w[off%window], true, nil
}

// window is a piece of the texts' verdicts.
func (g *group) window(i int) ([]byte, error) {
	if w, ok := g.windows[i]; ok {
		return w, nil
	}
	if g.file.Entries {
		return nil, ErrEntries
	}
	b, err := g.section(windowName(i))
	if err != nil {
		return nil, err
	}
	if b == nil {
		return nil, damaged("the part %q is missing", g.prefix+windowName(i))
	}
	w, err := unpackWindow(b, window)
	if err == nil {
		g.windows[i] = w
	}
	return w, err
}

// readTables reads the types of all areas; modules' types build on base, the kernel's
// table, which is nil for the kernel's own group.
func (g *group) readTables(base *ctypes.Table) error {
	if g.tables != nil || !g.Types {
		return nil
	}
	var c ctypes.Columns
	for i, name := range ctypes.ColumnNames {
		b, err := g.section("types." + name)
		if err != nil {
			return err
		}
		c[i] = b
	}
	for i := range g.Areas {
		if !g.Areas[i].Types {
			g.tables = append(g.tables, nil)
			continue
		}
		syms, err := g.symbols(i)
		if err != nil {
			return err
		}
		t, err := ctypes.Read(&c, base, uniqueNames(syms))
		if err != nil {
			g.tables = nil
			return damaged("%v", err)
		}
		if base == nil {
			base = t
		}
		g.tables = append(g.tables, t)
	}
	return nil
}

// uniqueNames are the symbols' names, each once.
func uniqueNames(syms []kimage.Symbol) []string {
	seen := make(map[string]struct{}, len(syms))
	list := make([]string, 0, len(syms))
	for i := range syms {
		name := syms[i].Name
		if _, again := seen[name]; !again {
			seen[name] = struct{}{}
			list = append(list, name)
		}
	}
	return list
}

// having are the areas that have a symbol of a name, by their numbers.
func (g *group) having(name string) (list []int) {
	if len(g.packed) == 0 {
		return nil
	}
	text := g.packed[0].text
	if g.index == nil {
		g.index = indexNames(text, len(g.marks))
	}
	for _, at := range g.index.find(name) {
		area := sort.Search(len(g.packed), func(i int) bool { return len(text)-len(g.packed[i].text) > int(at) }) - 1
		if len(list) == 0 || list[len(list)-1] != area {
			list = append(list, area)
		}
	}
	return list
}

// named is the area of a module.
func (g *group) named(module string) (int, bool) {
	for i := range g.Areas {
		if g.Areas[i].Name == module {
			return i, true
		}
	}
	return 0, false
}

// packing is a group on its way into a file.
type packing struct {
	groupPart
	prefix         string
	columns        columns
	texts          texts
	verdicts       []byte
	marks, entries []byte
	types          ctypes.Columns
	hazards        hazards
}

func newPacking(prefix string, areas []kimage.NameArea) *packing {
	p := &packing{prefix: prefix}
	for i := range areas {
		p.Areas = append(p.Areas, areaOf(&areas[i]))
		p.columns.add(areas[i].Symbols)
	}
	p.texts = textsOf(p.Areas)
	return p
}

// write adds the group's sections to a file.
func (p *packing) write(c *contents) error {
	head, err := json.Marshal(&p.groupPart)
	if err != nil {
		return err
	}
	c.add(p.prefix+"areas", head)
	for _, name := range columnNames {
		c.add(p.prefix+name, *p.columns.sections()[name])
	}
	c.add(p.prefix+"marks", p.marks)
	c.add(p.prefix+"entries", p.entries)
	points, err := p.hazards.pack()
	if err != nil {
		return err
	}
	c.add(p.prefix+hazardSection, points)
	if p.Types {
		for i, name := range ctypes.ColumnNames {
			c.add(p.prefix+"types."+name, p.types[i])
		}
	}
	for i := 0; i*window < len(p.verdicts); i++ {
		c.add(p.prefix+windowName(i), packWindow(p.verdicts[i*window:min(len(p.verdicts), (i+1)*window)]))
	}
	return nil
}
