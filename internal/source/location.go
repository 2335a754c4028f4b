package source

import (
	"debug/dwarf"
	"fmt"
	"strings"

	"kprobelab/internal/source/formula"
	"kprobelab/x86"
)

// LocationKind is the way to read a variable.
type LocationKind int

const (
	// Dropped is a variable that the compiler keeps nowhere at this address.
	Dropped LocationKind = iota
	// Register has it whole, Memory is at an offset from a register, Static at a symbol.
	Register
	Memory
	Static
	// Constant is a variable that has always this value.
	Constant
	// Bytes is a variable that has always these bytes, of which a member may be a number.
	Bytes
	// Entry is the value that a register had when the function was entered.
	Entry
	// Pieces are spread over several registers or parts of memory.
	Pieces
	// Address is a pointer that is stored nowhere; Of is the location that it points to.
	Address
	// Computed is a value, or a place in memory, that no chain of reads leads to.
	Computed
	// Other is a place that no probe can read, such as a thread's own variable.
	Other
)

// Location is the place of a variable.
type Location struct {
	Kind LocationKind
	// Reg is the register's DWARF number; Offset is added to its value.
	Reg    int
	Offset int64
	// Chain are reads of memory that come before the last one, at Offset: each read is
	// at the value of the one before plus so much.
	Chain []int64
	// Symbol and Addr are a static variable's.
	Symbol string
	Addr   uint64
	Value  int64
	Bytes  []byte
	Pieces []Piece
	// Of is the location that an Address points to.
	Of *Location
	// Formula computes a Computed location, nil if it is not known: its value, or with InMemory the
	// address of it in memory.
	Formula  *formula.Formula
	InMemory bool
	// Late: a parameter has no location at the function's entry, but at a later address:
	// the compiler leaves the entry out if it has put the call of the tracer there.
	Late bool
	// First is the meaning of the first operation alone, if further operations change it.
	First *Location
}

// shortHex are the first bytes of several.
func shortHex(b []byte) string {
	const most = 16
	if len(b) > most {
		return fmt.Sprintf("% x …", b[:most])
	}
	return fmt.Sprintf("% x", b)
}

// Piece is a part of a variable.
type Piece struct {
	Location
	Size int64
}

// registers is the number of general registers; the next number is the return address column.
const registers = 16

func register(n int) string {
	if n >= 0 && n < registers {
		return "%" + x86.DWARF[n]
	}
	return fmt.Sprintf("register %d", n)
}

// String is the location for a person to read.
func (l Location) String() string {
	switch l.Kind {
	case Register:
		return register(l.Reg)
	case Memory:
		s := register(l.Reg)
		for _, at := range append(l.Chain[:len(l.Chain):len(l.Chain)], l.Offset) {
			s = fmt.Sprintf("%+d(%s)", at, s)
		}
		return s
	case Static:
		s := "@" + l.Symbol
		if l.Symbol == "" {
			s = fmt.Sprintf("@%#x", l.Addr)
		}
		if l.Offset != 0 {
			s += fmt.Sprintf("%+d", l.Offset)
		}
		return s
	case Address:
		return "the address of " + l.Of.String()
	case Constant:
		return fmt.Sprintf("always %d", l.Value)
	case Bytes:
		return "always the bytes " + shortHex(l.Bytes)
	case Entry:
		return register(l.Reg) + " as it was at the entry"
	case Pieces:
		var parts []string
		for _, p := range l.Pieces {
			parts = append(parts, fmt.Sprintf("%d bytes %s", p.Size, p.Location))
		}
		return "in pieces: " + strings.Join(parts, ", ")
	case Computed:
		return "computed"
	case Other:
		return "nowhere that a probe reads"
	}
	return "dropped"
}

// place of a variable at an address.
func (p *Place) locate(v *node) Location {
	if v.Val(dwarf.AttrExternal) != nil {
		return p.static(v, 0)
	}
	if c := v.Val(dwarf.AttrConstValue); c != nil {
		if n, ok := constant(c); ok {
			return Location{Kind: Constant, Value: n}
		}
		if b, ok := c.([]byte); ok {
			return Location{Kind: Bytes, Bytes: b}
		}
		return Location{Kind: Other}
	}
	spans := v.spans(dwarf.AttrLocation)
	raw, ok := exprAt(spans, p.Addr)
	late := false
	if !ok {
		if raw, ok = p.lateAt(v, spans); !ok {
			return Location{}
		}
		late = true
	}
	l := p.expression(v, raw)
	l.Late = l.Late || late && l.Kind != Dropped
	return l
}

// expression is the location that an expression says.
func (p *Place) expression(v *node, raw []byte) Location {
	ops, known := p.unit().f.ops(v.unit.h, raw)
	switch {
	case len(ops) > 0:
		return p.evaluate(v, ops, known)
	case known:
		return Location{}
	}
	return Location{Kind: Other}
}

func (p *Place) unit() *Unit { return p.fn.unit }

// lateAt is a parameter's first location after the function's entry.
func (p *Place) lateAt(v *node, spans []span) (raw []byte, ok bool) {
	entry, has := p.fn.exactEntry()
	high, one := p.fn.high()
	if !has || !one || p.Addr != entry || v.Tag != dwarf.TagFormalParameter {
		return nil, false
	}
	first := everywhere
	for _, s := range spans {
		from := max(s.from, p.Addr+1)
		if from < s.to && from <= high && from < first {
			first, raw, ok = from, s.raw, true
		}
	}
	return raw, ok
}

func (p *Place) static(v *node, addr uint64) Location {
	return Location{Kind: Static, Symbol: v.name(), Addr: addr}
}

// evaluate returns the location that an expression means. With an unknown operation it means
// nothing, not even the first operation: GCC ends an expression with DW_OP_GNU_uninit if the value
// may not be there yet.
func (p *Place) evaluate(v *node, ops []op, known bool) Location {
	if !known {
		return Location{Kind: Other}
	}
	first := p.simple(v, ops[0])
	switch {
	case len(ops) != 1:
	case first.Kind == Constant && ops[0].code != opImplicitValue:
		return Location{Kind: Other} // memory at a fixed address
	case first.Kind == Constant:
		first.First = &Location{Kind: Computed}
		return first
	default:
		return first
	}
	whole := Location{Kind: Computed}
	switch last := ops[len(ops)-1].code; {
	case last == opPiece:
		whole = p.pieces(v, ops)
	case last == opStackValue:
		whole = p.value(v, ops[:len(ops)-1])
	default:
		if at, ok := p.chain(v, ops); ok && at.Kind != Constant {
			whole = at
		} else {
			whole.Formula, whole.InMemory = p.formula(v, ops), true
		}
	}
	if whole.First = &first; first.Kind == Constant {
		whole.First = &Location{Kind: Computed}
	}
	return whole
}

// value returns the value that an expression computes.
func (p *Place) value(v *node, ops []op) Location {
	if len(ops) == 1 && (ops[0].code == opEntryValue || ops[0].code == opGNUEntryValue) {
		return p.entryValue(v, ops[0])
	}
	at, ok := p.chain(v, ops)
	switch {
	case !ok:
		return Location{Kind: Computed, Formula: p.formula(v, ops)}
	case at.Kind == Constant:
		return at
	case at.Kind == Memory && at.Offset == 0 && len(at.Chain) == 0:
		return Location{Kind: Register, Reg: at.Reg}
	case at.Kind == Memory && at.Offset == 0:
		// The address is the value of the read before.
		n := len(at.Chain) - 1
		at.Chain, at.Offset = at.Chain[:n], at.Chain[n]
		return at
	}
	return Location{Kind: Address, Of: &at}
}

// chain follows an expression that is a register or a symbol, with reads of memory and
// sums of constants, to the memory whose address it computes; or to a constant.
func (p *Place) chain(v *node, ops []op) (at Location, ok bool) {
	at = p.simple(v, ops[0])
	if at.Kind != Memory && at.Kind != Static && at.Kind != Constant {
		return at, false
	}
	for i := 1; i < len(ops); i++ {
		switch o := ops[i]; {
		case o.code == opPlusUconst:
			at.add(o.a)
		case isConst(o) && i+1 < len(ops) && ops[i+1].code == opPlus:
			at.add(o.a)
			i++
		case isConst(o) && i+1 < len(ops) && ops[i+1].code == opMinus:
			at.add(-o.a)
			i++
		case o.code == opDeref && at.Kind == Memory:
			at.Chain, at.Offset = append(at.Chain, at.Offset), 0
		default:
			return at, false
		}
	}
	return at, true
}

func (l *Location) add(n int64) {
	if l.Kind == Constant {
		l.Value += n
		return
	}
	l.Offset += n
}

func isConst(o op) bool { return o.code >= opConst1u && o.code <= opConsts }

// entryValue returns the register that held a value at the function's entry; if the
// probe is at the entry, the register still holds it.
func (p *Place) entryValue(v *node, o op) Location {
	in, known := p.unit().f.ops(v.unit.h, o.data)
	if !known || len(in) != 1 {
		return Location{Kind: Computed}
	}
	l := p.simple(v, in[0])
	if l.Kind != Register {
		return Location{Kind: Computed}
	}
	if entry, ok := p.fn.entry(); !ok || entry != p.Addr {
		l.Kind = Entry
	}
	return l
}

// pieces are an expression's; one that has all is the variable.
func (p *Place) pieces(v *node, ops []op) Location {
	out := Location{Kind: Pieces}
	var one []op
	for _, o := range ops {
		if o.code != opPiece {
			one = append(one, o)
			continue
		}
		piece := Piece{Size: o.a}
		if len(one) > 0 {
			piece.Location = p.evaluate(v, one, true)
			piece.First = nil
		}
		out.Pieces = append(out.Pieces, piece)
		one = nil
	}
	if t := p.unit().typeOf(v); len(out.Pieces) == 1 && t != nil && out.Pieces[0].Size >= t.Size() {
		return out.Pieces[0].Location
	}
	return out
}

// simple returns the location that one operation means.
func (p *Place) simple(v *node, o op) Location {
	switch k := o.code; {
	case k == opAddr:
		return p.static(v, uint64(o.a))
	case k >= opReg0 && k < opReg0+32:
		return Location{Kind: Register, Reg: int(k - opReg0)}
	case k == opRegx:
		return Location{Kind: Register, Reg: int(o.a)}
	case k >= opBreg0 && k < opBreg0+32:
		return Location{Kind: Memory, Reg: int(k - opBreg0), Offset: o.a}
	case k == opBregx:
		return Location{Kind: Memory, Reg: int(o.a), Offset: o.b}
	case k == opFbreg:
		reg, off, ok := p.frameBase()
		if !ok {
			return Location{Kind: Other}
		}
		return Location{Kind: Memory, Reg: reg, Offset: off + o.a}
	case isConst(o):
		return Location{Kind: Constant, Value: o.a}
	case k == opImplicitValue && len(o.data) <= 8:
		return Location{Kind: Constant, Value: fixed(o.data, true)}
	case k == opStackValue, k == opPiece:
		return Location{}
	}
	return Location{Kind: Computed}
}

// frameBase is the register and the offset that the function's own variables count from.
func (p *Place) frameBase() (reg int, offset int64, ok bool) {
	raw, ok := exprAt(p.fn.spans(dwarf.AttrFrameBase), p.Addr)
	if !ok {
		return 0, 0, false
	}
	ops, known := p.unit().f.ops(p.fn.unit.h, raw)
	if !known || len(ops) != 1 {
		return 0, 0, false
	}
	switch o := ops[0]; {
	case o.code == opCallFrameCFA:
		return p.unit().f.cfa(p.Addr)
	case o.code >= opBreg0 && o.code < opBreg0+32:
		return int(o.code - opBreg0), o.a, true
	case o.code >= opReg0 && o.code < opReg0+32:
		return int(o.code - opReg0), 0, true
	}
	return 0, 0, false
}

// readable are the addresses at which a variable has a location, from the function's
// entry on.
func (p *Place) readable(v *node) (out [][2]uint64) {
	entry, ok := p.fn.entry()
	if !ok {
		return nil
	}
	for _, s := range v.spans(dwarf.AttrLocation) {
		if len(s.raw) == 0 || s.to == everywhere || s.from >= s.to {
			continue
		}
		from, to := s.from-entry, s.to-entry
		if n := len(out); n > 0 && out[n-1][1] == from {
			out[n-1][1] = to
			continue
		}
		out = append(out, [2]uint64{from, to})
	}
	return out
}
