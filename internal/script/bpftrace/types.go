package bpftrace

import (
	"fmt"
	"slices"
	"strings"

	"kprobelab/internal/bounded"
	"kprobelab/internal/ctype"
	"kprobelab/internal/script"
)

// Kind is the kind of a value.
type Kind uint8

const (
	None Kind = iota
	Void
	Integer
	Pointer
	Record
	Array
	String
	Buffer
	TupleKind
	Inet
	Ksym
	Usym
	Kstack
	Ustack
	StackMode
	TimestampMode
	Timestamp
	Username
	Mac
	CgroupPath
	Strerror
	Count
	Sum
	Min
	Max
	Avg
	Stats
	Hist
	Lhist
	Tseries
)

var kindNames = [...]string{
	"none", "void", "int", "pointer", "record", "array", "string", "buffer", "tuple", "inet", "ksym_t", "usym_t", "kstack", "ustack",
	"stack_mode", "timestamp_mode", "timestamp", "username", "mac_address", "cgroup_path_t", "strerror_t",
	"count_t", "sum_t", "min_t", "max_t", "avg_t", "stats_t", "hist_t", "lhist_t", "tseries_t",
}

func (k Kind) String() string { return kindNames[k] }

// Type is the type of a value.
type Type struct {
	Kind   Kind
	Size   int
	Signed bool
	// Name is the name of a structure with its word or of an enumeration, the mode of a stack, or
	// the moment from which a time counts.
	Name string
	// C is the C type of a structure or an enumeration.
	C *ctype.Type
	// Elem is the type of an array's elements, or the type to which a pointer points.
	Elem *Type
	// N is the number of an array's elements, or of a stack's addresses.
	N int
	// Fields are the types of a tuple's values.
	Fields []*Type
	// Context: the value is the probe's context, and its parts are read at the hit.
	Context bool
	// Space is the memory in which a value is, or to which it points.
	Space script.Space
	// Args: the value is args, the parameters of the probe.
	Args bool
	// Clock is the clock of a time that nsecs() gave, "" for the time since the boot.
	Clock string
	// Own: the script itself has the bytes of the array or record, from a cast or a map. They are not in other memory.
	Own bool
	// Bool: the integer is a truth value. Names are the names of a record's fields; the record is a tuple.
	Bool bool
	// boolean: the integer is C's _Bool, which is a number in 0.23.
	boolean bool
	Names   []string
	// Made is the aggregate that an integer in a key or a tuple was read from; there it is a type of its own.
	Made Kind
}

var none = &Type{}

func integer(size int, signed bool) *Type { return &Type{Kind: Integer, Size: size, Signed: signed} }

var (
	int64T  = integer(8, true)
	uint64T = integer(8, false)
	boolT   = &Type{Kind: Integer, Size: 1, Bool: true}
)

func stringOf(size int) *Type { return &Type{Kind: String, Size: size} }

func tuple(fields []*Type) *Type {
	t := &Type{Kind: TupleKind, Fields: fields}
	for _, f := range fields {
		t.Size = aligned(t.Size, f.align()) + f.stored()
	}
	t.Size = aligned(t.Size, t.align())
	return t
}

func aligned(n, to int) int { return (n + to - 1) / to * to }

// align is the alignment that the compiler gives a type in a tuple.
func (t *Type) align() int {
	switch {
	case t.Kind == TupleKind:
		most := 1
		for _, f := range t.Fields {
			most = max(most, f.align())
		}
		return most
	case t.Kind == Array:
		return t.target().align()
	case t.Kind == Record, slices.Contains(byteArrays, t.Kind):
		return 1
	}
	return min(max(t.Size, 1), 8)
}

// values counts the values of a tuple, with the ones of tuples in it; another type has 1. It is not counted far past the bound.
func (t *Type) values() int {
	n := 0
	for _, f := range t.Fields {
		if n += f.values(); n > bounded.TupleValues {
			break
		}
	}
	return max(n, 1)
}

// kind is the kind that the tool knows: an aggregate's in a key or a tuple, too.
func (t *Type) kind() Kind {
	if t.Made != None {
		return t.Made
	}
	return t.Kind
}

// aggregate reports the type of a function of maps, such as count(); castable reports one that has a single value.
func (t *Type) aggregate() bool { return t.Kind >= Count }
func (t *Type) castable() bool  { return t.kind() >= Count && t.kind() <= Avg }
func (t *Type) multiple() bool  { return t.Kind >= Stats }
func (t *Type) isInt() bool     { return t.kind() == Integer }
func (t *Type) isStack() bool   { return t.Kind == Kstack || t.Kind == Ustack }

// read returns the type that an aggregate has in a key or a tuple: an integer type that no other type matches.
func (t *Type) read() *Type {
	if t.Made != None || !t.castable() {
		return t
	}
	one := integer(8, t.Signed)
	one.Made = t.Kind
	return one
}

// owned is an array's or a record's type in memory of the script's own.
func (t *Type) owned() *Type {
	if t.Own || t.Kind != Array && t.Kind != Record {
		return t
	}
	one := *t
	one.Own = true
	return &one
}

// enumerator is the name of an enumeration's value.
func (t *Type) enumerator(n int64) (name string, ok bool) {
	if !t.enum() || t.C == nil {
		return "", false
	}
	for _, e := range t.C.Enumerators() {
		if e.Value == n {
			return e.Name, true
		}
	}
	return "", false
}

// sizeless reports the type bool, which has no values.
func (t *Type) sizeless() bool { return t.Kind == Integer && t.Size == 0 }

func (t *Type) enum() bool {
	return t.Kind == Integer && (t.Name != "" || t.C != nil && t.C.Kind == ctype.Enum)
}

func (t *Type) String() string { return t.text(ctype.Writing()) }

func (t *Type) text(w *ctype.Walk) string {
	if !w.Enter() {
		return "..."
	}
	defer w.Leave()
	sign := "u"
	if t.Signed {
		sign = ""
	}
	switch t.Kind {
	case Integer:
		switch {
		case t.Made != None:
			return sign + t.Made.String()
		case t.Bool:
			return "bool"
		case t.Name != "":
			return "enum " + t.Name
		case t.enum():
			// The tool's compiler names it by its place, in what the tool makes of BTF or of the script; the first one there has this.
			if t.C.ID == 0 {
				return "enum enum (unnamed at definitions.h:2:1)"
			}
			return "enum enum (unnamed at /bpftrace/include/__btf_generated_header.h:1:1)"
		}
		return fmt.Sprintf("%sint%d", sign, 8*t.Size)
	case String, Inet, Buffer:
		return fmt.Sprintf("%s[%d]", t.Kind, t.stored())
	case Pointer:
		ctx := ""
		if t.Context {
			ctx = "(ctx) "
		}
		return ctx + t.target().text(w) + " *"
	case Array:
		return fmt.Sprintf("%s[%d]", t.target().text(w), t.N)
	case Record:
		return t.Name
	case TupleKind:
		var list []string
		for _, f := range t.Fields {
			if list = append(list, f.text(w)); w.Full() {
				break
			}
		}
		if t.Names != nil {
			return t.recordText(list)
		}
		return "(" + strings.Join(list, ",") + ")"
	case Count, Sum, Min, Max, Avg, Stats:
		return sign + t.Kind.String()
	}
	return t.Kind.String()
}

// byteArrays are kinds that the tool keeps as bytes.
var byteArrays = []Kind{String, Usym, Inet, Buffer, Timestamp, Mac, CgroupPath}

// bufferHead is the size in bytes of the length before a buffer's bytes.
const bufferHead = 4

// timestampSize is the size of strftime's value: the time and where its format is.
const timestampSize = 16

// stored is the size that the tool gives a type: the length of a buffer lies before its bytes.
func (t *Type) stored() int {
	switch t.Kind {
	case Buffer:
		return t.Size + bufferHead
	case Timestamp:
		return timestampSize
	}
	return t.Size
}

// target returns the type to which a pointer points, or that of an array's elements.
func (t *Type) target() *Type {
	if t.Elem == nil && t.C != nil {
		t.Elem = fromC(t.C.Real().Target())
	}
	if t.Elem == nil {
		return &Type{Kind: Void}
	}
	return t.Elem
}

// fromC is a type of the kernel's.
func fromC(c *ctype.Type) *Type { return fromCAt(c, 0) }

// fromCAt is a type of the kernel's that is so deep in another one. Arrays deeper than the bound have no type.
func fromCAt(c *ctype.Type, depth int) *Type {
	r := c.Real()
	switch r.Kind {
	case ctype.Base:
		if r.Float || r.Size() == 0 || r.Size() > 8 {
			return none
		}
		one := integer(int(r.Size()), r.Signed || r.Name == "char")
		one.boolean = r.Name == "_Bool" || r.Name == "bool"
		return one
	case ctype.Enum:
		return &Type{Kind: Integer, Size: int(r.Size()), Name: r.Name, C: r}
	case ctype.Pointer:
		return &Type{Kind: Pointer, Size: 8, C: r}
	case ctype.Struct, ctype.Union:
		return recordOf(r)
	case ctype.Array:
		if depth >= bounded.TypeDepth {
			return none
		}
		e, of := fromCAt(r.Target(), depth+1), r.Target().Unqualified()
		if of.Kind == ctype.Base && of.Char { // and not a typedef, as u8
			return stringOf(int(r.Count))
		}
		return &Type{Kind: Array, C: r, Elem: e, N: int(r.Count), Size: int(ctype.Product(r.Count, int64(e.Size)))}
	case ctype.Void:
		return &Type{Kind: Void}
	}
	return none
}

func recordOf(r *ctype.Type) *Type {
	word := "struct "
	if r.Kind == ctype.Union {
		word = "union "
	}
	return &Type{Kind: Record, Size: int(r.Size()), Name: word + r.Name, C: r}
}

// same compares types but for their sizes. What pointers lead to is compared to the bound on depth.
func (t *Type) same(o *Type) bool { return t.sameAt(o, 0) }

func (t *Type) sameAt(o *Type, depth int) bool {
	if t.Kind != o.Kind || t.Made != o.Made || t.Bool != o.Bool || len(t.Names) != len(o.Names) {
		return false
	}
	if depth >= bounded.TypeDepth {
		return true
	}
	switch t.Kind {
	case Record:
		return t.Name == o.Name
	case Pointer:
		return t.target().sameAt(o.target(), depth+1)
	case TupleKind:
		if len(t.Fields) != len(o.Fields) {
			return false
		}
		for i := range t.Fields {
			if !t.Fields[i].sameAt(o.Fields[i], depth+1) {
				return false
			}
		}
	}
	return true
}

func (t *Type) equal(o *Type) bool { return t.equalAt(o, 0) }

func (t *Type) equalAt(o *Type, depth int) bool {
	if !t.same(o) {
		return false
	}
	if depth >= bounded.TypeDepth {
		return true
	}
	switch t.Kind {
	case Pointer:
		return t.target().equalAt(o.target(), depth+1)
	case Array:
		return t.N == o.N && t.target().equalAt(o.target(), depth+1)
	case TupleKind:
		for i := range t.Fields {
			if !t.Fields[i].equalAt(o.Fields[i], depth+1) {
				return false
			}
		}
		return true
	}
	return t.Size == o.Size && t.Signed == o.Signed
}

// fits reports whether a value goes into a place of another type.
func (t *Type) fits(o *Type) bool {
	if t.Kind != o.Kind || t.Made != o.Made {
		return false
	}
	switch t.Kind {
	case String:
		return t.Size <= o.Size
	case Integer:
		if t.Signed != o.Signed {
			// An unsigned one of fewer bytes fits.
			return !t.Signed && t.Size < o.Size
		}
		return t.Size <= o.Size
	case TupleKind:
		if len(t.Fields) != len(o.Fields) {
			return false
		}
		for i := range t.Fields {
			if !t.Fields[i].fits(o.Fields[i]) {
				return false
			}
		}
		return true
	}
	return t.equal(o)
}

// widen makes strings as long as another type's.
func (t *Type) widen(o *Type) *Type {
	switch {
	case t.Kind == String && o.Kind == String && o.Size > t.Size:
		c := *t
		c.Size = o.Size
		return &c
	case t.Kind == TupleKind && o.Kind == TupleKind && len(t.Fields) == len(o.Fields):
		var list []*Type
		for i := range t.Fields {
			list = append(list, t.Fields[i].widen(o.Fields[i]))
		}
		made := tuple(list)
		made.Names = t.Names
		return made
	}
	return t
}

// core returns the type of package script that holds the values: Int for integers and addresses, Stat for
// aggregates of several numbers, String for the bytes of all others.
func (t *Type) core() script.Type {
	switch t.Kind {
	case Integer, Pointer, Ksym, Username, CgroupPath, Strerror, Count, Sum:
		return script.Int
	case Min, Max, Avg, Stats, Hist, Lhist, Tseries:
		return script.Stat
	case None, Void, StackMode, TimestampMode:
		return script.Int
	}
	return script.String
}

// layout is a tuple's.
func (t *Type) layout() []script.Type {
	var list []script.Type
	for _, f := range t.Fields {
		list = append(list, f.core())
	}
	return list
}

// room returns the number of bytes of a value that is held as a string.
func (t *Type) room() int {
	switch t.Kind {
	case TupleKind:
		n := 0
		for _, f := range t.Fields {
			n += 2 + max(f.room(), 8)
		}
		return n
	case Kstack:
		return 8*t.N + 1
	case Ustack:
		return 8*(t.N+1) + 1
	}
	return t.Size + 1
}
