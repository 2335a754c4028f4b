package source

import (
	"debug/dwarf"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each row is an expression of a compiler, and its meaning for a probe.
func TestExpressions(t *testing.T) {
	h := &header{version: 5, addrSize: 8}
	f := &File{debug: map[string][]byte{}}
	u := &Unit{f: f, h: h}
	p := &Place{Addr: 0x1000, fn: &node{Entry: &dwarf.Entry{}, unit: u, ranged: true}}
	for name, row := range map[string]struct {
		raw   []byte
		means string
		// perf is the meaning of the first operation alone.
		perf string
	}{
		"register":                       {[]byte{opReg0 + 5}, "%di", "%di"},
		"memory":                         {[]byte{opBreg0 + 7, 0x10}, "+16(%sp)", "+16(%sp)"},
		"value_of_a_register":            {[]byte{opBreg0 + 5, 0, opStackValue}, "%di", "+0(%di)"},
		"address_in_a_structure":         {[]byte{opBreg0 + 5, 8, opStackValue}, "the address of +8(%di)", "+8(%di)"},
		"address_by_uconst":              {[]byte{opBreg0 + 5, 0, opPlusUconst, 24, opStackValue}, "the address of +24(%di)", "+0(%di)"},
		"difference":                     {[]byte{opBreg0 + 5, 0, 0x38, opMinus, opStackValue}, "the address of -8(%di)", "+0(%di)"},
		"value_that_a_pointer_leads_to":  {[]byte{opBreg0 + 5, 8, opDeref, opStackValue}, "+8(%di)", "+8(%di)"},
		"memory_that_a_pointer_leads_to": {[]byte{opBreg0 + 5, 8, opDeref, opPlusUconst, 4}, "+4(+8(%di))", "+8(%di)"},
		"product_of_two":                 {[]byte{opBreg0 + 5, 0, opBreg0 + 4, 0, 0x1e, opStackValue}, "computed", "+0(%di)"},
		"constant":                       {[]byte{0x35, opStackValue}, "always 5", "computed"},
		"negative_constant":              {[]byte{opConsts, 0x7f, opStackValue}, "always -1", "computed"},
		"implicit":                       {[]byte{opImplicitValue, 2, 0x34, 0x12}, "always 4660", "computed"},
		"entry_value":                    {[]byte{opEntryValue, 1, opReg0 + 5, opStackValue}, "%di as it was at the entry", "computed"},
		"two_pieces":                     {[]byte{opReg0, opPiece, 8, opReg0 + 1, opPiece, 8}, "in pieces: 8 bytes %ax, 8 bytes %dx", "%ax"},
		"half_is_gone":                   {[]byte{opPiece, 8, opReg0 + 1, opPiece, 8}, "in pieces: 8 bytes dropped, 8 bytes %dx", "dropped"},
		"vector_register":                {[]byte{opReg0 + 17}, "register 17", "register 17"},
		"may_be_uninitialized":           {[]byte{opReg0 + 12, 0xf0}, "nowhere that a probe reads", "nowhere that a probe reads"},
		"operation_of_another_world":     {[]byte{0xe0}, "nowhere that a probe reads", ""},
		"cut_off":                        {[]byte{opBregx}, "nowhere that a probe reads", ""},
	} {
		t.Run(name, func(t *testing.T) {
			ops, known := f.ops(h, row.raw)
			if len(ops) == 0 {
				require.False(t, known)
				return
			}
			l := p.evaluate(&node{Entry: &dwarf.Entry{}, unit: u}, ops, known)
			require.Equal(t, row.means, l.String())
			if row.perf != "" {
				first := l
				if l.First != nil {
					first = *l.First
				}
				require.Equal(t, row.perf, first.String())
			}
		})
	}
}

func TestSignedNumbers(t *testing.T) {
	for raw, want := range map[string]int64{"\x00": 0, "\x7f": -1, "\x80\x7f": -128, "\xff\x00": 127} {
		c := cursor{b: []byte(raw)}
		require.Equal(t, want, c.sleb(), "%x", raw)
		require.False(t, c.bad)
	}
	c := cursor{b: []byte{0x80}}
	c.uleb()
	require.True(t, c.bad)
}
