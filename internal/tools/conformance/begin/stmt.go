package begin

import (
	"fmt"
	"strings"
)

var aggregates = []string{"count()", "sum(%)", "min(%)", "max(%)", "avg(%)", "stats(%)", "hist(%)", "lhist(%, 0, 100, 10)", "hist(%, 2)"}

// anyMap is the name of some map.
func (d *drawer) anyMap() string {
	if len(d.maps) == 0 {
		return ""
	}
	return pick(d, d.maps...).name
}

func (d *drawer) someKind() kind {
	return pick(d, number, number, number, number, text, text, tuple, pointer, record, bytesOf, other)
}

func (d *drawer) statement(depth int) string {
	if d.wrong() {
		return d.rare()
	}
	switch d.IntN(22) {
	case 0, 1, 2:
		return d.assign()
	case 3, 4:
		return d.assignMap()
	case 5:
		return d.aggregated()
	case 6:
		return d.change()
	case 7, 8, 9:
		return d.printed()
	case 10, 11, 12:
		return d.formatted()
	case 13:
		return d.emptied()
	case 14:
		return d.declared()
	case 15, 16:
		if depth > 0 {
			return d.branch(depth)
		}
	case 17, 18:
		if depth > 0 {
			return d.loop(depth)
		}
	case 19, 20:
		return d.expr(d.someKind(), 2) + ";"
	}
	return d.printed()
}

func (d *drawer) assign() string {
	k := d.someKind()
	if v := d.variable(k); v != "" && d.one(2) {
		return v + " = " + d.expr(d.mostly(k), 2) + ";"
	}
	x := d.expr(k, 2)
	v := d.fresh("$v")
	d.vars = append(d.vars, named{name: v, is: k})
	return v + " = " + x + ";"
}

func (d *drawer) assignMap() string {
	if len(d.maps) > 0 && d.one(3) {
		m := pick(d, d.maps...)
		return d.at(m) + " = " + d.expr(d.mostly(m.is), 2) + ";"
	}
	k := d.someKind()
	x := d.expr(k, 2)
	m := named{name: d.fresh("@m"), is: k, key: pick(d, kinds, kinds, number, number, text, tuple)}
	at := d.at(m)
	d.maps = append(d.maps, m)
	return at + " = " + x + ";"
}

func (d *drawer) aggregated() string {
	m := named{name: d.fresh("@a"), is: kinds, key: pick(d, kinds, kinds, number, text)}
	if len(d.maps) > 0 && d.wrong() {
		m = pick(d, d.maps...)
	}
	of := pick(d, aggregates...)
	var out []string
	for range 1 + d.IntN(2) {
		out = append(out, d.at(m)+" = "+strings.Replace(of, "%", d.expr(d.mostly(number), 1), 1)+";")
	}
	if of == "count()" || of[0] == 's' && of[1] == 'u' || of[0] == 'm' || of[0] == 'a' {
		m.is = number // it is read as one
	}
	d.maps = append(d.maps, m)
	return strings.Join(out, " ")
}

func (d *drawer) change() string {
	at := d.variable(d.mostly(number))
	if m := d.element(d.mostly(number)); m != "" && (at == "" || d.one(2)) {
		at = m
	}
	if at == "" {
		at = d.fresh("@c")
		d.maps = append(d.maps, named{name: at, is: number, key: kinds})
	}
	switch d.IntN(3) {
	case 0:
		return pick(d, "++", "--") + at + ";"
	case 1:
		return at + pick(d, "++", "--") + ";"
	}
	if d.one(7) {
		// What a shift by 64 and more gives is undefined.
		return at + pick(d, " <<= ", " >>= ") + pick(d, "1", "3", "7") + ";"
	}
	return at + pick(d, " += ", " -= ", " *= ", " |= ", " ^= ", " &= ") + d.expr(d.mostly(number), 1) + ";"
}

func (d *drawer) printed() string {
	if m := d.anyMap(); m != "" && d.one(4) {
		return "print(" + m + pick(d, "", "", "", ", 1", ", 2, 10", ", 0") + ");"
	}
	return "print(" + d.expr(d.someKind(), 2) + ");"
}

var directives = []struct {
	is   kind
	text []string
}{
	{number, []string{"%d", "%u", "%i", "%x", "%X", "%o", "%c", "%p", "%ld", "%lu", "%lld", "%llu", "%llx", "%hd", "%hhd", "%hu", "%hhx", "%5d", "%-5d|", "%05d", "%+d", "% d", "%#x", "%#o", "%.3d", "%8.3x", "%zu", "%jd", "%lx"}},
	{text, []string{"%s", "%10s", "%-10s|", "%.2s", "%5.1s"}},
	{bytesOf, []string{"%r", "%rx", "%rh", "%s", "%10r"}},
	{pointer, []string{"%p", "%x", "%llx", "%s"}},
	{other, []string{"%s", "%d", "%-20s|"}},
	{tuple, []string{"%s", "%d"}},
	{number, []string{"%s", "%r", "%5c", "%y", "%", "%f", "%n", "%ls", "%hhs", "%*d", "%1$d", "%'d", "%5%", "%e"}},
	{text, []string{"%d", "%c", "%p", "%r", "%rx", "%llu"}},
}

func (d *drawer) formatted() string {
	var format, args strings.Builder
	for range d.IntN(4) {
		of := directives[0]
		if d.wrong() {
			of = pick(d, directives...)
		}
		switch d.IntN(24) {
		case 1, 2, 3, 4, 5, 6:
			of = directives[1]
		case 7, 8, 9:
			of = directives[2]
		case 10:
			of = directives[3]
		case 11, 12:
			of = directives[4]
		}
		format.WriteString(pick(d, of.text...) + pick(d, " ", "", ",", "%%", "x"))
		args.WriteString(", " + d.expr(d.mostly(of.is), 2))
	}
	if d.wrong() {
		args.WriteString(", 1")
	}
	if d.wrong() {
		format.WriteString("%d")
	}
	return `printf("` + format.String() + `\n"` + args.String() + ");"
}

func (d *drawer) emptied() string {
	if len(d.maps) == 0 {
		return d.printed()
	}
	m := pick(d, d.maps...)
	if m.key == kinds {
		return pick(d, "clear("+m.name+");", "zero("+m.name+");", "delete("+m.name+");")
	}
	return pick(d, "clear("+m.name+");", "zero("+m.name+");", "delete("+m.name+", "+d.key(m.key)+");", "delete("+d.at(m)+");", "print(has_key("+m.name+", "+d.key(m.key)+"));", "print(len("+m.name+"));")
}

// declarable are the types of declarations by the kind of value, and at the end ones that are wrong.
var declarable = map[kind][]string{
	number: {"int64", "int64", "uint64", "int32", "uint32"}, text: {"string", "string[32]", "string[64]"}, pointer: {"uint8 *", "struct rec_ *", "void *"},
	record: {"struct rec_"}, bytesOf: {"uint8[4]", "buffer"}, other: {"ksym_t", "usym_t", "username", "strerror_t", "timestamp", "macaddr_t"},
	kinds: {"int8", "uint8", "char", "string[4]", "bool", "nothing", "struct t", "enum e", "inet", "count_t"},
}

func (d *drawer) declared() string {
	v := named{name: d.fresh("$d"), is: d.someKind()}
	if len(d.vars) > 0 && d.wrong() {
		v = pick(d, d.vars...)
	}
	of := declarable[v.is]
	if d.wrong() {
		of = declarable[kinds]
	}
	x := ""
	if !d.one(3) {
		x = " = " + d.expr(d.mostly(v.is), 1)
	}
	d.vars = append(d.vars, v)
	if d.one(3) || len(of) == 0 {
		return "let " + v.name + x + ";"
	}
	return "let " + v.name + " : " + pick(d, of...) + x + ";"
}

func (d *drawer) branch(depth int) string {
	out := "if (" + d.expr(d.mostly(number), 2) + ") { " + d.body(1+d.IntN(2), depth-1) + "}"
	switch d.IntN(4) {
	case 0:
		out += " else { " + d.body(1, depth-1) + "}"
	case 1:
		out += " else if (" + d.expr(number, 1) + ") { " + d.body(1, depth-1) + "}"
	}
	return out
}

func (d *drawer) loop(depth int) string {
	switch d.IntN(4) {
	case 0:
		return "unroll(" + pick(d, "1", "2", "3", "5", "2", d.bad("2", "$1", "0", "101", "$#", "-1")) + ") { " + d.body(1+d.IntN(2), depth-1) + "}"
	case 1:
		v := d.fresh("$i")
		d.vars = append(d.vars, named{name: v, is: number})
		d.loops++
		body := d.body(1+d.IntN(2), depth-1) + pick(d, "", "", "if ("+v+" == 2) { break; } ", "if ("+v+" == 1) { "+v+"++; continue; } ")
		d.loops--
		return fmt.Sprintf("%s = 0; while (%s < %d) { %s%s++; }", v, v, 1+d.IntN(4), body, v)
	case 2:
		// Of several elements the tool takes the order of its hashes, and of what the loop itself adds, too: it adds nothing.
		m := named{name: d.fresh("@f"), is: pick(d, number, text, tuple), key: pick(d, number, text, tuple)}
		at := d.at(m)
		out := at + " = " + d.expr(m.is, 1) + "; "
		v := d.fresh("$k")
		old := d.vars
		d.vars = append(d.vars, named{name: v + ".0", is: m.key}, named{name: v + ".1", is: m.is}, named{name: v, is: tuple})
		out += "for (" + v + " : " + m.name + ") { " + d.body(1+d.IntN(2), depth-1) + pick(d, "", "print("+v+"); ", d.bad("", "break; ", "return; ")) + "}"
		d.vars = old
		d.maps = append(d.maps, m)
		return out
	}
	if m := d.anyMap(); m != "" && d.one(2) {
		return "for ($x : " + m + ") { print($x.1); }"
	}
	return "if (" + d.expr(number, 1) + ") { " + pick(d, "return;", "return 1;", "return "+d.expr(number, 1)+";", d.bad("return;", "break;", "continue;")) + " }"
}

func (d *drawer) rare() string {
	return pick(d, `time("now\n");`, `join("x");`, "exit(1);", `cat("/x");`, `system("x");`, "signal(9);", "print(1, 2);", "printf(1);", "printf(\"%d\", 1, 2);", "print();", "nothing(1);", "$v = ;", "clear(1);", "zero(@z);", "len(1);",
		"print(*(uint8 *)0);", "print(((uint8 *)0)[1]);", "print(((uint8[4])(uint32)7)[2]);", "print(((uint8[4])(uint32)7)[4]);", "@ = (1, 2); print(@.1);", "$_ = 1;", "let $q, $r;", "let $q;", "print((1, (2, 3)).1.0);", "print((int8)\"x\");", "print(-9223372036854775808);",
		"print(strerror(1) == strerror(1));", "unroll(2) { $u = 1; }", "{ $in = 1; print($in); }", "if (1) print(1);", "@x[1, 2] = 3; @x[1] = 4;", "@y = count(); @y = 5;", "@y++; @y = count();", "print(nsecs(nothing));", "print(kstack(nothing));", "print(kstack(bpftrace, 300, 2));",
		"@[kstack(0)] = 1;", "print(reg(\"ip\"));", "uaddr(\"x\");", "kaddr(\"nothing\");", "override(1);", "print(args);", "print(args.x);", "print(cpid);", "print(sizeof(struct nothing));", "print((struct nothing *)0);", "print(((struct nothing *)0)->a);", "print(percpu_kaddr(\"nothing\"));",
		"print(offsetof(struct rec_, h));", "print(sizeof((1, (int8)2)));", "strftime(\"%H\", 1);", "print(((uint8[4])(uint32)7) == ((uint8[4])(uint32)7));", "print(buf(\"abc\", -1));", "print(buf(5));", "skboutput(1, 2, 3, 4);", "unwatch(5);", "print(nothing);", "print(AF_INET);", "@@ = 1;", "print(1 ? (1, 2) : (3, 4));", "print(1 ? \"a\" : \"bcd\");")
}
