package values

import (
	"fmt"
	"strings"
)

// families are the kinds of statements that a script is drawn of.
var families = []func(*drawer) string{shown, shown, assigned, counted, histograms, keyed, tuples, ordered, emptied, declared}

// shown prints an expression.
func shown(d *drawer) string {
	x := d.expr(1 + d.IntN(3))
	if d.IntN(2) == 0 {
		return fmt.Sprintf("print(%s);", x.text)
	}
	y := d.expr(1)
	return fmt.Sprintf(`printf("%s %s\n", %s, %s);`, pick(d, "%d", "%u", "%x", "%lld", "%llu", "%hhd", "%hd", "%lx", "%5d|", "%-7u|", "%08x"), pick(d, "%d", "%lld", "%llx"), x.text, y.text)
}

// assigned puts expressions into a map without a key, of which the first gives the type.
func assigned(d *drawer) string {
	m, x := d.newMap(), d.stored(d.expr(2))
	out := fmt.Sprintf("%s = %s;", m, x.text)
	switch d.IntN(4) {
	case 0:
		out += fmt.Sprintf(" %s = %s;", m, d.like(x, d.expr(1)).text)
	case 1:
		if x.signed || !d.shared {
			out += " " + pick(d, m+"++", "--"+m, m+"--") + ";"
		}
	case 2:
		out += fmt.Sprintf(" %s %s= %s;", m, pick(d, d.operators(x, "|", "^", "+", "-", "*")...), d.like(x, d.operand()).text)
	}
	return out + fmt.Sprintf(" print(%s %s %s);", m, pick(d, d.operators(x, "|", "^", "+")...), d.like(x, d.operand()).text)
}

// counted gives expressions to an aggregate, and reads it.
func counted(d *drawer) string {
	m, of := d.newMap(), pick(d, d.aggregates()...)
	key := pick(d, "", fmt.Sprintf("[%s]", d.key(d.operand()).text))
	sign := d.shared || d.operand().signed
	var out []string
	for range 1 + d.IntN(4) {
		x := d.expr(d.IntN(3))
		if x.signed != sign {
			x.text = fmt.Sprintf("(%s)(%s)", cast(x.size, sign), x.text)
			x.signed = sign
		}
		x = d.stored(x)
		if of == "count" {
			x.text = ""
		}
		out = append(out, fmt.Sprintf("%s%s = %s(%s);", m, key, of, x.text))
	}
	if of != "stats" && d.IntN(2) == 0 {
		out = append(out, fmt.Sprintf("print((%s)%s%s);", cast(pick(d, sizes...), d.IntN(2) == 0), m, key))
	}
	if !d.shared && d.IntN(3) == 0 && (of == "sum" || of == "max" || of == "count") {
		out = append(out, fmt.Sprintf("print(%s%s %s %s);", m, key, pick(d, "+", "-", "<", "=="), d.operand().text))
	}
	return strings.Join(out, " ")
}

// histograms gives expressions to histograms.
func histograms(d *drawer) string {
	m, how := d.newMap(), pick(d, "hist(%s)", "hist(%s, 2)", "lhist(%s, 0, 100, 10)", "lhist(%s, 0, 1000, 250)")
	key := pick(d, "", `["k"]`)
	var out []string
	for range 1 + d.IntN(4) {
		out = append(out, fmt.Sprintf("%s%s = "+how+";", m, key, d.expr(d.IntN(3)).text))
	}
	return strings.Join(out, " ")
}

// keyed has expressions as keys: the values of several differ, for their order to be known.
func keyed(d *drawer) string {
	m := d.newMap()
	var out []string
	for i := range 1 + d.IntN(3) {
		value := fmt.Sprint(10*i + d.IntN(9))
		if d.shared {
			value = "sum(" + value + ")" // 0.27.1 sorts what is aggregated alone
		}
		out = append(out, fmt.Sprintf("%s[%s] = %s;", m, d.key(d.expr(d.IntN(3))).text, value))
	}
	if d.IntN(2) == 0 {
		asked := fmt.Sprintf("has_key(%s, %s)", m, d.key(d.operand()).text)
		if d.shared {
			asked += " ? 1 : 0"
		}
		out = append(out, fmt.Sprintf("print(%s);", asked))
	}
	if !d.shared && d.IntN(3) == 0 {
		out = append(out, fmt.Sprintf("print(%s[%s]);", m, d.key(d.operand()).text))
	}
	return strings.Join(out, " ")
}

// tuple returns a tuple of two or more random expressions. An expression may be a tuple, too, up to depth.
func (d *drawer) tuple(depth int) string {
	var parts []string
	for range 2 + d.IntN(2) {
		switch {
		case depth > 0 && d.IntN(3) == 0:
			parts = append(parts, d.tuple(depth-1))
		case d.IntN(4) == 0:
			parts = append(parts, pick(d, `"x"`, `"four"`, `"a \"b"`))
		default:
			parts = append(parts, d.key(d.expr(d.IntN(2))).text)
		}
	}
	return "(" + strings.Join(parts, ", ") + ")"
}

func tuples(d *drawer) string {
	t, m := d.tuple(2), d.newMap()
	v := fmt.Sprintf("$t%d_%d", d.n, d.vars)
	d.vars++
	switch d.IntN(4) {
	case 0:
		return fmt.Sprintf("print(%s);", t)
	case 1:
		return fmt.Sprintf("%s = %s; print(%s); %s[%s] = %d;", v, t, v, m, v, d.IntN(9))
	case 2:
		return fmt.Sprintf("%s[%s] = %s;", m, strings.TrimSuffix(strings.TrimPrefix(d.tuple(1), "("), ")"), d.operand().text)
	}
	return fmt.Sprintf("%s = %s; %s = %s;", v, t, m, v)
}

// ordered prints maps before they change.
func ordered(d *drawer) string {
	m := d.newMap()
	x := d.stored(d.operand())
	step := m + "++;"
	if d.shared {
		step = fmt.Sprintf("%s = %s;", m, d.like(x, d.operand()).text)
	}
	out := []string{fmt.Sprintf("%s = %s;", m, x.text)}
	for range 1 + d.IntN(3) {
		out = append(out, pick(d, fmt.Sprintf("print(%s);", m), fmt.Sprintf(`printf("%%d\n", %s);`, m), step, fmt.Sprintf("%s = %s;", m, d.like(x, d.operand()).text)))
	}
	return strings.Join(out, " ")
}

// emptied clears, zeroes and deletes.
func emptied(d *drawer) string {
	m := d.newMap()
	key := pick(d, "", "[1]", `["a", 2]`)
	value := pick(d, "count()", "5", "sum(3)", "max(4)", "hist(5)", `"text"`, "avg((int8)-7)", "stats(9)")
	if d.shared {
		value = pick(d, "count()", "5", "sum(3)", "max(4)", "hist(5)", `"text"`)
	}
	set := fmt.Sprintf("%s%s = %s;", m, key, value)
	out := []string{set}
	del := fmt.Sprintf("delete(%s);", m)
	switch {
	case d.shared && key != "":
		del = fmt.Sprintf("delete(%s, %s);", m, map[string]string{"[1]": "1", `["a", 2]`: `("a", 2)`}[key])
	case key == "[1]":
		del = fmt.Sprintf("delete(%s, %d);", m, 1+d.IntN(2))
	case key != "":
		del = fmt.Sprintf(`delete(%s, ("a", %d));`, m, 1+d.IntN(2))
	}
	if strings.HasPrefix(value, "hist") {
		del = ""
	}
	zero := fmt.Sprintf("zero(%s);", m)
	if strings.HasPrefix(value, "avg") || strings.HasPrefix(value, "stats") {
		zero = "" // the tool dies of a division by 0 when it prints such a map
	}
	for range 1 + d.IntN(3) {
		next := pick(d, zero, del, set, fmt.Sprintf("print(%s);", m), fmt.Sprintf("clear(%s);", m))
		switch {
		case d.shared && strings.HasPrefix(next, "clear"):
			next = "" // a map that it leaves empty is a line of 0.23.2's
		case d.shared && next == del:
			next += " " + set // nothing is deleted that is not there
		}
		out = append(out, next)
	}
	return strings.Join(out, " ")
}

// declared declares a variable whose first value may have another width.
func declared(d *drawer) string {
	size, signed := pick(d, sizes...), d.IntN(2) == 0
	if d.shared {
		size, signed = 8, true
	}
	v := fmt.Sprintf("$d%d_%d", d.n, d.vars)
	d.vars++
	first := d.literal(pick(d, sizes[:1+d.IntN(4)]...), signed)
	if first.size > size {
		first = d.literal(size, signed)
	}
	out := fmt.Sprintf("let %s : %s = %s; print(%s);", v, cast(size, signed), first.text, v)
	if signed && d.IntN(2) == 0 {
		out = fmt.Sprintf("let %s : %s = %d; print(%s);", v, cast(size, signed), d.IntN(256)-128, v)
		first = integer{size: 8}
	}
	x := d.stored(d.operand())
	if x.signed == signed && x.size <= first.size {
		out += fmt.Sprintf(" %s = %s; print(%s);", v, x.text, v)
	}
	return out
}
