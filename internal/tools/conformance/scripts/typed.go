package scripts

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"kprobelab/internal/script/stap"
)

// typed draws a script whose grammar is right, and whose types often are not: operators of aggregates on
// other variables, functions without a value, keys and variables without a type, code without an effect.
func typed(r *rand.Rand) string {
	d := drawing{r}
	var b strings.Builder
	b.WriteString("global a, n, t, m\n")
	for _, f := range []string{"f()", "g(p)"} {
		fmt.Fprintf(&b, "function %s { %s }\n", f, d.pick("", "println(1)", "x = 2", "return 1", `return "s"`, "return "+d.expr(2), "n = 3", "next"))
	}
	if d.IntN(3) > 0 {
		b.WriteString("probe end { n = 1 a <<< 1 m[1] = 2 t = \"t\" println(n, t, m[1], @count(a)) }\n")
	}
	b.WriteString("probe begin { ")
	for range 1 + d.IntN(3) {
		b.WriteString(d.stmt(2) + " ")
	}
	b.WriteString("}\n")
	return b.String()
}

type drawing struct{ *rand.Rand }

func (d drawing) pick(list ...string) string { return list[d.IntN(len(list))] }

// variable is a variable: a local or a global one.
func (d drawing) variable() string {
	return d.pick("x", "y", "z", "x", "y", "n", "t", "a", "m[1]", `m["k"]`, "m[x]")
}

func (d drawing) expr(depth int) string {
	if depth == 0 {
		return d.pick("1", "0", "42", `"s"`, d.variable(), d.variable())
	}
	e := func() string { return d.expr(depth - 1) }
	switch d.IntN(12) {
	case 0, 1:
		return e() + d.pick(" + ", " - ", " / ", " & ", " && ", " << ") + e()
	case 2:
		return e() + d.pick(" == ", " != ", " < ", " >= ") + e()
	case 3:
		return e() + " . " + e()
	case 4:
		return d.pick("@count", "@sum", "@max", "@avg") + "(" + d.pick("a", "a", "n", "x", "m[1]") + ")"
	case 5:
		return "f()"
	case 6:
		return "g(" + e() + ")"
	case 7:
		return d.pick("f(1)", "g()", "!x", "-"+e(), "~1")
	case 8:
		return "(" + e() + " ? " + e() + " : " + e() + ")"
	case 9:
		return d.pick("sprint(", "sprintf(\"%d\", ", "sprintf(\"%s\", ") + e() + ")"
	case 10:
		return "(" + e() + " in m)"
	}
	return d.expr(0)
}

func (d drawing) stmt(depth int) string {
	e := func() string { return d.expr(1 + d.IntN(2)) }
	s := func() string {
		if depth == 0 {
			return d.pick("{ }", "break", "x = 1", "println(2)")
		}
		return "{ " + d.stmt(depth-1) + " }"
	}
	switch d.IntN(15) {
	case 0, 1:
		return d.variable() + " = " + e() + ";"
	case 2:
		return d.variable() + d.pick(" += ", " .= ", " -= ") + e() + ";"
	case 3:
		return d.pick("a", "a", "n", "x", "m[1]") + " <<< " + e() + ";"
	case 4, 5:
		return d.pick("print(", "println(") + e() + ");"
	case 6:
		return d.pick(`printf("%d", `, `printf("%s", `) + e() + ");"
	case 7:
		return "if (" + e() + ") " + s() + d.pick("", " else "+s())
	case 8:
		return d.pick("while (0) ", "while (x) ", "for (x = 0; x < 3; x++) ") + s()
	case 9:
		return "foreach (" + d.pick("k", "x", "[k, x]") + " in " + d.pick("m", "m", "a", "y") + ") " + s()
	case 10:
		return "delete " + d.variable() + ";"
	case 11:
		return d.variable() + d.pick("++", "--") + ";"
	case 12:
		return d.pick("next", "break", "continue") + ";"
	case 13:
		return "print(@hist_linear(" + d.pick("a", "n") + ", 0, " + d.pick("10", "0", "-5") + ", " + d.pick("1", "0") + "));"
	}
	return e() + ";"
}

func typedTheirs(program, tree, script string) (verdict, error) {
	_, bad, code, err := asked(script, program, "-r", tree, "-a", "x86_64", "-p2", "-g", "-")
	return verdict{code == 0, firstProblem(bad)}, err
}

func typedOurs(script string) verdict {
	_, err := stap.Analyze("<input>", script, &stap.Options{Release: release, Guru: true, Types: true}, nil)
	var p stap.Problems
	if errors.As(err, &p) {
		return verdict{false, firstProblem(p.Text())}
	}
	return verdict{accepted: true}
}

// firstProblem is the first line that says what is wrong.
func firstProblem(text string) string {
	for line := range strings.Lines(text) {
		if strings.Contains(line, " error: ") {
			return strings.TrimSpace(line)
		}
	}
	return ""
}
