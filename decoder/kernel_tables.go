package decoder

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
)

// attr is the set of attributes that the kernel's tables give an opcode.
type attr uint32

const (
	attrModRM attr = 1 << iota
	attrImmByte
	attrImmWord
	attrImmV32
	attrImmV
	attrImmPtr
	attrMoffs
	attrImm2Byte
	attrForce64
	attrVariant
	attrVexOK
	attrVexOnly
	attrEvexOnly
	// attrInv64: the opcode does not exist in 64-bit mode.
	attrInv64
	// attrEvexScalable: with EVEX, pp = 66 selects operand size 2 (APX, 6.12).
	attrEvexScalable
	// attrImmDword: four bytes, whatever the operand size is.
	attrImmDword

	attrImm      = attrImmByte | attrImmWord | attrImmV32 | attrImmV | attrImmPtr | attrImmDword
	attrGroupPos = 24 // the group number sits in the top byte, 0 for none
)

var attrNames = map[string]attr{
	"modrm": attrModRM, "imm_byte": attrImmByte, "imm_word": attrImmWord,
	"imm_v32": attrImmV32, "imm_v": attrImmV, "imm_ptr": attrImmPtr,
	"moffs": attrMoffs, "imm2_byte": attrImm2Byte, "force64": attrForce64,
	"variant": attrVariant, "vexok": attrVexOK, "vexonly": attrVexOnly,
	"evexonly": attrEvexOnly, "evex_scalable": attrEvexScalable, "imm_dword": attrImmDword, "inv64": attrInv64,
}

func (a attr) group() int { return int(a >> attrGroupPos) }

// A mandatory prefix's number is VEX's pp field: 0 none, 1 66, 2 F3, 3 F2.
const (
	pfxNone = iota
	pfx66
	pfxF3
	pfxF2
	numPfx
)

// Numbers of the opcode maps. The maps of VEX, EVEX and XOP have the processor's;
// 0 is the primary map, which neither can reach.
const (
	mapPrimary = iota
	map0F
	map0F38
	map0F3A
	mapEvex4
	mapEvex5
	mapEvex6
	map7
	mapXop8
	mapXop9
	mapXopA
	numMaps
)

const numGroups = 32

// opcodeTables is one release's tables, compiled.
type opcodeTables struct {
	maps     [numMaps][numPfx][256]attr
	present  [numMaps][numPfx]bool
	groups   [numGroups][numPfx][8]attr
	hasGroup [numGroups][numPfx]bool
}

//go:embed kernel_tables_510.txt
var tablesText510 string

//go:embed kernel_tables.txt
var tablesText61 string

//go:embed kernel_tables_612.txt
var tablesText612 string

//go:embed kernel_tables_618.txt
var tablesText618 string

// The tables are parsed once, at start: less than half a millisecond for all.
var (
	tables510 = mustTables(tablesText61, tablesText510)
	tables61  = mustTables(tablesText61)
	tables612 = mustTables(tablesText61, tablesText612)
	tables618 = mustTables(tablesText61, tablesText612, tablesText618)
)

// mustTables compiles the texts, later ones laid over earlier ones.
func mustTables(texts ...string) *opcodeTables {
	t := new(opcodeTables)
	for _, text := range texts {
		if err := t.parse(text); err != nil {
			panic("BUG: decoder tables: " + err.Error())
		}
	}
	return t
}

func (t *opcodeTables) parse(text string) error {
	var block []attr
	for n := 1; text != ""; n++ {
		var line string
		line, text, _ = strings.Cut(text, "\n")
		line = strings.TrimSpace(line)
		var err error
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '[':
			block, err = t.block(strings.Trim(line, "[]"))
		case block == nil:
			err = fmt.Errorf("%q before the first block", line)
		default:
			err = parseAttribute(block, line)
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
	return nil
}

var mapNames = map[string]int{
	"0f": map0F, "0f38": map0F38, "0f3a": map0F3A,
	"evex4": mapEvex4, "evex5": mapEvex5, "evex6": mapEvex6, "vex7": map7,
	"xop8": mapXop8, "xop9": mapXop9, "xopa": mapXopA,
}

var pfxNames = map[string]int{"none": pfxNone, "66": pfx66, "f3": pfxF3, "f2": pfxF2}

// block finds the table that a header such as "map 0f38 pfx 66" names.
func (t *opcodeTables) block(header string) ([]attr, error) {
	f := strings.Fields(header)
	if len(f) == 1 && f[0] == "primary" {
		t.present[mapPrimary][pfxNone] = true
		return t.maps[mapPrimary][pfxNone][:], nil
	}
	if len(f) != 4 || f[2] != "pfx" {
		return nil, fmt.Errorf("block %q: want \"map M pfx P\" or \"group N pfx P\"", header)
	}
	pfx, ok := pfxNames[f[3]]
	if !ok {
		return nil, fmt.Errorf("block %q: no prefix %q", header, f[3])
	}
	if m, ok := mapNames[f[1]]; ok && f[0] == "map" {
		t.present[m][pfx] = true
		return t.maps[m][pfx][:], nil
	}
	g, err := strconv.Atoi(f[1])
	if f[0] != "group" || err != nil || g <= 0 || g >= numGroups {
		return nil, fmt.Errorf("block %q: no such table", header)
	}
	t.hasGroup[g][pfx] = true
	return t.groups[g][pfx][:], nil
}

// parseAttribute adds one "attribute: opcodes" line to a block. A "-" before
// the attribute takes it away, which additions to older tables need.
func parseAttribute(block []attr, line string) error {
	name, list, ok := strings.Cut(line, ":")
	if !ok {
		return fmt.Errorf("%q: want \"attribute: opcodes\"", line)
	}
	if name == "group" {
		return eachField(list, func(f string) error { return parseGroupOf(block, f) })
	}
	base, remove := strings.CutPrefix(name, "-")
	a, ok := attrNames[base]
	if !ok {
		return fmt.Errorf("no attribute %q", name)
	}
	return eachField(list, func(f string) error {
		lo, hi, err := parseRange(f, len(block))
		for i := lo; err == nil && i <= hi; i++ {
			if remove {
				block[i] &^= a
			} else {
				block[i] |= a
			}
		}
		return err
	})
}

func parseGroupOf(block []attr, field string) error {
	op, g, ok := strings.Cut(field, "=")
	n, err := strconv.Atoi(g)
	if !ok || err != nil || n <= 0 || n >= numGroups {
		return fmt.Errorf("%q: want opcode=group", field)
	}
	i, _, err := parseRange(op, len(block))
	if err != nil {
		return err
	}
	block[i] = block[i]&(1<<attrGroupPos-1) | attr(n)<<attrGroupPos
	return nil
}

func parseRange(s string, size int) (lo, hi int, err error) {
	first, last, ok := strings.Cut(s, "-")
	if !ok {
		last = first
	}
	l, err1 := strconv.ParseUint(first, 16, 16)
	h, err2 := strconv.ParseUint(last, 16, 16)
	if err1 != nil || err2 != nil || l > h || int(h) >= size {
		return 0, 0, fmt.Errorf("%q: want an opcode or a range below %#x", s, size)
	}
	return int(l), int(h), nil
}

func eachField(s string, f func(string) error) error {
	for _, field := range strings.Fields(s) {
		if err := f(field); err != nil {
			return err
		}
	}
	return nil
}
