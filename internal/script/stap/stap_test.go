package stap

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What stap -p1 -g of SystemTap 4.8 said of these scripts (make conformance-stap TABLE=FILE N=120 SEED=7).
func TestVerdictsOfStap(t *testing.T) {
	b, err := os.ReadFile("testdata/verdicts.txt")
	require.NoError(t, err)
	parts := regexp.MustCompile(`(?m)^-- (accepted|refused) --\n`).FindAllStringSubmatchIndex(string(b), -1)
	require.Greater(t, len(parts), 100)
	for i, at := range parts {
		end := len(b)
		if i+1 < len(parts) {
			end = parts[i+1][0]
		}
		script := string(b[at[1]:end])
		_, err := Parse("<input>", script, &Options{Release: "6.1.0-56-cloud-amd64", Guru: true})
		assert.Equal(t, string(b[at[2]:at[3]]) == "accepted", err == nil, "%s\n%v", script, err)
	}
}

// The messages are stap's, with the place.
func TestParseErrors(t *testing.T) {
	for script, want := range map[string]string{
		`probe begin { x = }`:                      "expected literal string or number\n        saw: operator '}' at <input>:1:19\n",
		`probe begin { foreach (x) }`:              "expected 'in'\n        saw: operator ')' at <input>:1:25\n",
		`probe begin { "abc }`:                     "Could not find matching closing quote\n         at: junk '' at <input>:1:15\n",
		`probe begin { $1 }`:                       "command line argument out of range [1-0]\n         at: junk '' at <input>:1:15\n",
		`probe begin { return 1 }`:                 "found 'return' not in function context\n        saw: keyword at <input>:1:15\n",
		`probe begin`:                              "expected one of ', { } = +='\n        saw: <input> EOF\n",
		`global x[2] = 1`:                          "only scalar globals can be initialized\n        saw: operator '=' at <input>:1:13\n",
		`@define x(a) %( @a %) probe begin { @x }`: "expected '(' in invocation of macro '@x' taking 1 parameter\n         at: operator '}' at <input>:1:40\n",
		`function f() %{ %}`:                       "embedded code in unprivileged script; need stap -g\n        saw: embedded-code at <input>:1:14\n",
		`probe begin { printf("%q", 1) }`:          "invalid or missing conversion specifier\n        saw: operator ',' at <input>:1:26\n",
	} {
		_, err := Parse("<input>", script, &Options{Release: "6.1.0"})
		var p Problems
		require.ErrorAs(t, err, &p, script)
		assert.True(t, strings.HasPrefix(p.Text(), "parse error: "+want), "%s\n%s", script, p.Text())
	}
}

func TestSemanticErrors(t *testing.T) {
	for script, want := range map[string]string{
		`probe begin { foo() }`:                                           "unresolved function foo",
		`probe begin { x[1] = 2 }`:                                        "unresolved arity-1 global array x, missing global declaration?",
		`probe begin { x = 1; x = "a" }`:                                  "type mismatch",
		`global x probe begin { x[1] = 2; x[1,2] = 3 }`:                   "inconsistent arity (1 vs 2)",
		`probe begin { printf("%d") }`:                                    "Wrong number of args to formatted print operator",
		`probe begin { printf("%d", "s") }`:                               "type mismatch: expected long but found string",
		`function f(a) { return a } probe begin { f(1, 2) }`:              "arity mismatch found (function 'f' takes 1 args)",
		`probe begin { print($x) }`:                                       "unresolved target-symbol expression",
		`probe nothing { }`:                                               "while resolving probe point",
		`probe kernel.function("vfs_read") { }`:                           "this probe point needs a kernel: name one with -r IMAGE",
		`probe process("/bin/ls").begin { }`:                              "probes of programs (process) are not there",
		`probe kernel.data(1).write { }`:                                  "kernel.data needs watchpoints, which are not there",
		`probe begin { system("ls") }`:                                    "function system: a script cannot run commands here",
		`probe begin { break }`:                                           "cannot 'break' outside loop",
		`global a probe begin { a[1] = 1; foreach (k in a) delete a[k] }`: "variable 'a' modified during 'foreach' iteration",
		`global t probe begin { t <<< 1; print(@hist_log(t)); print(@hist_linear(t, 0, 2, 1)) }`: "conflicting histogram types are asked of t",
		`probe timer.s(0) { }`:              "invalid s timer: 0 is out of range",
		`probe begin { if ("a" =~ "(") 1 }`: "regular expression",
		`function f() { }`:                  "no probes found",
	} {
		_, err := Analyze("<input>", script, &Options{}, nil)
		var p Problems
		require.ErrorAs(t, err, &p, script)
		assert.Equal(t, semanticError, p[0].Kind)
		assert.True(t, strings.HasPrefix(p[0].Message, want), "%s\n%s", script, p.Text())
	}
}

func TestDump(t *testing.T) {
	s, err := Analyze("<input>", `global a function f(x) { return x . "b" } probe begin { a[1, "x"] = f("c"); foreach ([i, j] in a) println(a[i, j]) }`, &Options{}, nil)
	require.NoError(t, err)
	assert.Equal(t, "# globals\na:string [long, string]\n# functions\nf:string (x:string)\n# probes\nbegin /* <- begin */\n  # locals\n  i:long\n  j:string\n", s.Dump())
}

func FuzzAnalyze(f *testing.F) {
	files, err := filepath.Glob("testdata/corpus/*.stp")
	require.NoError(f, err)
	require.NotEmpty(f, files)
	for _, name := range files {
		b, err := os.ReadFile(name)
		require.NoError(f, err)
		f.Add(string(b), true)
	}
	f.Fuzz(func(t *testing.T, script string, guru bool) {
		o := &Options{Args: []string{"1", "x"}, Guru: guru, Release: "6.1.0"}
		_, err := Parse("<input>", script, o)
		var p Problems
		if err != nil {
			require.ErrorAs(t, err, &p)
			require.NotEmpty(t, p.Text())
		}
		if _, err := Analyze("<input>", script, o, nil); err != nil {
			require.True(t, errors.As(err, &p), "%v", err)
			require.NotEmpty(t, p.Text())
		}
	})
}

// docs/stap.md names every function of the library and every system call with an alias.
func TestDocsNameTheLibrary(t *testing.T) {
	b, err := os.ReadFile("../../../docs/stap.md")
	require.NoError(t, err)
	has := func(name string) {
		if !strings.HasPrefix(name, "__") && !regexp.MustCompile(`\b`+regexp.QuoteMeta(name)+`\b`).Match(b) {
			t.Errorf("docs/stap.md does not name %s", name)
		}
	}
	for name := range builtins {
		has(name)
	}
	for _, f := range libraryParsed().functions {
		has(f.name)
	}
	for name := range syscallArgs {
		has(name)
	}
}
