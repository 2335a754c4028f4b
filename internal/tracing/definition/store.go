package definition

import "strings"

// store completes the program of an argument: the store, a bitfield, a loop.
// offs is the place of the expression, place that of the type.
func (p *parser) store(a *Arg, typ string, offs, place int) error {
	var err error
	if a.Type.IsString() {
		err = p.storeString(a, offs, place)
	} else {
		err = p.storeNumber(a, offs)
	}
	if err != nil {
		return err
	}
	stored := p.code.op().Code
	if err := p.bitfield(a, typ, place); err != nil {
		return err
	}
	if typ == "" {
		if err := p.typedBitfield(offs, a.Type.Size); err != nil {
			return err
		}
	}
	if a.Count > 0 {
		if err := p.loop(a, stored, offs, place); err != nil {
			return err
		}
	}
	a.Code = p.code.finish()
	return nil
}

// storeNumber turns a last dereference into the store, so that no more is read
// than is stored; any other value is stored as it is.
func (p *parser) storeNumber(a *Arg, offs int) error {
	op := p.code.op()
	switch op.Code {
	case OpDeref:
		op.Code = OpStoreMem
	case OpUDeref:
		op.Code = OpStoreUMem
	default:
		if !p.code.spare() {
			return bad(offs, TooManyOps)
		}
		op = p.code.op()
		op.Code = OpStoreRaw
	}
	op.Size = a.Type.Size
	return nil
}

// storeString turns a last dereference into the store of a text. Before a store it
// keeps a load of the address of text, the dereference that reads a pointer of an
// array, and the value whose symbol is stored.
func (p *parser) storeString(a *Arg, offs, place int) error {
	code, symstr := p.code.op().Code, a.Type.Name == "symstr"
	if symstr && !symbolic(code) {
		return bad(place, BadSymstring)
	}
	if !symstr && !textual(code) {
		return bad(place, BadString)
	}
	if symstr || code == OpImm || code == OpComm || code == OpData || a.Count > 0 {
		if !p.code.spare() {
			return bad(offs, TooManyOps)
		}
	}
	op := p.code.op()
	switch {
	case a.Type.Name == "ustring" || op.Code == OpUDeref:
		op.Code = OpStoreUString
	case symstr:
		op.Code = OpStoreSymstr
	default:
		op.Code = OpStoreString
	}
	op.Size = a.Type.Size
	return nil
}

// textual reports whether an operation loads the address of text.
func textual(c Code) bool {
	return c == OpDeref || c == OpUDeref || c == OpImm || c == OpComm || c == OpData
}

// symbolic reports whether the type symstr may follow an operation: its value is an
// address that a symbol can name.
func symbolic(c Code) bool {
	return c == OpReg || c == OpStack || c == OpRetval || c == OpArg || c == OpDeref
}

// bitfield appends the shifts of bWIDTH@POSITION/CONTAINER.
func (p *parser) bitfield(a *Arg, typ string, place int) error {
	rest, ok := strings.CutPrefix(typ, "b")
	if !ok {
		return nil
	}
	width, rest := simpleStrtoul(rest)
	rest, at := strings.CutPrefix(rest, "@")
	position, after := simpleStrtoul(rest)
	if width == 0 || !at || len(after) == len(rest) || first(after) != '/' || !p.code.spare() {
		return bad(place, BadBitfield)
	}
	bits := uint64(a.Type.Size) * 8
	if bits < width+position || width > bits {
		return bad(place, BadBitfield)
	}
	*p.code.op() = Op{Code: OpBitfield, Size: a.Type.Size, Left: uint8(bits - width - position), Right: uint8(bits - width)}
	return nil
}

// loop repeats a store from memory.
func (p *parser) loop(a *Arg, stored Code, offs, place int) error {
	switch stored {
	case OpStoreMem, OpStoreString, OpStoreUString:
	default:
		return bad(place, BadString)
	}
	if !p.code.spare() {
		return bad(offs, TooManyOps)
	}
	*p.code.op() = Op{Code: OpLoop, Param: a.Count}
	return nil
}
