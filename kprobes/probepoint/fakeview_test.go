package probepoint_test

import (
	"slices"
	"strings"

	"kprobelab/decoder"
	"kprobelab/kimage"
	"kprobelab/x86"
)

// fakeView is a kernel of a few bytes: one run of text, and whatever tables a
// test puts beside it.
type fakeView struct {
	text    x86.Addr
	code    []byte
	symbols []kimage.Symbol
	init    x86.Range // init text, of module initOf
	initOf  string
	black   []x86.Range
	bugs    []x86.Addr
	// cfiTraps are ud2 of checks of indirect calls.
	cfiTraps []x86.Addr
	// exceptions are instructions in the exception table
	exceptions []x86.Addr
	sites      map[kimage.SiteKind][]kimage.Site
	holes      []x86.Range // unreadable
}

var _ kimage.View = (*fakeView)(nil)

func (f *fakeView) span() x86.Range {
	return x86.Range{Start: f.text, End: f.text.Add(int64(len(f.code)))}
}

func (f *fakeView) CodeAt(addr x86.Addr, b []byte) int {
	for _, h := range f.holes {
		if h.Contains(addr) {
			return 0
		}
	}
	if !f.span().Contains(addr) {
		return 0
	}
	return copy(b, f.code[addr.Sub(f.text):])
}

func (f *fakeView) SymbolAt(addr x86.Addr) (kimage.Symbol, bool) {
	for _, s := range f.symbols {
		if addr.In(s.Addr, s.Addr.Add(int64(s.Size))) {
			return s, true
		}
	}
	return kimage.Symbol{}, false
}

func (f *fakeView) Lookup(name string) (found []kimage.Symbol) {
	module, plain, inModule := strings.Cut(name, ":")
	if !inModule {
		plain = name
	}
	for _, s := range f.symbols {
		if s.Name == plain && (!inModule || s.Module == module) {
			found = append(found, s)
		}
	}
	return found
}

func (f *fakeView) InText(addr x86.Addr) bool {
	return f.span().Contains(addr) && !f.init.Contains(addr)
}
func (f *fakeView) InEntryText(x86.Addr) bool { return false }
func (f *fakeView) InInit(addr x86.Addr) (string, bool) {
	return f.initOf, f.init.Contains(addr)
}

func (f *fakeView) Blacklisted(addr x86.Addr) (x86.Range, bool) {
	for _, r := range f.black {
		if r.Contains(addr) {
			return r, true
		}
	}
	return x86.Range{}, false
}

func (f *fakeView) ExceptionEntry(addr x86.Addr) (x86.Addr, bool) {
	return 0, slices.Contains(f.exceptions, addr)
}

func (f *fakeView) BugEntry(addr x86.Addr) bool {
	for _, b := range f.bugs {
		if b == addr {
			return true
		}
	}
	return false
}

func (f *fakeView) CFITrap(addr x86.Addr) bool { return slices.Contains(f.cfiTraps, addr) }

func (f *fakeView) SiteAt(kind kimage.SiteKind, addr x86.Addr) (kimage.Site, bool) {
	return f.SiteIn(kind, x86.Range{Start: addr, End: addr + 1})
}

func (f *fakeView) Reader() decoder.Reader      { return decoder.X86asm{} }
func (f *fakeView) Processor() kimage.Processor { return decoder.Processor{} }

func (f *fakeView) SiteIn(kind kimage.SiteKind, r x86.Range) (kimage.Site, bool) {
	for _, s := range f.sites[kind] {
		if r.Overlaps(x86.Range{Start: s.Addr, End: s.Addr.Add(int64(s.Len))}) {
			return s, true
		}
	}
	return kimage.Site{}, false
}

func (f *fakeView) IndirectThunks() x86.Range { return x86.Range{} }

// text is the start address of the fake kernel.
const text x86.Addr = 0xffffffff81000000

// kernel is a fake with one function "fn" made of the given instructions.
func kernel(insns ...string) *fakeView {
	code := []byte(strings.Join(insns, ""))
	return &fakeView{
		text: text, code: append(code, make([]byte, 16)...),
		symbols: []kimage.Symbol{{Name: "fn", Addr: text, Size: uint64(len(code)), Type: 'T'}},
		sites:   map[kimage.SiteKind][]kimage.Site{},
	}
}

// Instructions that the tests are made of.
const (
	nop     = "\x90"
	nop5    = "\x0f\x1f\x44\x00\x00"
	movAX   = "\x48\x89\xf8" // mov %rdi,%rax
	ret     = "\xc3"
	int3    = "\xcc"
	ud2     = "\x0f\x0b"
	endbr64 = "\xf3\x0f\x1e\xfa"
	sealed  = "\x66\x0f\x1f\x00"
	badVEX  = "\xc5\xf8\x01" // no such VEX opcode
)
