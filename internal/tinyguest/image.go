// Package tinyguest is a guest for tests of machines: an image of hand-assembled
// functions, and a receiver of traps made of functions.
//
// It must not know engines.
package tinyguest

import (
	"slices"

	"kprobelab/kimage"
	"kprobelab/x86"
)

// Where an Image has its functions, and its data.
const (
	TextBase x86.Addr = 0xffffffff81000000
	DataBase x86.Addr = 0xffffffff82000000
)

const pageSize = 4096

// Image is an image of hand-assembled functions, 64 bytes apart, one page of
// read-only data and two of writable data after it.
type Image struct {
	Text    []byte
	Symbols []kimage.Symbol
	Fixups  map[x86.Addr]x86.Addr
	Area    *kimage.PerCPU
}

const stride = 64

// Add appends a function and returns its address.
func (t *Image) Add(name string, code ...byte) x86.Addr {
	at := TextBase.Add(int64(len(t.Text)))
	size := (len(code) + stride - 1) / stride * stride
	pad := slices.Repeat([]byte{0xcc}, size)
	copy(pad, code)
	t.Text = append(t.Text, pad...)
	t.Symbols = append(t.Symbols, kimage.Symbol{Name: name, Addr: at, Size: uint64(size), Type: 'T'})
	return at
}

func (t *Image) Segments() []kimage.Segment {
	return []kimage.Segment{
		{Name: "text", Addr: TextBase, Data: t.Text, Size: max(uint64(len(t.Text)), pageSize), Exec: true},
		{Name: "rodata", Addr: DataBase, Data: []byte("const"), Size: pageSize},
		{Name: "data", Addr: DataBase + pageSize, Size: 2 * pageSize, Write: true},
	}
}

func (t *Image) PerCPU() (kimage.PerCPU, bool) {
	if t.Area == nil {
		return kimage.PerCPU{}, false
	}
	return *t.Area, true
}

func (t *Image) Lookup(name string) []kimage.Symbol {
	var list []kimage.Symbol
	for _, s := range t.Symbols {
		if s.Name == name {
			list = append(list, s)
		}
	}
	return list
}

func (t *Image) SymbolAt(a x86.Addr) (kimage.Symbol, bool) {
	for _, s := range t.Symbols {
		if a.In(s.Addr, s.Addr.Add(int64(s.Size))) {
			return s, true
		}
	}
	return kimage.Symbol{}, false
}

func (t *Image) ExceptionEntry(a x86.Addr) (x86.Addr, bool) {
	to, ok := t.Fixups[a]
	return to, ok
}

func (t *Image) ModuleEnd() x86.Addr { return 0 }

// Traps is a receiver of traps made of functions; a missing one says no.
type Traps struct {
	OnInt3, OnDebug func(*x86.PtRegs) bool
	OnFault         func(*x86.PtRegs, int) bool
	Exits           []int
}

func (f *Traps) Int3(r *x86.PtRegs) bool         { return f.OnInt3 != nil && f.OnInt3(r) }
func (f *Traps) Debug(r *x86.PtRegs) bool        { return f.OnDebug != nil && f.OnDebug(r) }
func (f *Traps) Fault(r *x86.PtRegs, v int) bool { return f.OnFault != nil && f.OnFault(r, v) }
func (f *Traps) TaskExit(n int)                  { f.Exits = append(f.Exits, n) }

// Loop calls an empty function, and one with an int3, rdi times.
//
//	push %rbx; mov %rdi,%rbx; 1: call f; dec %rbx; jne 1b; pop %rbx; ret
func Loop() *Image {
	img := &Image{}
	img.Add("loop", 0x53, 0x48, 0x89, 0xfb, 0xe8, 0x37, 0, 0, 0, 0x48, 0xff, 0xcb, 0x75, 0xf6, 0x5b, 0xc3)
	img.Add("empty", 0xc3)
	img.Add("loop_int3", 0x53, 0x48, 0x89, 0xfb, 0xe8, 0x37, 0, 0, 0, 0x48, 0xff, 0xcb, 0x75, 0xf6, 0x5b, 0xc3)
	img.Add("int3", 0xcc, 0xc3)
	return img
}
