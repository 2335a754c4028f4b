//go:build cgo && linux && amd64

package emu

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/kimage"
	"kprobelab/x86"
)

const (
	textBase x86.Addr = 0xffffffff81000000
	dataBase x86.Addr = 0xffffffff82000000
)

// tinyImage is an image of hand-assembled functions, 64 bytes apart, and one
// page each of writable and of read-only data.
type tinyImage struct {
	text    []byte
	symbols []kimage.Symbol
	fixups  map[x86.Addr]x86.Addr
	perCPU  *kimage.PerCPU
}

var _ Source = (*tinyImage)(nil)

const tinyStride = 64

// add appends a function and returns its address.
func (t *tinyImage) add(name string, code ...byte) x86.Addr {
	at := textBase.Add(int64(len(t.text)))
	size := (len(code) + tinyStride - 1) / tinyStride * tinyStride
	pad := slices.Repeat([]byte{0xcc}, size)
	copy(pad, code)
	t.text = append(t.text, pad...)
	t.symbols = append(t.symbols, kimage.Symbol{Name: name, Addr: at, Size: uint64(size), Type: 'T'})
	return at
}

func (t *tinyImage) Segments() []kimage.Segment {
	return []kimage.Segment{
		{Name: "text", Addr: textBase, Data: t.text, Size: max(uint64(len(t.text)), PageSize), Exec: true},
		{Name: "rodata", Addr: dataBase, Data: []byte("const"), Size: PageSize},
		{Name: "data", Addr: dataBase + PageSize, Size: 2 * PageSize, Write: true},
	}
}

func (t *tinyImage) PerCPU() (kimage.PerCPU, bool) {
	if t.perCPU == nil {
		return kimage.PerCPU{}, false
	}
	return *t.perCPU, true
}

func (t *tinyImage) Lookup(name string) []kimage.Symbol {
	var list []kimage.Symbol
	for _, s := range t.symbols {
		if s.Name == name {
			list = append(list, s)
		}
	}
	return list
}

func (t *tinyImage) SymbolAt(a x86.Addr) (kimage.Symbol, bool) {
	for _, s := range t.symbols {
		if a.In(s.Addr, s.Addr.Add(int64(s.Size))) {
			return s, true
		}
	}
	return kimage.Symbol{}, false
}

func (t *tinyImage) ExceptionEntry(a x86.Addr) (x86.Addr, bool) {
	to, ok := t.fixups[a]
	return to, ok
}

func (t *tinyImage) ModuleEnd() x86.Addr { return 0 }

// boot makes a machine of the image that the test closes.
func boot(t testing.TB, img Source, o *Options) *Machine {
	t.Helper()
	m, err := New(img, o)
	require.NoError(t, err)
	t.Cleanup(m.Close)
	return m
}

// trapFuncs is a receiver of traps made of functions; a missing one says no.
type trapFuncs struct {
	int3, debug func(*x86.PtRegs) bool
	fault       func(*x86.PtRegs, int) bool
	exits       []int
}

var _ x86.Traps = (*trapFuncs)(nil)

func (f *trapFuncs) Int3(r *x86.PtRegs) bool         { return f.int3 != nil && f.int3(r) }
func (f *trapFuncs) Debug(r *x86.PtRegs) bool        { return f.debug != nil && f.debug(r) }
func (f *trapFuncs) Fault(r *x86.PtRegs, v int) bool { return f.fault != nil && f.fault(r, v) }
func (f *trapFuncs) TaskExit(n int)                  { f.exits = append(f.exits, n) }
