package begin

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// script is a drawn script with its positional parameters.
type script struct {
	text string
	args []string
}

// kind is the kind of value that an expression is drawn for.
type kind int

const (
	number kind = iota
	text
	tuple
	pointer
	record
	bytesOf
	other // what has a type of its own: symbols, addresses, times
	kinds
)

// named is a variable or a map of the script, of some kind.
type named struct {
	name string
	is   kind
	key  kind // of a map with keys
}

type drawer struct {
	*rand.Rand
	vars, maps []named
	names      int
	loops      int
	macros     []named
	records    bool
	args       []string
	// strict scripts have nothing wrong in them that is drawn on purpose.
	strict bool
}

// wrong says that something wrong is drawn.
func (d *drawer) wrong() bool { return !d.strict && d.one(40) }

// bad is a text that is right, and at times one that is not.
func (d *drawer) bad(right string, wrong ...string) string {
	if d.wrong() {
		return pick(d, wrong...)
	}
	return right
}

func pick[T any](d *drawer, list ...T) T { return list[d.IntN(len(list))] }

func (d *drawer) one(of int) bool { return d.IntN(of) == 0 }

// drawScript draws a whole script.
func drawScript(r *rand.Rand) script {
	d := &drawer{Rand: r}
	d.strict = !d.one(3)
	for range d.IntN(4) {
		d.args = append(d.args, pick(d, "5", "0", "-3", "200", "0x1f", "1e3", "4294967296", d.bad("7", "abc", "", "-9223372036854775808", "x y", "018")))
	}
	var b strings.Builder
	if d.one(6) {
		for i := range 1 + d.IntN(2) {
			name, is := fmt.Sprintf("M%d", i), pick(d, number, number, text)
			fmt.Fprintf(&b, "#define %s %s\n", name, d.literal(is))
			d.macros = append(d.macros, named{name: name, is: is})
		}
	}
	if d.one(4) {
		b.WriteString("struct rec_ { int a; char b[4]; unsigned short c; struct rec_ *next; long long d; unsigned e:3; unsigned f:7; signed char g; int h[3]; };\n")
		d.records = true
	}
	if d.one(6) {
		b.WriteString("config = { " + d.settings() + " }\n")
	}
	blocks := 1
	if d.one(4) {
		blocks++
	}
	for i := range blocks {
		d.vars = nil
		probe := d.bad("END", "BEGIN")
		if i == 0 {
			probe = "BEGIN"
		}
		b.WriteString(probe)
		if d.one(10) {
			fmt.Fprintf(&b, " /%s/", d.expr(d.mostly(number), 1))
		}
		b.WriteString(" { ")
		b.WriteString(d.body(1+d.IntN(5), 2))
		if i == 0 {
			b.WriteString(pick(d, "exit();", "exit();", "exit();", "exit(3);", "exit("+d.expr(d.mostly(number), 1)+");"))
		}
		b.WriteString(" }\n")
	}
	return script{b.String(), d.args}
}

// settings is the body of a config block.
func (d *drawer) settings() string {
	var b strings.Builder
	for range 1 + d.IntN(2) {
		if d.wrong() {
			b.WriteString(pick(d, "print_maps_on_exit = 2", "nothing = 1", "max_strlen = \"x\"", "stack_mode = 1") + "; ")
		}
		b.WriteString(pick(d, "max_map_keys = 2", "max_strlen = 32", "max_strlen = 64", "max_strlen=200", `str_trunc_trailer = "~"`, "print_maps_on_exit = 0",
			"stack_mode = raw", "missing_probes = \"warn\"", "log_size = 100000", "BPFTRACE_MAX_MAP_KEYS = 3", "lazy_symbolication = 1", "on_stack_limit = 16", "max_type_res_iterations = 1") + "; ")
	}
	return b.String()
}

// mostly is a kind that another takes the place of at times.
func (d *drawer) mostly(k kind) kind {
	if d.wrong() {
		return kind(d.IntN(int(kinds)))
	}
	return k
}

// body is statements in a block of their own.
func (d *drawer) body(n, depth int) string {
	vars := len(d.vars)
	var b strings.Builder
	for range n {
		b.WriteString(d.statement(depth) + " ")
	}
	d.vars = d.vars[:min(vars, len(d.vars))]
	if depth == 2 {
		d.vars = nil
	}
	return b.String()
}

func (d *drawer) variable(k kind) string {
	var fit []string
	for _, v := range d.vars {
		if v.is == k {
			fit = append(fit, v.name)
		}
	}
	if len(fit) == 0 {
		return ""
	}
	return pick(d, fit...)
}

func (d *drawer) fresh(prefix string) string {
	d.names++
	return fmt.Sprintf("%s%d", prefix, d.names)
}
