//go:build unicorn && cgo && linux && amd64

package engines

import (
	"kprobelab/kimage"
	"kprobelab/machine"
	"kprobelab/x86"
)

const (
	codeBase x86.Addr = 0xffffffff81000000
	dataBase x86.Addr = 0xffffffff82000000
	pageSize          = 4096
)

// image is a few bytes of code, and data pages with unmapped ones around them.
type image struct {
	code []byte
	data []byte
}

func (i *image) Segments() []kimage.Segment {
	return []kimage.Segment{
		{Name: "text", Addr: codeBase, Data: i.code, Size: uint64(len(i.code)), Exec: true},
		{Name: "data", Addr: dataBase, Data: i.data, Size: 4 * pageSize, Write: true},
		{Name: "rodata", Addr: dataBase + 5*pageSize, Size: pageSize},
	}
}

func (i *image) PerCPU() (kimage.PerCPU, bool)            { return kimage.PerCPU{}, false }
func (i *image) Lookup(string) []kimage.Symbol            { return nil }
func (i *image) SymbolAt(x86.Addr) (kimage.Symbol, bool)  { return kimage.Symbol{}, false }
func (i *image) ExceptionEntry(x86.Addr) (x86.Addr, bool) { return 0, false }
func (i *image) ModuleEnd() x86.Addr                      { return 0 }

// engine is the common interface of both machines, for the comparison.
type engine interface {
	CallAddr(addr x86.Addr, args ...uint64) (uint64, error)
	ReadMem(addr x86.Addr, b []byte) error
	WriteMem(addr x86.Addr, b []byte) error
	PokeText(addr x86.Addr, b []byte) error
	SetTraps(x86.Traps)
	Regs() x86.PtRegs
	Instructions() uint64
	Now() uint64
	Close() error
}

var _ machine.Source = (*image)(nil)
