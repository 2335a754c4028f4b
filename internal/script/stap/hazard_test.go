package stap

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestScriptsThatTakeForEver: scripts that mean more than anybody can read end with one sentence, or are read. The real
// stap ends without memory, or by a signal.
func TestScriptsThatTakeForEver(t *testing.T) {
	many := strings.Repeat
	lines := func(n int, format string) (text string) {
		for i := 1; i <= n; i++ {
			text += fmt.Sprintf(format+"\n", i, i-1)
		}
		return text
	}
	for _, c := range []struct{ name, script, want string }{
		{"macro_of_itself", "@define a %( @a %)\nprobe begin { println(@a) }", "macros are nested deeper than 100"},
		{"macros_of_each_other", "@define a %( @b %)\n@define b %( @c %)\n@define c %( @a %)\nprobe begin { println(@a) }", "macros are nested deeper than 100"},
		{"macro_with_an_argument", "@define a(x) %( @a(@x) %)\nprobe begin { println(@a(1)) }", "macros are nested deeper than 100"},
		{"macro_in_a_condition", "@define a %( @a %)\nprobe begin { %( @a == 1 %? println(1) %) }", "macros are nested deeper than 100"},
		{"macro_that_doubles", "@define a0 %( 1+1 %)\n" + lines(30, "@define a%d %( @a%[2]d+@a%[2]d %%)") + "probe begin { println(@a30) }", ""},
		{"macro_twice_of_itself", "@define a %( @a @a %)\nprobe begin { println(@a) }", "macros are nested deeper than 100"},
		{"aliases_that_double", "probe a0 = begin { }\n" + lines(18, "probe a%d = a%[2]d, a%[2]d { }") + "probe a18 { }", "more than 20000 probe points"},
		{"aliases_that_double_and_may_be_absent", "probe a0 = begin { }\n" + lines(18, "probe a%d = a%[2]d ?, a%[2]d ? { }") + "probe a18 { }", "more than 20000 probe points"},
		{"aliases_of_three", "probe a0 = begin { println(1) }\n" + lines(15, "probe a%d = a%[2]d, a%[2]d, a%[2]d { }") + "probe a15 { println(2) }", "more than 20000 probe"},
		{"alias_of_itself", "probe a = a { }\nprobe a { }", "recursive loop in alias expansion"},
		{"alias_of_itself_twice", "probe a = a, a { }\nprobe a { }", "more than 20000 probe points"},
		{"aliases_of_each_other", "probe a = b, b, b { }\nprobe b = a, a, a { }\nprobe a { }", "more than 20000 probe points"},
		{"terms", "probe begin { println(1" + many("+1", 100_000) + ") }", "more than 10000 terms"},
		{"comparisons", "probe begin { println(1" + many("==1", 100_000) + ") }", "more than 10000 terms"},
		{"strings", "probe begin { println(\"a\"" + many(".\"a\"", 100_000) + ") }", "more than 10000 terms"},
		{"brackets", "probe begin { println(" + many("(", 10_000) + "1" + many(")", 10_000) + ") }", "nested too deeply"},
		{"minus", "probe begin { println(" + many("- ", 10_000) + "1) }", "nested too deeply"},
		{"blocks", "probe begin {" + many("{", 10_000) + many("}", 10_000) + "}", "nested too deeply"},
		{"if", "probe begin { " + many("if (1) ", 10_000) + "; }", "nested too deeply"},
		{"else", "probe begin { if (1) ; " + many("else if (1) ; ", 10_000) + " }", "nested too deeply"},
		{"assignments", "probe begin { " + many("x = ", 10_000) + "1 }", "nested too deeply"},
		{"assignments_to_elements", "global a\nprobe begin { println(" + many("a[1]=", 400) + "1) }", ""},
		{"assignments_of_unknown_type", "global a, b\nprobe begin { println(" + many("a[1]=", 400) + "b[1]) }", ""},
		{"assignments_to_locals", "probe begin { println(" + many("x=y=z=", 140) + "w) }", ""},
		{"ternaries_of_unknown_type", "global a\nprobe begin { println(" + many("a[1] ? a[1] : ", 400) + "a[2]) }", ""},
		{"ternaries", "probe begin { println(" + many("1 ? 1 : ", 10_000) + "1) }", "nested too deeply"},
		{"indexes", "global a\nprobe begin { println(" + many("a[", 10_000) + "1" + many("]", 10_000) + ") }", "nested too deeply"},
		{"calls", "function f(x) { return x }\nprobe begin { println(" + many("f(", 10_000) + "1" + many(")", 10_000) + ") }", "nested too deeply"},
		{"functions_that_call_twice", "function f0(x) { return x }\n" + lines(40, "function f%d(x) { return f%[2]d(x) + f%[2]d(x) }") + "probe begin { println(f40(1)) }", ""},
		{"braces", "probe " + many("{begin,end}.", 10) + "{begin,end} { }", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Analyze("<input>", c.script, &Options{}, nil)
			if c.want == "" {
				return
			}
			var p Problems
			require.ErrorAs(t, err, &p)
			require.Contains(t, p.Text(), c.want)
			require.Less(t, len(p.Text()), 16*len(c.script)+1<<16)
		})
	}
}
