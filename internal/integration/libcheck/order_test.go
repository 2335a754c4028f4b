package libcheck

import (
	"slices"

	"github.com/pierrec/lz4/v4"
)

// orderFuncs are lib/sort.c, lib/bsearch.c and lib/llist.c. The elements are
// fixed-size strings and the callback the kernel's own strcmp.
var orderFuncs = []Func{
	{"sort", func(g *Gen) Call {
		cells := g.cells(g.IntN(20))
		sorted := slices.Clone(cells)
		slices.Sort(sorted)
		return call(changed(cellBytes(cells), cellBytes(sorted)), len(cells), cellSize, Sym("strcmp"), Null)
	}},
	{"bsearch", func(g *Gen) Call {
		cells := g.cells(1 + g.IntN(20))
		slices.Sort(cells)
		cells = slices.Compact(cells)
		key := g.Text("ab", 3)
		i, found := slices.BinarySearch(cells, key)
		want := NullPointer()
		if found {
			want = Pointer(1, i*cellSize)
		}
		return call(key, cellBytes(cells), len(cells), cellSize, Sym("strcmp")).gives(want)
	}},
	{"llist_reverse_order", func(g *Gen) Call {
		count := 1 + g.IntN(10)
		list := Buf{In: make([]byte, 8*count)}
		for i := range count {
			before, after := Null, Null
			if i+1 < count {
				before = Ref{0, 8 * (i + 1)}
			}
			if i > 0 {
				after = Ref{0, 8 * (i - 1)}
			}
			list.Ptrs = append(list.Ptrs, Ptr{8 * i, before})
			list.OutPtrs = append(list.OutPtrs, Ptr{8 * i, after})
		}
		return call(list).gives(Pointer(0, 8*(count-1)))
	}},
}

const cellSize = 8

func (g *Gen) cells(count int) []string {
	cells := make([]string, count)
	for i := range cells {
		cells[i] = g.Text("ab", 1+g.IntN(4))
	}
	return cells
}

func cellBytes(cells []string) []byte {
	b := make([]byte, max(1, len(cells))*cellSize)
	for i, s := range cells {
		copy(b[i*cellSize:], s)
	}
	return b
}

// packFuncs are lib/lz4 and lib/lzo.
var packFuncs = []Func{
	{"LZ4_decompress_safe", func(g *Gen) Call {
		plain := []byte(g.Text("abc", 64+g.IntN(400)))
		packed := make([]byte, lz4.CompressBlockBound(len(plain)))
		size, err := lz4.CompressBlock(plain, packed, nil)
		if err != nil || size == 0 {
			panic("BUG: lz4 refuses compressible text")
		}
		return call(packed[:size], zeroed(plain), size, len(plain)).gives(I32(len(plain)))
	}},
	{"lzo1x_decompress_safe", func(g *Gen) Call {
		// A first byte above 17 counts literals; 11 00 00 ends the stream.
		plain := g.Bytes(4 + g.IntN(230))
		packed := append(append([]byte{byte(17 + len(plain))}, plain...), 0x11, 0, 0)
		return call(packed, len(packed), zeroed(append(plain, make([]byte, 256-len(plain))...)), changed(words([]uint64{256}), words([]uint64{n(len(plain))}))).gives(I32(0))
	}},
}
