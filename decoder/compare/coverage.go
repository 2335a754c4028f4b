package compare

import (
	"fmt"
	"maps"
	"slices"

	"kprobelab/decoder"
)

// Coverage counts the rows of opcodes/ that came up among questions. Rows of one opcode and
// mnemonic count as one, and so may overlap.
type Coverage struct {
	seen map[formOf]operandSeen
	// rows has a key for each row of each encoding.
	rows map[decoder.Encoding][]formOf
}

// formOf is an opcode with its mnemonic.
type formOf struct {
	encoding decoder.Encoding
	opcode   byte
	mnemonic string
}

// operandSeen is a set of the operand forms of a row.
type operandSeen uint8

const (
	seenMemory operandSeen = 1 << iota
	seenRegister
	seenPlain // without ModRM
)

// Add records the instruction at the start of q; it ignores bytes that are no instruction.
func (c *Coverage) Add(q []byte) {
	i, err := decoder.Decode(q)
	if err != nil {
		return
	}
	if c.seen == nil {
		c.seen, c.rows = map[formOf]operandSeen{}, map[decoder.Encoding][]formOf{}
		for _, e := range decoder.Encodings() {
			for _, r := range decoder.Rows(e) {
				c.rows[e] = append(c.rows[e], formOf{e, r.Opcode, r.Mnemonic})
			}
		}
	}
	form := seenPlain
	switch {
	case i.HasModRM && i.ModRM >= 0xC0:
		form = seenRegister
	case i.HasModRM:
		form = seenMemory
	}
	if k := c.rows[i.Encoding][i.RowNumber()]; c.seen[k]&form == 0 {
		c.seen[k] |= form
	}
}

// Missing lists the names and forms that did not come up.
type Missing struct {
	// Names and Forms count the mnemonics and operand forms of the rows.
	Names, Forms int
	// NoName are the mnemonics that did not come up at all, NoForm the forms, such
	// as "0f ae xsave, memory".
	NoName, NoForm []string
}

// Missing compares with all rows.
func (c *Coverage) Missing() Missing {
	var m Missing
	names, forms := map[string]bool{}, map[formOf]operandSeen{}
	for _, e := range decoder.Encodings() {
		for _, r := range decoder.Rows(e) {
			k := formOf{e, r.Opcode, r.Mnemonic}
			names[r.Mnemonic] = names[r.Mnemonic] || c.seen[k] != 0
			m.add(k, formsOf(r)&^forms[k], c.seen[k])
			forms[k] |= formsOf(r)
		}
	}
	m.Names = len(names)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if !names[name] {
			m.NoName = append(m.NoName, name)
		}
	}
	return m
}

func formsOf(r decoder.Row) (s operandSeen) {
	if r.Memory {
		s |= seenMemory
	}
	if r.Register {
		s |= seenRegister
	}
	if s == 0 {
		s = seenPlain
	}
	return s
}

func (m *Missing) add(k formOf, has, seen operandSeen) {
	for bit, name := range map[operandSeen]string{seenMemory: ", memory", seenRegister: ", register", seenPlain: ""} {
		if has&bit == 0 {
			continue
		}
		m.Forms++
		if seen&bit == 0 {
			m.NoForm = append(m.NoForm, fmt.Sprintf("%v %02x %s%s", k.encoding, k.opcode, k.mnemonic, name))
			slices.Sort(m.NoForm)
		}
	}
}
