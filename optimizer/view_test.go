package optimizer

import (
	"bytes"

	"kprobelab/decoder"
	"kprobelab/kimage"
	"kprobelab/profile"
	"kprobelab/x86"
)

// base is the start of test functions, and thunkBase the start of their thunks.
const (
	base      x86.Addr = 0xffffffff81000000
	thunkBase x86.Addr = 0xffffffff81f00000
)

// code is a View of one function, "f", with the surroundings that a test chooses. size is the
// function's size if memory continues after it, 0 for all of the bytes.
type code struct {
	bytes      []byte
	size       uint64
	exceptions []x86.Addr
	sites      map[kimage.SiteKind][]kimage.Site
	entry      x86.Range
	noSymbol   bool
}

var _ kimage.View = (*code)(nil)

func (v *code) CodeAt(a x86.Addr, b []byte) int {
	off := a.Sub(base)
	if off < 0 || off >= int64(len(v.bytes)) {
		return 0
	}
	return copy(b, v.bytes[off:])
}

func (v *code) SymbolAt(a x86.Addr) (kimage.Symbol, bool) {
	size := v.size
	if size == 0 {
		size = uint64(len(v.bytes))
	}
	if v.noSymbol || a < base || a >= base.Add(int64(size)) {
		return kimage.Symbol{}, false
	}
	return kimage.Symbol{Name: "f", Addr: base, Size: size, Type: 't'}, true
}

func (v *code) ExceptionEntry(a x86.Addr) (x86.Addr, bool) {
	for _, e := range v.exceptions {
		if e == a {
			return base, true
		}
	}
	return 0, false
}

func (v *code) Reader() decoder.Reader      { return decoder.X86asm{} }
func (v *code) Processor() kimage.Processor { return decoder.Processor{} }

func (v *code) SiteIn(kind kimage.SiteKind, r x86.Range) (kimage.Site, bool) {
	for _, s := range v.sites[kind] {
		if s.Addr < r.End && s.Addr.Add(int64(s.Len)) > r.Start {
			return s, true
		}
	}
	return kimage.Site{}, false
}

func (v *code) SiteAt(kind kimage.SiteKind, a x86.Addr) (kimage.Site, bool) {
	return v.SiteIn(kind, x86.Range{Start: a, End: a + 1})
}

func (v *code) Lookup(string) []kimage.Symbol          { return nil }
func (v *code) InText(x86.Addr) bool                   { return true }
func (v *code) InEntryText(a x86.Addr) bool            { return v.entry.Contains(a) }
func (v *code) InInit(x86.Addr) (string, bool)         { return "", false }
func (v *code) Blacklisted(x86.Addr) (x86.Range, bool) { return x86.Range{}, false }
func (v *code) BugEntry(x86.Addr) bool                 { return false }
func (v *code) CFITrap(x86.Addr) bool                  { return false }
func (v *code) IndirectThunks() x86.Range {
	return x86.Range{Start: thunkBase, End: thunkBase + 0x200}
}

// site puts a patch site at an offset in the function.
func (v *code) site(kind kimage.SiteKind, off, size int) *code {
	if v.sites == nil {
		v.sites = map[kimage.SiteKind][]kimage.Site{}
	}
	v.sites[kind] = append(v.sites[kind], kimage.Site{Addr: base.Add(int64(off)), Len: size})
	return v
}

// nops is a function of so many one-byte nops around the given code.
func nops(before int, middle []byte, after int) *code {
	n := bytes.Repeat([]byte{0x90}, before)
	n = append(n, middle...)
	return &code{bytes: append(n, bytes.Repeat([]byte{0x90}, after)...)}
}

func named(name string) *profile.Config {
	c, ok := profile.Named(name)
	if !ok {
		panic("BUG: no profile " + name)
	}
	return c
}
