package source

import (
	"debug/dwarf"
	"encoding/binary"
	"fmt"
	"strings"

	"kprobelab/internal/source/formula"
)

// LocationKind says how a variable can be read.
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
	// Address is a pointer that is nowhere as such; what it points to is at Of.
	Address
	// Computed is a value, or a place in memory, that no chain of reads leads to.
	Computed
	// Other is what no probe can read, such as a thread's own.
	Other
)

// Location is where a variable is.
type Location struct {
	Kind LocationKind
	// Reg is the register's DWARF number, Offset what is added to it.
	Reg    int
	Offset int64
	// Chain are reads of memory that come before the last one, at Offset: each of them
	// is at what the one before gave plus so much.
	Chain []int64
	// Symbol and Addr are a static variable's.
	Symbol string
	Addr   uint64
	Value  int64
	Bytes  []byte
	Pieces []Piece
	// Of is what an Address is of.
	Of *Location
	// Formula is what a Computed one is computed by, nil where that is not known: its value, or with InMemory the
	// address at which memory has it.
	Formula  *formula.Formula
	InMemory bool
	// Late is for a parameter that has no location at the function's entry, but at a later
	// address: the compiler leaves the entry out where it has put the call to the tracer.
	Late bool
	// First is what the first operation alone says, where more follow that change it.
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

// Registers are the names of DWARF's registers in kprobe_events, by their numbers.
var Registers = [...]string{"ax", "dx", "cx", "bx", "si", "di", "bp", "sp", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"}

func register(n int) string {
	if n >= 0 && n < len(Registers) {
		return "%" + Registers[n]
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

// Operations of DWARF's expressions.
const (
	opAddr           = 0x03
	opDeref          = 0x06
	opConst1u        = 0x08
	opConst8s        = 0x0f
	opConstu         = 0x10
	opConsts         = 0x11
	opPick           = 0x15
	opMinus          = 0x1c
	opPlus           = 0x22
	opPlusUconst     = 0x23
	opSkip           = 0x2f
	opBra            = 0x28
	opLit0           = 0x30
	opReg0           = 0x50
	opBreg0          = 0x70
	opRegx           = 0x90
	opFbreg          = 0x91
	opBregx          = 0x92
	opPiece          = 0x93
	opDerefSize      = 0x94
	opXderefSize     = 0x95
	opCall2          = 0x98
	opCall4          = 0x99
	opCallRef        = 0x9a
	opCallFrameCFA   = 0x9c
	opBitPiece       = 0x9d
	opImplicitValue  = 0x9e
	opStackValue     = 0x9f
	opImplicitPtr    = 0xa0
	opAddrx          = 0xa1
	opConstx         = 0xa2
	opEntryValue     = 0xa3
	opConstType      = 0xa4
	opRegvalType     = 0xa5
	opDerefType      = 0xa6
	opConvert        = 0xa8
	opReinterpret    = 0xa9
	opGNUImplicit    = 0xf2
	opGNUEntryValue  = 0xf3
	opGNUConstType   = 0xf4
	opGNURegvalType  = 0xf5
	opGNUDerefType   = 0xf6
	opGNUConvert     = 0xf7
	opGNUReinterpret = 0xf9
)

// op is an operation with its operands.
type op struct {
	code byte
	a, b int64
	data []byte
}

// maxOps bounds an expression.
const maxOps = 1 << 10

// ops reads an expression. ok is false where it has an operation that is not known here.
func (f *File) ops(h *header, raw []byte) (out []op, ok bool) {
	c := cursor{b: raw}
	for c.at < uint64(len(raw)) {
		o := op{code: c.u8()}
		switch k := o.code; {
		case k == opAddr:
			o.a = int64(c.u64())
		case k >= opConst1u && k <= opConst8s:
			size := uint64(1) << ((k - opConst1u) / 2)
			o.a = fixed(c.take(size), (k-opConst1u)%2 == 1)
		case k == opConstu, k == opPlusUconst, k == opRegx, k == opPiece, k == opConvert, k == opReinterpret, k == opGNUConvert, k == opGNUReinterpret:
			o.a = int64(c.uleb())
		case k == opAddrx:
			o.code, o.a = opAddr, int64(f.indexedAddr(h, c.uleb()))
		case k == opConstx:
			o.code, o.a = opConstu, int64(f.indexedAddr(h, c.uleb()))
		case k == opConsts, k == opFbreg, k >= opBreg0 && k < opBreg0+32:
			o.a = c.sleb()
		case k == opBregx:
			o.a = int64(c.uleb())
			o.b = c.sleb()
		case k == opPick, k == opDerefSize, k == opXderefSize:
			o.a = int64(c.u8())
		case k == opSkip, k == opBra, k == opCall2:
			o.a = int64(int16(c.u16()))
		case k == opCall4:
			o.a = int64(c.u32())
		case k == opCallRef:
			o.a = int64(c.offset(h.wide))
		case k == opBitPiece, k == opRegvalType, k == opGNURegvalType:
			o.a, o.b = int64(c.uleb()), int64(c.uleb())
		case k == opImplicitValue, k == opEntryValue, k == opGNUEntryValue:
			o.data = c.take(c.uleb())
		case k == opImplicitPtr, k == opGNUImplicit:
			c.offset(h.wide)
			c.sleb()
		case k == opConstType, k == opGNUConstType:
			o.a = int64(c.uleb())
			o.data = c.take(uint64(c.u8()))
		case k == opDerefType, k == opGNUDerefType:
			o.a, o.b = int64(c.u8()), int64(c.uleb())
		case k >= opLit0 && k < opLit0+32:
			o.code, o.a = opConsts, int64(k-opLit0)
		case k >= opReg0 && k < opReg0+32, k == opStackValue, k == opCallFrameCFA, k == opDeref, k >= 0x12 && k <= 0x2e, k == 0x96:
		default:
			return out, false
		}
		if c.bad || len(out) > maxOps {
			return out, false
		}
		out = append(out, o)
	}
	return out, true
}

func fixed(b []byte, signed bool) int64 {
	var v uint64
	for i, x := range b {
		v |= uint64(x) << (8 * i)
	}
	if bits := 8 * len(b); signed && bits < 64 {
		return int64(v<<(64-bits)) >> (64 - bits)
	}
	return int64(v)
}

// indexedAddr is an address of .debug_addr by its number.
func (f *File) indexedAddr(h *header, i uint64) uint64 {
	base := uint64(0)
	if r := f.root(h); r != nil {
		if v, ok := constant(r.Val(dwarf.AttrAddrBase)); ok {
			base = uint64(v)
		}
	}
	b := f.debug["debug_addr"]
	if at := base + i*8; i < uint64(len(b)) && at+8 <= uint64(len(b)) && at >= base {
		return binary.LittleEndian.Uint64(b[at:])
	}
	return 0
}

// root is a unit's first entry.
func (f *File) root(h *header) *dwarf.Entry {
	for _, u := range f.recent {
		if u.h == h {
			return u.root.Entry
		}
	}
	r := f.dwarf.Reader()
	r.Seek(dwarf.Offset(h.root))
	e, err := r.Next()
	if err != nil {
		return nil
	}
	return e
}

// span is an expression with the addresses for which it holds.
type span struct {
	from, to uint64
	raw      []byte
}

// everywhere is the end of a span that has none.
const everywhere = ^uint64(0)

// spans are what a location attribute says, in the file's order.
func (n *node) spans(attr dwarf.Attr) []span {
	v, at := n.integrate(attr)
	if at == nil {
		return nil
	}
	f, h := n.unit.f, at.unit.h
	switch v := v.(type) {
	case []byte:
		return []span{{0, everywhere, v}}
	case int64:
		if h.version >= 5 {
			return f.loclist(at.unit, uint64(v))
		}
		return f.oldLoclist(at.unit, uint64(v))
	case uint64: // DW_FORM_loclistx
		base, _ := constant(at.unit.root.Val(dwarf.AttrLoclistsBase))
		c := cursor{b: f.debug["debug_loclists"]}
		c.skip(uint64(base) + min(v, maxDebug)*uint64(h.word()))
		off := c.offset(h.wide)
		if c.bad {
			return nil
		}
		return f.loclist(at.unit, uint64(base)+off)
	}
	return nil
}

// base is what the addresses of a unit's lists count from.
func (u *Unit) base() uint64 {
	at, _ := u.root.Val(dwarf.AttrLowpc).(uint64)
	return at
}

// maxSpans bounds a list.
const maxSpans = 1 << 14

// loclist reads a list of .debug_loclists (DWARF 5, 7.7.3).
func (f *File) loclist(u *Unit, at uint64) (out []span) {
	c := cursor{b: f.debug["debug_loclists"]}
	c.skip(at)
	base := u.base()
	for !c.bad && len(out) < maxSpans {
		var s span
		switch kind := c.u8(); kind {
		case 0: // end of list
			return out
		case 1: // base_addressx
			base = f.indexedAddr(u.h, c.uleb())
			continue
		case 2: // startx_endx
			s.from, s.to = f.indexedAddr(u.h, c.uleb()), f.indexedAddr(u.h, c.uleb())
		case 3: // startx_length
			s.from = f.indexedAddr(u.h, c.uleb())
			s.to = s.from + c.uleb()
		case 4: // offset_pair
			s.from, s.to = base+c.uleb(), base+c.uleb()
		case 5: // default_location
			s.to = everywhere
		case 6: // base_address
			base = c.u64()
			continue
		case 7: // start_end
			s.from, s.to = c.u64(), c.u64()
		case 8: // start_length
			s.from = c.u64()
			s.to = s.from + c.uleb()
		case 9: // view_pair
			c.uleb()
			c.uleb()
			continue
		default:
			return out
		}
		s.raw = c.take(c.uleb())
		if !c.bad {
			out = append(out, s)
		}
	}
	return out
}

// oldLoclist reads a list of .debug_loc (DWARF 4, 2.6.2).
func (f *File) oldLoclist(u *Unit, at uint64) (out []span) {
	c := cursor{b: f.debug["debug_loc"]}
	c.skip(at)
	base := u.base()
	for !c.bad && len(out) < maxSpans {
		from, to := c.u64(), c.u64()
		switch {
		case from == 0 && to == 0:
			return out
		case from == everywhere:
			base = to
			continue
		}
		raw := c.take(uint64(c.u16()))
		if !c.bad {
			out = append(out, span{base + from, base + to, raw})
		}
	}
	return out
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

func exprAt(spans []span, addr uint64) ([]byte, bool) {
	for _, s := range spans {
		if addr >= s.from && addr < s.to {
			return s.raw, true
		}
	}
	return nil, false
}

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

// evaluate says what an expression means. With an operation that is not known it means nothing, not even its
// first: GCC writes DW_OP_GNU_uninit at the end of one whose value may not be there yet.
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

// value is what an expression computes.
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
		// The address is what the read before gave.
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

// entryValue is a register's at the function's entry; where the probe is there, it has
// it still.
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
	if t := p.unit().typeOf(v); len(out.Pieces) == 1 && t != nil && out.Pieces[0].Size >= t.Size {
		return out.Pieces[0].Location
	}
	return out
}

// simple is what one operation says.
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
