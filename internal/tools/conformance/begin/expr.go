package begin

import (
	"fmt"
	"strings"
)

// literal is a literal of a kind.
func (d *drawer) literal(k kind) string {
	switch k {
	case text:
		return pick(d, `"a"`, `"abc"`, `""`, `"x y"`, `"tab\t."`, `"quo\"te"`, `"\x41\101"`, `"longer than eight"`, `"back\\slash"`, `"é"`)
	case number:
		return pick(d, "0", "1", "2", "7", "42", "-1", "-5", "255", "256", "1000", "0x7f", "1_000", "1e3", "2147483647", "2147483648", "4294967295", "4294967296", "9223372036854775807", "18446744073709551615", "010")
	}
	return pick(d, "1", `"b"`)
}

// expr is an expression of a kind.
func (d *drawer) expr(k kind, depth int) string {
	if v := d.variable(k); v != "" && d.one(3) {
		return v
	}
	if depth > 0 && d.one(4) {
		if m := d.element(k); m != "" {
			return m
		}
	}
	switch k {
	case number:
		return d.number(depth)
	case text:
		return d.text(depth)
	case tuple:
		return d.tuple(depth)
	case pointer:
		return d.pointer()
	case record:
		if d.records {
			return pick(d, "((struct rec_ *)0)->h", d.bad("((struct rec_ *)8)->h", "*((struct rec_ *)0)->nothing"))
		}
		return d.bad(`"r"`, "*(struct nothing *)0")
	case bytesOf:
		return pick(d, `buf("abc", 3)`, `buf("a\x01\xffb", 4)`, `buf("abcdef", 2)`, "(uint8[4])(uint32)16909060", "(uint16[2])(int32)"+d.literal(number), "(int8[])(uint32)5", `pton("1.2.3.4")`, `pton("::1")`, d.bad("buf(str($1), 1)", "buf("+d.expr(text, 0)+", -1)"), d.bad("buf(\"x\", 1)", "buf("+d.expr(text, 0)+")"))
	}
	return pick(d, "ntop(16909060)", "ntop((uint32)1)", `ntop(pton("1.2.3.4"))`, `ntop(pton("fe80::1"))`, "ksym(0)", "usym(0)", "strerror(2)", "strerror("+d.expr(number, 0)+")", `macaddr((uint64*)0)`,
		"ntop(2, 16909060)", "ntop(10, 5)", "ksym(5)", "username",
		d.bad("ksym(1)", "print(1)", "count()", "nothing", "ctx", "retval", "arg0", "args", "func", "probe"))
}

// element is an element of a map whose values are of a kind.
func (d *drawer) element(k kind) string {
	var fit []named
	for _, m := range d.maps {
		if m.is == k {
			fit = append(fit, m)
		}
	}
	if len(fit) == 0 {
		return ""
	}
	return d.at(pick(d, fit...))
}

// at is a map with a key, if it has keys.
func (d *drawer) at(m named) string {
	if m.key == kinds {
		return m.name
	}
	return m.name + "[" + d.key(m.key) + "]"
}

// key is an expression for a key.
func (d *drawer) key(k kind) string {
	if d.wrong() {
		return d.expr(kind(d.IntN(int(kinds))), 0)
	}
	if k == tuple {
		if d.one(2) {
			return "1, " + d.literal(text)
		}
		return "(" + pick(d, "2", "-1", "(int8)3") + ", " + d.literal(text) + ")"
	}
	if d.one(2) {
		return d.literal(k)
	}
	return d.expr(k, 0)
}

// macro is the name of a macro of a kind, if there is one.
func (d *drawer) macro(k kind) string {
	for _, m := range d.macros {
		if m.is == k {
			return m.name
		}
	}
	return ""
}

var widths = []string{"int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"}

func (d *drawer) number(depth int) string {
	if depth == 0 {
		if d.one(6) {
			return fmt.Sprintf("$%d", 1+d.IntN(3))
		}
		if m := d.macro(number); m != "" && d.one(3) {
			return m
		}
		if d.one(12) {
			if !d.records {
				return pick(d, "$#", "sizeof(uint32)", `sizeof("abc")`, "sizeof("+d.expr(kind(d.IntN(int(kinds))), 0)+")", d.bad("3", "sizeof(struct rec_)"))
			}
			return pick(d, "sizeof(struct rec_)", "offsetof(struct rec_, c)", "sizeof("+d.expr(kind(d.IntN(int(kinds))), 0)+")", "((struct rec_ *)0)->a", "((struct rec_ *)16)->f", d.bad("1", "offsetof(struct rec_, nothing)"))
		}
		return d.literal(number)
	}
	e := func() string { return d.expr(d.mostly(number), depth-1) }
	switch d.IntN(16) {
	case 0, 1:
		return "(" + pick(d, widths...) + ")" + e()
	case 2:
		return pick(d, "-", "~", "!") + "(" + e() + ")"
	case 3:
		// One with another ternary, && or || in a branch has the tool end with a fault.
		return "(" + e() + " ? " + d.expr(d.mostly(number), 0) + " : " + d.expr(number, 0) + ")"
	case 4, 5:
		return "(" + e() + pick(d, " < ", " <= ", " > ", " >= ", " == ", " != ") + e() + ")"
	case 6:
		return "(" + d.expr(text, 0) + pick(d, " == ", " != ") + d.expr(d.mostly(text), 0) + ")"
	case 7:
		return pick(d, "strncmp("+d.expr(text, 0)+", "+d.expr(text, 0)+", "+pick(d, "0", "1", "3", "9", d.bad("2", "-1", "$1"))+")", "strcontains("+d.expr(text, 0)+", "+d.expr(text, 0)+")")
	case 8:
		return "(" + e() + pick(d, " / ", " % ") + pick(d, "3", "7", "(uint8)5", "-2") + ")"
	case 9:
		return "(" + e() + pick(d, " << ", " >> ") + pick(d, "1", "3", "7") + ")"
	case 10:
		return "(" + e() + ", " + d.literal(text) + ")" + d.bad(".0", ".1", ".5")
	case 11:
		if m := d.anyMap(); m != "" {
			return d.bad("1", "len("+m+")", "has_key("+m+", "+d.literal(pick(d, number, text))+")", "(uint64)"+m)
		}
		return "bswap(" + pick(d, "(uint16)258", "(uint32)258", "258", "(uint8)5") + ")"
	case 12:
		return "(" + e() + pick(d, " && ", " || ") + e() + ")"
	}
	return "(" + e() + pick(d, " + ", " - ", " * ", " & ", " | ", " ^ ") + e() + ")"
}

func (d *drawer) text(depth int) string {
	if m := d.macro(text); m != "" && d.one(3) {
		return m
	}
	if depth == 0 || d.one(2) {
		return d.literal(text)
	}
	switch d.IntN(5) {
	case 0:
		return fmt.Sprintf("str($%d)", 1+d.IntN(3))
	case 1:
		return "(" + d.expr(number, 0) + " ? " + d.literal(text) + " : " + d.literal(d.mostly(text)) + ")"
	case 2:
		return fmt.Sprintf("str($%d, %s)", 1+d.IntN(3), d.bad("8", d.literal(number)))
	case 3:
		return fmt.Sprintf("str($%d + %s)", 1+d.IntN(3), d.bad("0", "1", "2", "-1", "$1"))
	}
	return pick(d, "str(0)", "str((uint8 *)0)", "str(5, 3)", d.bad("str(1)", "str("+d.expr(d.mostly(pointer), 0)+")"))
}

func (d *drawer) tuple(depth int) string {
	var parts []string
	for range 2 + d.IntN(2) {
		k := pick(d, number, number, text)
		if depth > 0 {
			k = pick(d, number, number, text, tuple, bytesOf, d.mostly(number))
		}
		parts = append(parts, d.expr(k, max(depth-1, 0)))
	}
	return "(" + strings.Join(parts, ", ") + ")"
}

func (d *drawer) pointer() string {
	list := []string{"(uint8 *)0", "(uint64 *)8", "(int32 *)" + d.literal(number), "(uint16 *)0 + 2", "kptr(5)", "uptr(0)", "uptr((uint8 *)0)", "kptr((int16 *)2)"}
	if d.records {
		list = append(list, "(struct rec_ *)0", "(struct rec_ *)16", "((struct rec_ *)0)->next", "(struct rec_ *)0 + 1")
	}
	return pick(d, list...)
}
