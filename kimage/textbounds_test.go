package kimage

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/x86"
)

// Rule: a range whose end no symbol has ends with text where kallsyms has no data: it leaves out
// what has the address of _etext. Thunks elsewhere, which their names alone tell, are not in it.
func TestRangesThatEndWithText(t *testing.T) {
	const start, etext, ret = testText + 0x100, testText + 0x200, testText + 0x20
	text := []Symbol{{Name: "_stext", Addr: testText, Type: 'T'}, {Name: "__x86_return_thunk", Addr: ret, Type: 't'},
		{Name: "__indirect_thunk_start", Addr: start, Type: 'T'}, {Name: "__x86_indirect_thunk_rax", Addr: start, Type: 'T'},
		{Name: "_etext", Addr: etext, Type: 'T'}}
	data := Symbol{Name: "jiffies", Addr: etext + 0x1000, Type: 'D'}
	end := Symbol{Name: "__indirect_thunk_end", Addr: start + 0x20, Type: 'T'}
	for name, c := range map[string]struct {
		symbols []Symbol
		want    x86.Range
	}{
		"end_left_out":         {text, x86.Range{Start: start, End: etext}},
		"end_there":            {append(text[:4:4], end, text[4]), x86.Range{Start: start, End: end.Addr}},
		"all_symbols_no_end":   {append(text[:5:5], data), x86.Range{Start: ret, End: etext}},
		"no_symbols_of_bounds": {append(text[:2:2], text[3:]...), x86.Range{Start: ret, End: etext}},
	} {
		t.Run(name, func(t *testing.T) {
			img := &Image{}
			img.findBounds(c.symbols)
			require.Equal(t, c.want, img.IndirectThunks())
		})
	}
}
