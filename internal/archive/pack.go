package archive

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"kprobelab/internal/archive/ctypes"
	"kprobelab/internal/debuginfo"
	"kprobelab/internal/report"
	"kprobelab/kimage"
	"kprobelab/kimage/btf"
	"kprobelab/kprobes/probepoint"
	"kprobelab/profile"
	"kprobelab/x86"
)

// ErrNoKernel is an image that is no kernel, or has no symbols.
var ErrNoKernel = errors.New("only a kernel with symbols can be packed")

// Packed is a kernel's file before it is written.
type Packed struct {
	Header
	// Bytes is the whole file.
	Bytes []byte
}

// Options says which parts go into a file. The zero value: all.
type Options struct {
	// Entries leaves out the parts for probes inside functions, and for definitions
	// with arguments: the file has a quarter of the size.
	Entries bool
	// Progress, when not nil, is told how far it is, in bytes of code.
	Progress func(done, total int64)
}

// Pack answers for every point of an image and makes its file.
func Pack(img *kimage.Image, o *Options) (*Packed, error) {
	if o == nil {
		o = &Options{}
	}
	if img.Kind() != kimage.KindKernel || len(img.Symbols()) == 0 {
		return nil, ErrNoKernel
	}
	c, err := newContents()
	if err != nil {
		return nil, err
	}
	defer c.enc.Close()
	c.header = headerOf(img)
	c.header.Entries = o.Entries

	p := packer{img: img, kernel: report.OfImage(img), verdicts: newVerdicts()}
	p.kernel.Callers = debuginfo.Of(img).Inlined
	p.divide()
	part := kernelPart{
		Banner: img.Banner(), Facts: img.Facts(), Traces: p.kernel.Traces(), Programs: p.kernel.Programs(), Passed: passed(img),
	}
	if part.Profile, err = json.Marshal(img.Profile()); err != nil {
		return nil, err
	}
	if !o.Entries {
		if err := p.text(o.Progress); err != nil {
			return nil, err
		}
	}
	p.symbols()
	p.sort()
	if p.verdicts.tooMany {
		return nil, errors.New("the kernel has more than 256 different answers")
	}
	p.types(o.Entries)
	part.Verdicts = p.verdicts.list
	head, err := json.Marshal(&part)
	if err != nil {
		return nil, err
	}
	c.add("kernel", head)
	for _, g := range p.groups {
		if err := g.write(c); err != nil {
			return nil, err
		}
	}
	if callers := p.kernel.AllInlined(); callers != nil {
		c.header.Inlined = true
		c.add("inlined", packInlined(callers))
	}
	b, err := c.bytes()
	return &Packed{c.header, b}, err
}

// passed are the functions that a trampoline does not pass on as it does most: of up to six words,
// no structures and no unions.
func passed(img *kimage.Image) map[string]btf.Passed {
	list := map[string]btf.Passed{}
	c, _ := profile.Named(profile.Default)
	for _, s := range img.Symbols() {
		if p, ok := img.Types().Passed(s.Name); ok && (p.Refused != "" || p.Struct || p.Union || p.Words > c.BPF.Words) {
			list[s.Name] = p
		}
	}
	return list
}

func headerOf(img *kimage.Image) Header {
	h := Header{
		Release: img.Fact("release").Value, CPU: img.Fact("CPU").Value, Profile: img.Profile().Name,
		Standing: img.Standing(), BuildID: img.BuildID(), Packaged: len(img.Packaged()),
	}
	h.Modules = img.Modules()
	h.Modules = h.Modules[:len(h.Modules)-h.Packaged] // the package's come last
	h.Distribution, h.Package = distribution(img.Banner(), h.Release)
	if h.BuildID == "" {
		sum := sha256.New()
		for _, s := range img.Sections() {
			if s.Exec && s.Module == "" {
				sum.Write(s.Data)
			}
		}
		h.BuildID = "text-" + hex.EncodeToString(sum.Sum(nil)[:20])
	}
	return h
}

// packer asks an image about all its points.
type packer struct {
	img      *kimage.Image
	kernel   *report.ImageKernel
	verdicts *verdicts
	// groups are the kernel with its loaded modules, and the package's modules if there are any.
	groups []*packing
	// areas are the groups' areas.
	areas [][]kimage.NameArea
}

// divide makes the groups.
func (p *packer) divide() {
	t := p.img.Table()
	all := append([]kimage.NameArea{t.Kernel}, t.Modules...)
	own := len(all) - len(p.img.Packaged())
	p.areas = [][]kimage.NameArea{all[:own]}
	p.groups = []*packing{newPacking("", all[:own])}
	if own < len(all) {
		p.areas = append(p.areas, all[own:])
		p.groups = append(p.groups, newPacking(packagePrefix, all[own:]))
	}
	packaged := map[string]bool{}
	for _, name := range p.img.Packaged() {
		packaged[name] = true
	}
	for _, tp := range p.img.Tracepoints() {
		g := p.groups[0]
		if packaged[tp.Module] {
			g = p.groups[1]
		}
		g.Tracepoints = append(g.Tracepoints, tp)
	}
}

// text fills in the verdicts of every address.
func (p *packer) text(progress func(done, total int64)) error {
	for _, g := range p.groups {
		if !g.texts.fits() {
			return errors.New("the kernel's text is too long")
		}
		g.verdicts = make([]byte, g.texts.len())
	}
	return report.EachVerdict(p.img, progress, func(a x86.Addr, v report.Verdict) {
		for _, g := range p.groups {
			if off, ok := g.texts.offset(a); ok {
				g.verdicts[off] = p.verdicts.of(v.Runs, v.Err)
				g.hazards.add(a, v.Hazards)
				return
			}
		}
	})
}

// symbols fills in the sections about symbols.
func (p *packer) symbols() {
	for i, g := range p.groups {
		for _, a := range p.areas[i] {
			for _, s := range a.Symbols {
				mark, entry := headOf(p.img, s.Addr), byte(0)
				if p.kernel.Traceable(s.Addr) {
					mark |= markTraceable
				}
				if p.kernel.Injectable(s.Addr) {
					mark |= markInjectable
				}
				if p.img.InText(s.Addr) {
					entry = p.entry(g, s.Addr)
				}
				g.marks, g.entries = append(g.marks, mark), append(g.entries, entry)
			}
		}
	}
}

// types fills in the types; with entries only, the functions and their numbers. BTF
// that cannot be read is as good as none.
func (p *packer) types(entries bool) {
	raw, _ := p.img.BTF()
	if len(raw) == 0 {
		return
	}
	m, err := ctypes.NewMaker(raw)
	if err != nil {
		return
	}
	kernel := m.Kernel()
	for i, g := range p.groups {
		for j := range p.areas[i] {
			t := kernel
			if i+j > 0 {
				btf := p.img.ModuleBTF(g.Areas[j].Name)
				if len(btf) == 0 {
					continue
				}
				if t, err = m.Module(btf); err != nil {
					continue
				}
			}
			if entries {
				t = t.OnlyFunctions()
			}
			g.Types, g.Areas[j].Types = true, true
			t.Write(&g.types, uniqueNames(p.areas[i][j].Symbols), nil)
		}
	}
}

// entry is the verdict of a probe at a symbol of a group.
func (p *packer) entry(g *packing, a x86.Addr) byte {
	pt, err := probepoint.Resolve(p.kernel, probepoint.Request{Addr: a}, p.img.Profile())
	if err != nil {
		return notBoundary // nobody comes to ask
	}
	runs, err := p.kernel.Verdict(&pt)
	if err == nil {
		g.hazards.add(pt.Addr, p.kernel.Hazards(&pt))
	}
	return p.verdicts.of(runs, err)
}

// sort gives the verdicts that most addresses have the smallest numbers.
func (p *packer) sort() {
	var uses [256]int
	each := func(f func(list []byte)) {
		for _, g := range p.groups {
			f(g.verdicts)
			f(g.entries)
		}
	}
	each(func(list []byte) {
		for _, v := range list {
			uses[v]++
		}
	})
	to := p.verdicts.byUse(&uses)
	each(func(list []byte) {
		for i, v := range list {
			list[i] = to[v]
		}
	})
}

// FileName is the name of a kernel's file: two builds of one release have two names,
// and so have texts that boot made for different processors.
func (h *Header) FileName() string {
	parts := []string{h.Release, strings.TrimPrefix(h.BuildID, "text-")[:8]}
	if h.Release == "" {
		parts[0] = "unknown"
	}
	if h.CPU != "" && h.CPU != kimage.DefaultCPU {
		parts = append(parts, h.CPU)
	}
	name := strings.Join(parts, ".")
	return strings.Map(func(r rune) rune {
		if r < ' ' || strings.ContainsRune("/\\:*?[]\"'<>|", r) {
			return '_'
		}
		return r
	}, name) + Suffix
}

// Write puts the file into a folder, at once and whole: another pack that writes the
// same file at the same time does no harm. It returns the file's path.
func (p *Packed) Write(dir string) (string, error) { return writeFile(dir, p.FileName(), p.Bytes) }

func writeFile(dir, name string, b []byte) (string, error) {
	name = filepath.Join(dir, name)
	f, err := os.CreateTemp(dir, ".pack-*")
	if err != nil {
		return "", err
	}
	defer os.Remove(f.Name()) // gone already where all went well
	_, err = f.Write(b)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		return "", err
	}
	return name, os.Rename(f.Name(), name)
}

// distribution reads the builder of a kernel, and its package's version, from the
// banner and the release.
func distribution(banner, release string) (name, pkg string) {
	for _, d := range distributions {
		for _, word := range d.words {
			in := banner
			if strings.HasPrefix(word, ".") || strings.HasPrefix(word, "-") {
				in = release
			}
			if _, after, ok := strings.Cut(in, word); ok {
				if f := strings.Fields(after); strings.HasSuffix(word, "Debian ") && len(f) > 0 {
					pkg = f[0]
				}
				return d.name, pkg
			}
		}
	}
	return "", ""
}

// distributions are told by a word of the banner or, with a dot or a dash before
// it, of the release.
var distributions = []struct {
	name  string
	words []string
}{
	{"Ubuntu", []string{"Ubuntu "}},
	{"Amazon", []string{".amzn"}},
	{"RHEL", []string{".el7", ".el8", ".el9", ".el10"}},
	{"Fedora", []string{".fc"}},
	{"openSUSE", []string{"(SUSE Linux)", "geeko@"}},
	{"Arch", []string{"-arch"}},
	{"Alpine", []string{"Alpine "}},
	{"Android", []string{"-android"}},
	{"Debian", []string{"SMP Debian ", "SMP PREEMPT_DYNAMIC Debian ", "SMP PREEMPT Debian ", "SMP PREEMPT_RT Debian "}},
}

// Kept is the file that Pack would make of an image, if it is there and can be read.
func Kept(img *kimage.Image, o *Options, dir string) (string, bool) {
	h := headerOf(img)
	name := filepath.Join(dir, h.FileName())
	f, err := readable(name)
	return name, err == nil && f.Entries == o.Entries && f.Packaged == h.Packaged && f.hazardous()
}
