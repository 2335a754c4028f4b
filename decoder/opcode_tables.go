package decoder

import "sync/atomic"

// opcodeTable is one encoding's rows, compiled for the decoder. A leaf is 0
// for no instruction, the number of a form, or with byModRM the number of a
// table that ModRM is looked up in.
type opcodeTable struct {
	rows  []row
	forms []form // form n is row n-1's; 0 stays empty
	// ops has a leaf for each opcode, or with bySelector the index of its first leaf.
	ops    [256]uint32
	leaves []uint16
	modrm  [][256]uint16
	// withoutMPX has the form of an opcode that is another one without MPX.
	withoutMPX map[byte]uint16
}

const (
	bySelector = 1 << 31
	byModRM    = 1 << 15
)

// The tables are compiled when first used, each in under a millisecond. Two
// goroutines may both compile one; the results are the same.
var opcodeIndex [numEncodings]atomic.Pointer[opcodeTable]

func opcodesOf(e Encoding) *opcodeTable {
	if t := opcodeIndex[e].Load(); t != nil {
		return t
	}
	t := compileTable(e, readRows(e), false)
	opcodeIndex[e].Store(t)
	return t
}

// overrideIndex has the rows alone that are overrides.
var overrideIndex [numEncodings]atomic.Pointer[opcodeTable]

func overridesOf(e Encoding) *opcodeTable {
	if t := overrideIndex[e].Load(); t != nil {
		return t
	}
	t := compileTable(e, opcodesOf(e).rows, true)
	overrideIndex[e].Store(t)
	return t
}

func compileTable(e Encoding, rows []row, overrides bool) *opcodeTable {
	t := &opcodeTable{rows: rows, forms: make([]form, 1), withoutMPX: map[byte]uint16{}}
	byOpcode := [256][]uint16{}
	for i := range t.rows {
		r := &t.rows[i]
		t.forms = append(t.forms, r.form)
		if r.form.flags&withoutMPX != 0 {
			t.withoutMPX[r.opcode] = uint16(i + 1)
			continue
		}
		if !overrides || r.x86asm != FaultNone {
			byOpcode[r.opcode] = append(byOpcode[r.opcode], uint16(i+1))
		}
	}
	same := map[[256]uint16]uint16{}
	for op, ids := range byOpcode {
		t.compileOpcode(op, ids, e.selectors(), same)
	}
	return t
}

// compileOpcode fills in an opcode's leaves, one leaf where all are the same.
func (t *opcodeTable) compileOpcode(op int, ids []uint16, selectors int, same map[[256]uint16]uint16) {
	if len(ids) == 0 {
		return
	}
	start := len(t.leaves)
	uniform := true
	var last uint64
	var leaf uint16
	for sel := range selectors {
		var among uint64
		for n, id := range ids {
			among |= t.rows[id-1].sel >> sel & 1 << (n & 63)
		}
		if sel == 0 || among != last || len(ids) > 64 {
			leaf, last = t.leaf(ids, sel, same), among
		}
		t.leaves = append(t.leaves, leaf)
		// Legacy selectors with both F3 and F2 do not occur.
		uniform = uniform && (leaf == t.leaves[start] || selectors == legacySelectors && t.unused(ids, sel))
	}
	t.ops[op] = bySelector | uint32(start)
	if uniform {
		t.ops[op] = uint32(t.leaves[start])
		t.leaves = t.leaves[:start]
	}
}

// unused: a selector that the opcode's legacy rows cannot name.
func (t *opcodeTable) unused(ids []uint16, sel int) bool {
	var named uint64
	for _, id := range ids {
		named |= t.rows[id-1].sel
	}
	const bothReps = 0xC0C0
	return bothReps>>sel&1 != 0 && named&bothReps == 0
}

// leaf returns the form of the rows with the selector, or a table of forms.
func (t *opcodeTable) leaf(ids []uint16, sel int, same map[[256]uint16]uint16) uint16 {
	var table [256]uint16
	only := uint16(0)
	for _, id := range ids {
		r := &t.rows[id-1]
		if r.sel>>sel&1 == 0 {
			continue
		}
		if r.mod == 0xF && r.reg == 0xFF && r.rm == 0xFF && only == 0 {
			return id
		}
		only = id
		for m := range table {
			if table[m] == 0 && r.mod>>(m>>6)&1 != 0 && r.reg>>(m>>3&7)&1 != 0 && r.rm>>(m&7)&1 != 0 {
				table[m] = id
			}
		}
	}
	if only == 0 {
		return 0
	}
	n, ok := same[table]
	if !ok {
		n = uint16(len(t.modrm)) | byModRM
		t.modrm = append(t.modrm, table)
		same[table] = n
	}
	return n
}
