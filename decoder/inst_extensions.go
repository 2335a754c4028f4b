package decoder

import (
	"slices"
	"strings"
	"sync"
)

// promotion is a row of APX in an EVEX map, by its mnemonic.
type promotion struct {
	e        Encoding
	mnemonic string
}

// promotedFrom are the maps with the older encodings of the instructions in a map of EVEX: the same
// map of VEX, or the legacy ones.
var promotedFrom = map[Encoding][]Encoding{
	EncEvex0F: {EncVex0F}, EncEvex0F38: {EncVex0F38}, EncEvex0F3A: {EncVex0F3A},
	EncEvex4: {Enc0F38, Enc0F3A, Enc0F, EncPrimary}, EncEvex5: {EncVex5}, EncEvex7: {EncVex7},
}

// promoted maps the instructions of which APX has new encodings to their extensions.
var promoted = sync.OnceValue(func() map[promotion]string {
	list := map[promotion]string{}
	for e, among := range promotedFrom {
		for _, r := range opcodesOf(e).rows {
			if r.ext == "APX_F" {
				list[promotion{e, r.mnemonic}] = extensionOf(r.mnemonic, among)
			}
		}
	}
	return list
})

// extensionOf returns the extension of the first row with that mnemonic, "" if no row has it.
func extensionOf(mnemonic string, among []Encoding) string {
	for _, e := range among {
		for _, r := range opcodesOf(e).rows {
			if r.mnemonic == mnemonic {
				return r.ext
			}
		}
	}
	return ""
}

// shortVector: its vectors have 16 or 32 bytes, and 64 in another form of the row. Rows
// of scalars and those with one length have none.
func (i *Inst) shortVector(r *row) bool {
	if !i.Encoding.evex() || r.ext == "APX_F" || r.ext == "AVX10_2" || !r.ofLength() {
		return false
	}
	p := i.code[i.PrefixLen:]
	l := p[3] >> 5 & 3
	if i.ModRM >= 0xC0 && p[3]&0x10 != 0 {
		return false // L'L is a rounding
	}
	selectors := r.sel >> (p[2]&3 | p[2]>>7<<2 | p[3]>>4&1<<5)
	const zmm = 1 << (2 * 8)
	return l < 2 && selectors&zmm != 0
}

// ofLength: an operand of the row has the size that L'L says.
func (r *row) ofLength() bool {
	const byLength = "Vhfe"
	return slices.ContainsFunc(r.texts, func(t template) bool {
		return slices.ContainsFunc(t.operands, func(o operand) bool {
			return strings.IndexByte(byLength, o.kind) >= 0 || strings.IndexByte(byLength, o.scale) >= 0 || strings.IndexByte(byLength, o.index) >= 0
		})
	})
}
