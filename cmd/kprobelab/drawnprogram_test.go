package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// number is a type of C that holds a number.
type number struct {
	name   string
	bits   int
	signed bool
}

var numbers = []number{
	{"unsigned char", 8, false}, {"signed char", 8, true}, {"unsigned short", 16, false}, {"short", 16, true},
	{"unsigned int", 32, false}, {"int", 32, true}, {"unsigned long", 64, false}, {"long", 64, true},
	{"_Bool", 1, false}, {"enum sign", 32, true}, {"enum plain", 32, false}, {"u16_t", 16, false}, {"const volatile s8_t", 8, true},
}

// integers is the number of plain integer types. They come first in numbers; bitfields are drawn from them.
const integers = 8

// of is a number as the type has it.
func (n number) of(v uint64) int64 {
	left := 64 - n.bits
	if n.signed {
		return int64(v<<left) >> left
	}
	return int64(v << left >> left)
}

// draw is a value of the type, of any size.
func (n number) draw(r *rand.Rand) int64 { return n.of(r.Uint64() >> r.IntN(64)) }

// literal is a constant of C.
func literal(v int64) string { return fmt.Sprintf("(long)%#xul", uint64(v)) }

// step is a step from a structure to a part of it: a member, or an element.
type step struct {
	name  string
	arrow bool // the member is of what a pointer points to
	// index is the index of an element, if name is "". pointer: the element is of a pointer's target, else of an array.
	// rows and columns are the sizes of an array with two dimensions.
	index, rows, columns int
	pointer              bool
}

// route are the steps to a part.
type route []step

func (p route) and(more ...step) route { return append(slices.Clone(p), more...) }

// notation is the path as probes have it. DWARF has arrays of two dimensions as one row, to perf probe and SystemTap
// alike; gcc's BTF has them as arrays of arrays.
func (p route) notation(byRows bool) (s string) {
	for _, one := range p {
		switch {
		case one.name == "" && byRows && one.columns > 0:
			s += fmt.Sprintf("[%d][%d]", one.index/one.columns, one.index%one.columns)
		case one.name == "":
			s += fmt.Sprintf("[%d]", one.index)
		case one.arrow:
			s += "->" + one.name
		default:
			s += "." + one.name
		}
	}
	return s
}

// inBTF reports a leaf that gcc 12 describes right in BTF: not two dimensions, whose order it turns around where they
// differ, and not an enumeration with a sign.
func (l leaf) inBTF() bool {
	return l.name != "enum sign" && !slices.ContainsFunc(l.path, func(one step) bool { return one.rows != one.columns })
}

// byte reports an element of an array of bytes, which is a string to bpftrace.
func (l leaf) byte() bool {
	last := l.path[len(l.path)-1]
	return l.bits > 0 && l.bits <= 8 && last.name == "" && !last.pointer
}

// arrows is a path as SystemTap has it: with arrows alone.
func arrows(path string) string { return strings.ReplaceAll(path, ".", "->") }

// leaf is a number or a text in the structure.
type leaf struct {
	path route
	number
	value int64
	// field is for a bitfield.
	field bool
	// text is the content of a leaf that is a string (bits is 0). inside: the string is an array in the structure, not
	// the target of a pointer.
	text   string
	inside bool
}

// drawnProgram has a structure with members of every kind, and a function that puts drawn values into it.
type drawnProgram struct {
	r     *rand.Rand
	names int
	// types holds the declarations before the structure, objects the targets of its pointers, puts the assignments.
	types, objects, puts strings.Builder
	// declared are all types, with the structure.
	declared string
	leaves   []leaf
}

func (d *drawnProgram) name(prefix string) string {
	d.names++
	return fmt.Sprintf("%s%d", prefix, d.names)
}

func (d *drawnProgram) number() number { return numbers[d.r.IntN(len(numbers))] }

func (d *drawnProgram) letters(most int) string {
	b := make([]byte, d.r.IntN(most+1))
	for i := range b {
		b[i] = byte('a' + d.r.IntN(26))
	}
	return string(b)
}

// put assigns a drawn value to the C expression at.
func (d *drawnProgram) put(at string, p route, n number) {
	v := n.draw(d.r)
	fmt.Fprintf(&d.puts, "\t*(%s *)&%s = %s;\n", strings.TrimPrefix(n.name, "const volatile "), at, literal(v))
	d.leaves = append(d.leaves, leaf{path: p, number: n, value: v})
}

// members draws members of a structure or a union that C reaches by at, and probes by a path.
func (d *drawnProgram) members(at string, p route, n, depth int) string {
	kinds := []func(at string, p route, depth int) string{
		d.scalar, d.fields, d.array, d.table, d.characters, d.pointer, d.toText, d.toPointer, d.union,
	}
	if depth > 0 {
		kinds = append(kinds, d.nested, d.unnamed, d.structures, d.toStructure, d.toStructures)
	}
	s := ""
	for range n {
		s += kinds[d.r.IntN(len(kinds))](at, p, depth-1)
	}
	return s
}

func (d *drawnProgram) scalar(at string, p route, _ int) string {
	n, name := d.number(), d.name("m")
	d.put(at+"."+name, p.and(step{name: name}), n)
	return fmt.Sprintf("%s %s; ", n.name, name)
}

// fields are bitfields, some of them in one word.
func (d *drawnProgram) fields(at string, p route, _ int) (s string) {
	for range 1 + d.r.IntN(4) {
		of, name := numbers[d.r.IntN(integers)], d.name("b")
		n := number{of.name, 1 + d.r.IntN(of.bits), of.signed}
		v := n.draw(d.r)
		fmt.Fprintf(&d.puts, "\t%s.%s = %s;\n", at, name, literal(v))
		d.leaves = append(d.leaves, leaf{path: p.and(step{name: name}), number: n, value: v, field: true})
		s += fmt.Sprintf("%s %s : %d; ", of.name, name, n.bits)
	}
	return s
}

func (d *drawnProgram) array(at string, p route, _ int) string {
	n, name, count := d.number(), d.name("a"), 1+d.r.IntN(4)
	for i := range count {
		d.put(fmt.Sprintf("%s.%s[%d]", at, name, i), p.and(step{name: name}, step{index: i}), n)
	}
	return fmt.Sprintf("%s %s[%d]; ", n.name, name, count)
}

// table is an array of two dimensions, whose elements probes count through.
func (d *drawnProgram) table(at string, p route, _ int) string {
	n, name, columns := d.number(), d.name("t"), 1+d.r.IntN(3)
	for i := range 2 * columns {
		d.put(fmt.Sprintf("%s.%s[%d][%d]", at, name, i/columns, i%columns), p.and(step{name: name}, step{index: i, rows: 2, columns: columns}), n)
	}
	return fmt.Sprintf("%s %s[2][%d]; ", n.name, name, columns)
}

func (d *drawnProgram) characters(at string, p route, _ int) string {
	name, text := d.name("s"), d.letters(15)
	for i, c := range []byte(text + "\x00") {
		fmt.Fprintf(&d.puts, "\t%s.%s[%d] = %d;\n", at, name, i, c)
	}
	d.leaves = append(d.leaves, leaf{path: p.and(step{name: name}), text: text, inside: true})
	return fmt.Sprintf("char %s[16]; ", name)
}

func (d *drawnProgram) toText(at string, p route, _ int) string {
	name, text := d.name("s"), d.letters(40)
	fmt.Fprintf(&d.puts, "\t%s.%s = %q;\n", at, name, text)
	d.leaves = append(d.leaves, leaf{path: p.and(step{name: name}), text: text})
	return fmt.Sprintf("const char *%s; ", name)
}

// object is something for pointers to lead to.
func (d *drawnProgram) object(of string) string {
	name := d.name("object")
	fmt.Fprintf(&d.objects, "%s %s;\n", of, name)
	return name
}

func (d *drawnProgram) pointer(at string, p route, _ int) string {
	n, name := numbers[d.r.IntN(integers)], d.name("p")
	to := d.object(n.name)
	fmt.Fprintf(&d.puts, "\t%s.%s = &%s;\n", at, name, to)
	d.put(to, p.and(step{name: name}, step{pointer: true}), n)
	return fmt.Sprintf("%s *%s; ", n.name, name)
}

func (d *drawnProgram) toPointer(at string, p route, _ int) string {
	n, name := numbers[d.r.IntN(integers)], d.name("p")
	to := d.object(n.name)
	between := d.object(n.name + " *")
	fmt.Fprintf(&d.puts, "\t%s = &%s; %s.%s = &%s;\n", between, to, at, name, between)
	d.put(to, p.and(step{name: name}, step{pointer: true}, step{pointer: true}), n)
	return fmt.Sprintf("%s **%s; ", n.name, name)
}

// union has the bytes of one number under several names.
func (d *drawnProgram) union(at string, p route, _ int) string {
	name, word := d.name("u"), d.r.Uint32()
	fmt.Fprintf(&d.puts, "\t%s.%s.word = %#x;\n", at, name, word)
	of := func(n number, shift int, steps ...step) {
		d.leaves = append(d.leaves, leaf{path: p.and(step{name: name}).and(steps...), number: n, value: n.of(uint64(word >> shift))})
	}
	of(number{bits: 32}, 0, step{name: "word"})
	of(number{bits: 16, signed: true}, 0, step{name: "half"})
	for i := range 4 {
		of(number{bits: 8}, 8*i, step{name: "bytes"}, step{index: i})
	}
	return fmt.Sprintf("union { unsigned int word; short half; unsigned char bytes[4]; } %s; ", name)
}

func (d *drawnProgram) nested(at string, p route, depth int) string {
	name := d.name("n")
	return fmt.Sprintf("struct { %s} %s; ", d.members(at+"."+name, p.and(step{name: name}), 1+d.r.IntN(3), depth), name)
}

// unnamed is a structure whose members are the outer one's.
func (d *drawnProgram) unnamed(at string, p route, depth int) string {
	return fmt.Sprintf("struct { %s}; ", d.members(at, p, 1+d.r.IntN(3), depth))
}

// reached is a structure that C reaches by at, and probes by a path and an arrow or a dot.
type reached struct {
	at    string
	path  route
	arrow bool
}

// structure declares a structure, and puts drawn values into its places.
func (d *drawnProgram) structure(places ...reached) (declared string) {
	declared = "struct " + d.name("inner")
	n, field, a := d.number(), number{"int", 1 + d.r.IntN(31), true}, numbers[d.r.IntN(integers)]
	fmt.Fprintf(&d.types, "%s { %s number; int field : %d; %s array[2]; struct { short deep; } in; };\n", declared, n.name, field.bits, a.name)
	for _, to := range places {
		at := func(name string) route { return to.path.and(step{name: name, arrow: to.arrow}) }
		d.put(to.at+".number", at("number"), n)
		v := field.draw(d.r)
		fmt.Fprintf(&d.puts, "\t%s.field = %s;\n", to.at, literal(v))
		d.leaves = append(d.leaves, leaf{path: at("field"), number: field, value: v, field: true})
		for i := range 2 {
			d.put(fmt.Sprintf("%s.array[%d]", to.at, i), at("array").and(step{index: i}), a)
		}
		d.put(to.at+".in.deep", at("in").and(step{name: "deep"}), number{"short", 16, true})
	}
	return declared
}

// structures are an array of structures, of one dimension or two.
func (d *drawnProgram) structures(at string, p route, _ int) string {
	name, rows, columns := d.name("e"), 1+d.r.IntN(2), 1+d.r.IntN(3)
	var places []reached
	for i := range rows * columns {
		places = append(places, reached{at: fmt.Sprintf("%s.%s[%d][%d]", at, name, i/columns, i%columns), path: p.and(step{name: name}, step{index: i, rows: rows, columns: columns})})
	}
	return fmt.Sprintf("%s %s[%d][%d]; ", d.structure(places...), name, rows, columns)
}

func (d *drawnProgram) toStructure(at string, p route, _ int) string {
	name, to := d.name("q"), d.name("object")
	of := d.structure(reached{at: to, path: p.and(step{name: name}), arrow: true})
	fmt.Fprintf(&d.objects, "%s %s;\n", of, to)
	fmt.Fprintf(&d.puts, "\t%s.%s = &%s;\n", at, name, to)
	return fmt.Sprintf("%s *%s; ", of, name)
}

// toStructures is an array of pointers to structures.
func (d *drawnProgram) toStructures(at string, p route, _ int) string {
	name, to := d.name("r"), []string{d.name("object"), d.name("object")}
	var places []reached
	for i, object := range to {
		places = append(places, reached{at: object, path: p.and(step{name: name}, step{index: i}), arrow: true})
		fmt.Fprintf(&d.puts, "\t%s.%s[%d] = &%s;\n", at, name, i, object)
	}
	of := d.structure(places...)
	fmt.Fprintf(&d.objects, "%s %s;\n", of, strings.Join(to, ", "))
	return fmt.Sprintf("%s *%s[%d]; ", of, name, len(to))
}
