package interp

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/kimage"
	"kprobelab/machine"
	"kprobelab/x86"
)

var guestImage = sync.OnceValues(func() (*kimage.Image, error) {
	return kimage.Open("../testdata/guest.elf", nil)
})

func boot(t testing.TB, src machine.Source, o *machine.Options) *Machine {
	t.Helper()
	m, err := New(src, o)
	require.NoError(t, err)
	t.Cleanup(m.Close)
	return m
}

func bootGuest(t testing.TB, o *machine.Options) *Machine {
	t.Helper()
	img, err := guestImage()
	require.NoError(t, err)
	return boot(t, img, o)
}

// tinyImage is code at one address, and a page of data.
type tinyImage struct {
	code   []byte
	fixups map[x86.Addr]x86.Addr
}

const (
	textBase x86.Addr = 0xffffffff81000000
	dataBase x86.Addr = 0xffffffff82000000
)

func (i *tinyImage) Segments() []kimage.Segment {
	return []kimage.Segment{
		{Name: "text", Addr: textBase, Data: i.code, Size: uint64(len(i.code)), Exec: true},
		{Name: "data", Addr: dataBase, Size: 2 * PageSize, Write: true},
	}
}

func (i *tinyImage) PerCPU() (kimage.PerCPU, bool)           { return kimage.PerCPU{}, false }
func (i *tinyImage) Lookup(string) []kimage.Symbol           { return nil }
func (i *tinyImage) SymbolAt(x86.Addr) (kimage.Symbol, bool) { return kimage.Symbol{}, false }
func (i *tinyImage) ModuleEnd() x86.Addr                     { return 0 }
func (i *tinyImage) ExceptionEntry(a x86.Addr) (x86.Addr, bool) {
	to, ok := i.fixups[a]
	return to, ok
}

// traps are receivers by function; nil ones take nothing.
type traps struct {
	int3, debug func(r *x86.PtRegs) bool
	fault       func(r *x86.PtRegs, vector int) bool
}

func (t *traps) Int3(r *x86.PtRegs) bool         { return t.int3 != nil && t.int3(r) }
func (t *traps) Debug(r *x86.PtRegs) bool        { return t.debug != nil && t.debug(r) }
func (t *traps) Fault(r *x86.PtRegs, v int) bool { return t.fault != nil && t.fault(r, v) }
func (t *traps) TaskExit(int)                    {}
