package source

import (
	"fmt"

	"kprobelab/internal/ctype"
)

// Fetch says how a value is fetched: its first place, and the reads of memory that follow.
type Fetch struct {
	// Kind is Register, Static, Constant or Bytes: a structure or an array that is always these.
	Kind LocationKind
	Reg  int
	// Symbol and Addr are a static variable's, whose memory at Offset is read.
	Symbol string
	Addr   uint64
	Offset int64
	Value  int64
	Bytes  []byte
	// Reads are in the order in which they are made: each reads at what is there so
	// far plus its offset.
	Reads []Read
}

// Read is a read of memory.
type Read struct {
	Offset int64
	// User is for the memory of the current task.
	User bool
}

// Value is something that a probe can fetch, or a part of it.
type Value struct {
	Fetch
	Name string
	Type *ctype.Type
	// User: the value lies in the memory of the current task, and all reads are made there.
	User bool
	// Address: the value is a pointer to the fetched place, and is itself stored nowhere.
	Address bool
	// Bits and Bit are a bitfield's, as a Member has them; Old, too.
	Bits, Bit int
	Old       bool
}

// Unreadable is a variable or a part of one that no probe can fetch there.
type Unreadable struct{ What string }

func (e *Unreadable) Error() string { return e.What }

// Misuse is an expression that the type does not allow.
type Misuse struct {
	What string
	// Incomplete: the value is an element of a type that is only declared.
	Incomplete bool
}

func (e *Misuse) Error() string { return e.What }

// memory reports whether the value is read from memory, so that it has parts.
func (v *Value) memory() bool { return len(v.Reads) > 0 || v.Kind == Static }

// parts reports whether the value's parts can be read.
func (v *Value) parts() bool { return v.memory() || v.Kind == Bytes }

// Shift moves a value by so many bytes in memory, or in a constant's bytes.
func (v Value) Shift(by int64) Value {
	if v.Kind == Bytes && len(v.Reads) == 0 {
		v.Bytes = v.Bytes[min(max(by, 0), int64(len(v.Bytes))):]
		if by < 0 {
			v.Bytes = nil
		}
		return v
	}
	if n := len(v.Reads); n > 0 {
		v.Reads = append(append([]Read(nil), v.Reads[:n-1]...), Read{v.Reads[n-1].Offset + by, v.User})
		return v
	}
	v.Offset += by
	return v
}

// number makes a number of a part that is always the same bytes.
func (v Value) number() (Value, error) {
	t := v.Type.Real()
	if v.Kind != Bytes || len(v.Reads) > 0 || t.Composite() || t.Kind == ctype.Array {
		return v, nil
	}
	if t.Bytes <= 0 || t.Bytes > 8 || int64(len(v.Bytes)) < t.Bytes {
		return v, &Unreadable{v.Name + " has a constant's bytes, but is no number among them"}
	}
	n := uint64(fixed(v.Bytes[:t.Bytes], false))
	left := 64 - 8*int(t.Bytes)
	if v.Bits > 0 {
		if v.Bit < 0 || v.Bit+v.Bits > 8*int(t.Bytes) {
			return v, &Unreadable{v.Name + " is a bitfield that crosses its words, which no probe fetches"}
		}
		n, left = n>>v.Bit, 64-v.Bits
	}
	if v.Value = int64(n << left >> left); t.Signed {
		v.Value = int64(n<<left) >> left
	}
	v.Kind, v.Bytes, v.Bits, v.Bit, v.Old = Constant, nil, 0, 0, false
	return v, nil
}

// Follow returns the value to which a pointer points.
func (v Value) Follow() Value {
	if !v.Address {
		v.Reads = append(v.Reads[:len(v.Reads):len(v.Reads)], Read{0, v.User})
	}
	v.Address = false
	v.Type = v.Type.Real().Target()
	v.Bits, v.Bit, v.Old = 0, 0, false
	return v
}

// Field is a member of a structure or a union: of one that v points to, with arrow.
func (v Value) Field(name string, arrow bool) (Value, error) {
	t := v.Type.Real()
	switch {
	case t.Kind == ctype.Pointer && !arrow:
		return v, &Misuse{What: v.Name + " is a pointer; write " + v.Name + "->" + name}
	case t.Kind == ctype.Pointer:
		v = v.Follow()
		t = v.Type.Real()
		if !t.Composite() {
			return v, &Misuse{What: v.Name + " points to no structure and no union"}
		}
	case !t.Composite():
		return v, &Misuse{What: v.Name + " is no structure and no union"}
	case arrow:
		return v, &Misuse{What: v.Name + " is no pointer; write " + v.Name + "." + name}
	case !v.parts():
		return v, &Unreadable{v.Name + " is a structure in a register, whose parts no probe fetches"}
	}
	m, ok := t.Member(name)
	if !ok {
		if len(t.Members()) == 0 {
			return v, notFound("%s is not described in this unit", t)
		}
		return v, notFound("%s has no member %s", t, name)
	}
	v = v.Shift(m.Offset)
	v.Name, v.Type = v.Name+"."+name, m.Type
	if arrow {
		v.Name = v.Name[:len(v.Name)-len(name)-1] + "->" + name
	}
	v.Bits, v.Bit, v.Old = m.Bits, m.Bit, m.Old
	return v.number()
}

// Index returns an element of an array, or of the elements that a pointer points to. DWARF's arrays
// of several dimensions are one row.
func (v Value) Index(i int64) (Value, error) {
	t := v.Type.Real()
	switch {
	case t.Kind == ctype.Pointer:
		v = v.Follow()
	case t.Kind != ctype.Array:
		return v, &Misuse{What: v.Name + " is no array and no pointer"}
	case !v.parts():
		return v, &Unreadable{v.Name + " is an array in a register, whose elements no probe fetches"}
	default:
		v.Type = t.Target()
	}
	switch of := v.Type.Real(); {
	case of.Kind == ctype.Void:
		return v, &Misuse{What: v.Name + " points to void, which has no elements"}
	case of.Incomplete && i != 0:
		return v, &Misuse{What: fmt.Sprintf("%s is not described in this unit: the size of an element of %s is unknown", of, v.Name), Incomplete: true}
	}
	v.Name = fmt.Sprintf("%s[%d]", v.Name, i)
	return v.Shift(i * v.Type.Size()).number()
}
