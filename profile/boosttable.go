package profile

import (
	"encoding/hex"
	"errors"
)

// BoostTable is a kernel's own set of boostable opcodes, in place of a BoostRule: vendors' kernels
// have mixtures. The zero value is no table.
type BoostTable struct {
	// Known is true if there is a table.
	Known bool
	// One has, for each opcode of one byte, the boostable values of ModRM.reg, a
	// bit each; they are all alike where the instruction has no ModRM.
	One [256]byte
	// Two has a bit for each opcode 0F xx.
	Two [32]byte
	// CS and AddrSize: with the prefix 2E, or 67, an opcode of one byte can be
	// boosted too.
	CS, AddrSize bool
}

// Has2 reports whether an opcode 0F xx is boostable.
func (t *BoostTable) Has2(op byte) bool { return t.Two[op>>3]>>(op&7)&1 != 0 }

// String returns the table in hexadecimal, "" if there is none.
func (t BoostTable) String() string {
	if !t.Known {
		return ""
	}
	b := append(t.One[:], t.Two[:]...)
	return hex.EncodeToString(append(b, flag(t.CS)|flag(t.AddrSize)<<1))
}

func flag(on bool) byte {
	if on {
		return 1
	}
	return 0
}

// ParseBoostTable parses a text of String.
func ParseBoostTable(text string) (t BoostTable, err error) {
	if text == "" {
		return t, nil
	}
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != len(t.One)+len(t.Two)+1 || b[len(b)-1] > 3 {
		return t, errors.New("not a table of boostable opcodes")
	}
	t.Known = true
	flags := b[copy(t.One[:], b)+copy(t.Two[:], b[len(t.One):]):][0]
	t.CS, t.AddrSize = flags&1 != 0, flags&2 != 0
	return t, nil
}
