package run

import (
	"fmt"
	"path"
	"slices"

	"kprobelab/internal/process"
	"kprobelab/x86"
)

// places names addresses of a program.
type places struct {
	p *process.Process
	// functions holds the function symbols of each file, sorted by offset.
	functions map[*process.File][]process.Symbol
}

func newPlaces(p *process.Process) *places {
	return &places{p: p, functions: map[*process.File][]process.Symbol{}}
}

// place names an address: FUNCTION+0xOFF, or FILE:0xOFFSET in a file without a function there, or the mapping's name
// and the offset, or the address itself.
func (u *places) place(at x86.Addr) string {
	switch v := u.p.At(at); {
	case v == nil:
		return at.String()
	case v.File == nil && v.Name != "":
		return plus(v.Name, uint64(at.Sub(v.Start)))
	case v.File == nil:
		return at.String()
	default:
		return u.inFile(v.File, v.FileOffset(at))
	}
}

func plus(name string, n uint64) string {
	if n == 0 {
		return name
	}
	return fmt.Sprintf("%s+0x%x", name, n)
}

func (u *places) inFile(f *process.File, offset uint64) string {
	list, known := u.functions[f]
	if !known {
		all, _ := f.Symbols() // a file without symbols is named by offsets
		list = slices.DeleteFunc(all, func(s process.Symbol) bool { return s.Data || !s.Loaded })
		slices.SortStableFunc(list, func(a, b process.Symbol) int { return int(a.Offset) - int(b.Offset) })
		u.functions[f] = list
	}
	i, _ := slices.BinarySearchFunc(list, offset+1, func(s process.Symbol, at uint64) int { return int(s.Offset) - int(at) })
	if i--; i >= 0 && (offset-list[i].Offset < list[i].Size || list[i].Size == 0) {
		return plus(list[i].Name, offset-list[i].Offset)
	}
	return fmt.Sprintf("%s:0x%x", path.Base(f.Name), offset)
}
