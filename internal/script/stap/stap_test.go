package stap

import (
	"errors"
	"kprobelab/internal/script/host"
	"os"
	"path"
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

// What scripts of others have met: each is accepted, and its tree is stap's.
func TestParseTrees(t *testing.T) {
	for name, c := range map[string]struct{ script, want string }{
		"long directives":                   {`probe begin { printf("%ld %#lx %5ld %ls", 1, 2, 3, "") }`, `printf("%ld %#lx %5ld %ls", 1, 2, 3, "");`},
		"an argument that is not there":     {`probe begin { %( $# >= 7 %? $7 %: next %) }`, "next;"},
		"an expression of C":                {`probe begin { println(%{ X %}) }`, "println(%{  X  %});"},
		"the offset of a member":            {`probe begin { println(@offsetof("page", flags)) }`, `println(&@cast(0, "page", "kernel")->flags);`},
		"the structure that a member is in": {`probe begin { println(@container_of(1, "page", flags)) }`, `println(@cast((1) - (&@cast(0, "page", "kernel")->flags), "page"));`},
		"a name of dollars alone":           {`probe begin { println($, $$$) }`, `println($, $$$);`},
		"dollars after a space":             {`probe begin { println(@cast(1, "a")->b $, $a $$, f(1)$) }`, `println(@cast(1, "a")->b->$, $a->$$, (f(1))->$);`},
		"words after an extractor's array":  {`probe begin { println(@count(a b 3), @variance(a } , 4)) }`, `println(@count(a), @variance(a, 4));`},
		"an operator as an array":           {`global a probe begin { foreach (x in @sum) ; }`, `foreach ([x] in @sum) ;;`},
		"no macros where nothing is read": {`%( 1 == 2 %? @define x %( 1 %) "open %:
 %) probe begin { println(1) }`, `println(1);`},
		"an option that is a number": {`probe begin { %( CONFIG_HZ == 250 && CONFIG_NONE < 1 %? println(1) %) }`, `println(1);`},
		"the size of a type":         {`probe begin { println(@cast_sizeof("page")) }`, `println(&@cast(0, "page")[1]);`},
	} {
		t.Run(name, func(t *testing.T) {
			tree, err := Parse("<input>", c.script, &Options{Guru: true, Config: func(name string) string {
				return map[string]string{"CONFIG_HZ": "250"}[name]
			}})
			require.NoError(t, err)
			require.Contains(t, tree, "probe begin{\n"+c.want+"\n}\n")
		})
	}
	for script, want := range map[string]string{
		`probe begin { printf("%lld", 1) }`:          "invalid or missing conversion specifier",
		`probe begin { %( $# < 7 %? $7 %: next %) }`: "command line argument out of range",
		"%{ x\n%}\nprobe begin { }":                  "",
	} {
		tree, err := Parse("<input>", script, &Options{Guru: true})
		if want != "" {
			require.ErrorContains(t, err, want)
			continue
		}
		require.NoError(t, err)
		require.Contains(t, tree, "%{ x\n%}probe begin{")
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
		`probe a.*1 { }`:                           "expected one of ', { } = +='\n        saw: number '1' at <input>:1:10\n",
		`%( 1 == 1 %? global a %: 2 %: 3 %)`:       "invalid conditional - duplicate '%:'\n         at: operator '%:' at <input>:1:28\n",
		`%( 1 == 2 %? 1 %: global a %: 3 %)`:       "invalid conditional - duplicate '%:'\n         at: operator '%:' at <input>:1:28\n",
		`probe begin { %( CONFIG_X == 1 %? 1`:      "incomplete conditional at end of file\n         at: operator '%(' at <input>:1:15\n",
		`probe begin { $a$->b }`:                   "-> and [ are not accepted for a pretty-printing variable\n        saw: operator '->' at <input>:1:18\n",
		`probe begin { &(&$a) }`:                   "cannot take address more than once\n         at: operator '&' at <input>:1:15\n",
		`probe a, b = c { }`:                       "expected probe point specifier\n        saw: operator '=' at <input>:1:12\n",
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
	for script, want := range map[string]string{
		``:                               "Input file '<input>' is empty.\n",
		`# nothing`:                      "Input file '<input>' is empty.\n",
		`%( 1 == 2 %? probe begin {} %)`: "Input file '<input>' is empty after preprocessing.\n",
	} {
		_, err := Parse("<input>", script, &Options{})
		var p Problems
		require.ErrorAs(t, err, &p, script)
		assert.Equal(t, want, p.Text())
	}
}

func TestSemanticErrors(t *testing.T) {
	for script, want := range map[string]string{
		`probe begin { foo() }`:                                           "unresolved function foo",
		`probe begin { x[1] = 2 }`:                                        "unresolved arity-1 global array x, missing global declaration?",
		`probe begin { x = 1; x = "a"; println(x) }`:                      "type mismatch",
		`global x probe begin { x[1] = 2; x[1,2] = 3 }`:                   "inconsistent arity (1 vs 2)",
		`probe begin { printf("%d") }`:                                    "Wrong number of args to formatted print operator",
		`probe begin { printf("%d", "s") }`:                               "type mismatch: expected long but found string",
		`function f(a) { return a } probe begin { f(1, 2) }`:              "arity mismatch found (function 'f' takes 1 args)",
		`probe begin { print($x) }`:                                       "unresolved target-symbol expression",
		`probe nothing { }`:                                               "while resolving probe point",
		`probe kernel.function("vfs_read") { }`:                           "this probe point needs a kernel: name one with -r IMAGE",
		`probe process("/bin/ls").begin { }`:                              "probes of programs (process) need the dump of a booted kernel (-r)",
		`probe begin { system("ls") }`:                                    "function system: a script cannot run commands here",
		`probe begin { @cast(1, "file")->f_pos = 1 }`:                     "write to @cast context variable not permitted; need stap -g",
		`probe begin { @var("jiffies") = 1 }`:                             "write to @var variable not permitted; need stap -g",
		`probe begin { set_kernel_int(1, 2) }`:                            "function may not be used unless -g is specified",
		`probe begin { break }`:                                           "cannot 'break' outside loop",
		`global a probe begin { a[1] = 1; foreach (k in a) delete a[k] }`: "variable 'a' modified during 'foreach' iteration",
		`global t probe begin { t <<< 1; print(@hist_log(t)); print(@hist_linear(t, 0, 2, 1)) }`:               "multiple histogram types declared on '__global_t'",
		`global t probe begin { t <<< 1; print(@hist_linear(t, 0, 10, 1)); print(@hist_linear(t, 0, 10, 2)) }`: "multiple histogram types declared on '__global_t'",
		`global t probe begin { t <<< 1; print(@hist_linear(t, 0, 0, 0)); print(@hist_linear(t, 0, 10, 1)) }`:  "multiple histogram types declared on '__global_t'",
		`global t probe begin { t <<< 1; print(@hist_linear(t, 0, -5, 0)); print(@hist_log(t)) }`:              "multiple histogram types declared on '__global_t'",
		`global t probe begin { t[1] <<< 1; print(@hist_log(t[1])); print(@hist_linear(t[1], 0, 10, 1)) }`:     "multiple histogram types declared on '__global_t'",
		`probe timer.s(0) { }`:                       "invalid s timer: 0 is out of range",
		`probe begin { if ("a" =~ "(") println(1) }`: "regular expression",
		`function f() { }`:                           "no probes found",
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

// docs/stap.md names every function of the library, every alias and every system call with one.
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
	for _, rows := range libraryAliases() {
		for _, r := range rows {
			has(strings.TrimSuffix(r.name, ".return"))
		}
	}
}

// What an alias sets and nobody reads is not there, and an alias that is written in full comes before
// one that .return follows.
func TestAliases(t *testing.T) {
	dump := func(script string) string {
		s, err := Analyze("<input>", script, &Options{}, kernelWith("vfs_read", "vfs_open"))
		require.NoError(t, err)
		return s.Dump()
	}
	require.NotContains(t, dump(`probe vfs.read.return { println(name) }`), "pathname")
	require.Regexp(t, `kernel.function\("vfs_read"\).return`, dump(`probe vfs.read.return { println(name) }`))
	require.Contains(t, dump(`probe vfs.{open,read,readv} ? { println(name) }`), "vfs_open")
	_, err := Analyze("<input>", `probe vfs.readv { }`, &Options{}, kernelWith("vfs_read"))
	p := Problems(nil)
	require.ErrorAs(t, err, &p)
	require.Contains(t, p.Text(), "no match")
	for _, rows := range libraryAliases() {
		for _, r := range rows {
			require.Len(t, libraryText(r.text).aliases, 1, r.text)
		}
	}
}

// kernelWith has these functions and nothing else.
func kernelWith(names ...string) *Kernel {
	return &Kernel{Kernel: host.Kernel{Functions: func(pattern string) (list []Function) {
		for i, n := range names {
			if ok, _ := path.Match(pattern, n); ok {
				list = append(list, Function{Name: n, Addr: 0xffffffff81000000 + uint64(i)<<12})
			}
		}
		return list
	}}}
}

// Macros of the library: Prometheus's text format with any number of keys, and a word for each thread. A macro that
// the library does not have here is refused by name.
func TestLibraryMacros(t *testing.T) {
	tree, err := Parse("<input>", `global a probe x { @prometheus_dump_array2(a, "hits", "name", "cpu") @this3 = 1 }`, &Options{})
	require.NoError(t, err)
	require.Contains(t, tree, "foreach (_v = [_v1, _v2] in a)")
	require.Contains(t, tree, `"name"`)
	require.Contains(t, tree, `(__this_var3[tid()]) = (1)`)
	_, err = Analyze("<input>", `probe begin { @this3 = 1; println(@this3); exit() }`, &Options{}, nil)
	require.NoError(t, err)
	p := Problems(nil)
	_, err = Parse("<input>", `probe begin { @json_output_data_start }`, &Options{})
	require.ErrorAs(t, err, &p)
	require.Contains(t, p.Text(), "macro @json_output_data_start")
	_, err = Analyze("<input>", `probe prometheus { $value = "" }`, &Options{}, nil)
	require.ErrorAs(t, err, &p)
	require.Contains(t, p.Text(), "procfs")
	_, err = Analyze("<input>", `probe begin { println(__indents[0]) }`, &Options{}, nil)
	require.Error(t, err, "a global of the library's own")
}

// Rule: what is used has a type, and only globals are aggregates, as stap -p2 decides.
func TestWhatHasNoTypeIsRefused(t *testing.T) {
	for name, tc := range map[string]struct{ script, want string }{
		"count_of_a_local":             {`probe begin { println(@count(x)) }`, "stat locals not supported"},
		"average_of_a_local":           {`probe timer.s(1) { println(@avg(x)) }`, "stat locals not supported"},
		"histogram_of_a_local":         {`probe begin { print(@hist_log(x)) }`, "stat locals not supported"},
		"bucket_of_a_local":            {`probe begin { println(@hist_log(x)[1]) }`, "stat locals not supported"},
		"buckets_of_a_local":           {`probe begin { foreach (b in @hist_log(x)) println(b) }`, "stat locals not supported"},
		"count_of_a_parameter":         {`function f(a) { return @count(a) } probe begin { println(f(1)) }`, "type mismatch"},
		"println_of_nothing":           {`function f() { println("in") } probe begin { println(f()) }`, "unresolved type"},
		"print_of_nothing":             {`function f() { println("in") } probe begin { print(f()) }`, "unresolved type"},
		"println_of_nothing_passed_on": {`function f() { println(1) } function g() { return f() } probe begin { println(g()) }`, "unresolved type"},
		"println_of_exit":              {`probe begin { println(exit()) }`, "unresolved type"},
		"println_of_log":               {`probe begin { println(log("a")) }`, "unresolved type"},
		"variable_never_set":           {`probe begin { println(x, 1) }`, "unresolved type"},
		"key_of_nothing":               {`function f() {} global a probe begin { a[f()] = 1 }`, "unresolved type"},
		"array_never_set":              {`global a; probe begin { println(1 in a) }`, "unresolved type"},
		"delete_of_a_local":            {`probe begin { delete x }`, "unresolved array in delete statement"},
		"delete_of_nothing":            {`global a; probe begin { delete a }`, "unresolved type"},
		"format_gives_the_type":        {`function f() { println("in") } probe begin { printf("%d", f()) }`, ""},
		"call_as_a_statement":          {`function f() { println("in") } probe begin { f() }`, ""},
		"assigned_and_not_used":        {`function f() { println("in") } probe begin { x = f() }`, ""},
		"recursion":                    {`function f(n) { if (n) return n + f(n - 1); return 0 } probe begin { println(f(3)) }`, ""},
		"compared_with_text":           {`probe begin { println(x == "a") }`, ""},
		"count_of_a_global":            {`global s; function f() { return @count(s) } probe begin { s <<< 1; println(f()) }`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Analyze("<input>", tc.script, &Options{}, nil)
			if tc.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tc.want)
		})
	}
}

// stap leaves out what has no effect, and refuses a script of which nothing is left.
func TestScriptsWithoutAnEffect(t *testing.T) {
	const none = "no probes found"
	for script, refused := range map[string]bool{
		`probe begin { }`:                                                               true,
		`probe begin { x = 1 y = x + 2 }`:                                               true,
		`probe begin { x = y = 1 }`:                                                     true,
		`probe begin { x = 1 x++ }`:                                                     false,
		`probe begin { x = 1 x = x + 1 }`:                                               false,
		`probe begin { next }`:                                                          false,
		`probe begin { if (0) println(1) else { x = 2 } }`:                              true,
		`probe begin { if (1 == 1) { } else println(1) }`:                               true,
		`probe begin { while (1) { } }`:                                                 true,
		`probe begin { for (i = 0; i < 3; i++) { } }`:                                   false,
		`probe begin { try { } catch { println(1) } }`:                                  true,
		`probe begin { sprintf("a") }`:                                                  true,
		`probe begin { } probe end { println(1) }`:                                      false,
		`function f() { } probe begin { f() }`:                                          true,
		`function f() { next } probe begin { f() }`:                                     true,
		`function f() { return f() } probe begin { f() }`:                               true,
		`function f(a) { a = 2 return a } probe begin { f(1) }`:                         true,
		`function f() { x = 2 return x } probe begin { y = f() + 1 }`:                   true,
		`global g function f() { g = 1 } probe begin { f() }`:                           false,
		`function f() { println(1) return 2 } function g(a) { } probe begin { g(f()) }`: false,
		`global g probe begin { g = 1 }`:                                                false,
	} {
		_, err := Analyze("<input>", script, &Options{}, nil)
		if !refused {
			require.NoError(t, err, script)
			continue
		}
		var p Problems
		require.ErrorAs(t, err, &p, script)
		require.Equal(t, none, p[0].Message, script)
		_, err = Analyze("<input>", script, &Options{List: true}, nil)
		require.NoError(t, err, script)
	}
}

// Rule: names come first, then stap leaves out what has no effect, then it looks at types. Each verdict is that of stap -p2.
func TestTypesOfWhatIsLeft(t *testing.T) {
	for name, tc := range map[string]struct{ script, want string }{
		"mismatch_in_an_unread_value":          {`probe begin { z = "s" + 42; println(1) }`, ""},
		"mismatch_in_a_value_read_later":       {`probe begin { println(1) z = "s" + 42 y = z }`, "type mismatch"},
		"mismatch_after_a_jump":                {`probe begin { next println("a" . 1) }`, "type mismatch"},
		"no_type_after_a_jump":                 {`probe begin { next println(y) }`, ""},
		"no_type_in_a_branch_never_taken":      {`probe begin { if (0) println(y) println(2) }`, ""},
		"mismatch_in_a_branch_never_taken":     {`probe begin { if (0) println("a" + 1) println(2) }`, "type mismatch"},
		"no_type_past_an_or_that_holds":        {`probe begin { println(1 || y) }`, ""},
		"no_type_times_nothing":                {`probe begin { println(y * 0) }`, ""},
		"no_type_of_texts_that_are_the_same":   {`probe begin { println("a" == "a" ? 1 : y) }`, ""},
		"no_type_of_texts_that_differ":         {`probe begin { println("a" == "b" ? 1 : y) }`, ""},
		"unread_and_divided_by_nothing":        {`probe begin { x = 1 / 0 println(1) }`, ""},
		"text_as_a_statement":                  {`probe begin { println(1) -"a" }`, ""},
		"text_that_is_printed":                 {`probe begin { println(-"a") }`, "type mismatch"},
		"names_in_code_that_is_left_out":       {`probe begin { println(1) x = nosuch() }`, "unresolved function nosuch"},
		"arrays_in_code_that_is_left_out":      {`probe begin { x[1] println(1) }`, "unresolved arity-1 global array x"},
		"names_in_a_function_not_called":       {`function f() { return nosuch() } probe begin { println(1) }`, ""},
		"loop_over_nothing":                    {`global m probe begin { println(1) foreach (k in m) { } }`, "unresolved type"},
		"loop_over_nothing_with_an_unread":     {`global m probe begin { println(1) foreach (k in m) { x = k } }`, ""},
		"loop_over_nothing_and_a_function":     {`function f() { } global m probe begin { println(1) f() foreach (k in m) { } }`, ""},
		"branch_of_nothing_keeps_its_value":    {`probe begin { x = 1 if (x) { } }`, ""},
		"aggregate_of_a_local_unread":          {`probe begin { x <<< 1 println(2) }`, ""},
		"aggregate_of_a_local_printed":         {`probe begin { x <<< 1 println(x) }`, "stat locals not supported"},
		"local_compared_with_an_aggregate":     {`global m probe begin { m[1] <<< 2 println(x == m[1]) }`, "stat locals not supported"},
		"aggregate_compared_with_a_local":      {`global m probe begin { m[1] <<< 2 println(m[1] == x) }`, "stat locals not supported"},
		"aggregate_assigned_and_unread":        {`global a probe begin { a <<< 1 x = a println(1) }`, ""},
		"aggregate_assigned_and_read":          {`global a probe begin { a <<< 1 x = a println(x) }`, "invalid type stats"},
		"nothing_of_a_quotient":                {`function g(p) { println(1) } global n probe begin { println(g(0/n)) }`, "unresolved type"},
		"local_deleted":                        {`probe begin { y -= 1; delete y; }`, ""},
		"parameter_deleted":                    {`function f(a) { delete a println(a) } probe begin { f(3) }`, "unresolved array in delete statement"},
		"only_computing":                       {`probe begin { x = pid() y = x . 1 }`, "no probes found"},
		"random_number_unread":                 {`probe begin { x = randint(3) }`, ""},
		"function_that_writes_its_own_again":   {`function f(n) { n = n - 1 return f(n) } probe begin { f(2) }`, "no probes found"},
		"function_whose_own_are_a_condition":   {`function f() { x = 1 return 2 } probe begin { if (f()) { } println(1) }`, ""},
		"error_that_nobody_reads":              {`probe begin { try { x = y } catch (e) { println(e) } println(1) }`, ""},
		"parts_of_a_value_that_nobody_wants":   {`probe begin { println(1) y ? x : z }`, ""},
		"argument_of_a_function_that_computes": {`probe begin { println(1) f(y) } function f(a) { return a }`, ""},
		"argument_of_a_function_that_prints":   {`probe begin { println(1) f(y) } function f(a) { println(a) }`, "unresolved type"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Analyze("<input>", tc.script, &Options{Types: true, Guru: true}, nil)
			if tc.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tc.want)
		})
	}
}

// What is known before anything runs, and what stays because it may fail or has an effect.
func TestWhatIsKnownBeforeAnythingRuns(t *testing.T) {
	for x, known := range map[string]bool{
		"2 + 3 * 4 - 20 / 6 % 2": true, "1 << 70": false, "7 / 0": false, "0 / n": false, "n - 0": false, "0 * n": true, "n % 1": true, "n | -1": true,
		"n >= -9223372036854775807 - 1": true, "n < 9223372036854775807": false, "n > 9223372036854775807": true, "n++ * 0": false,
		"1 || n++": true, "n++ || 1": false, "0 && n++": true, "!5": true, "~0": true, `"a" . "b" == "ab"`: true, `"a" < "b"`: true, `"\1" . "2" == "\12"`: false,
		"1 ? 2 : n": true, "n ? 1 : 1": false,
	} {
		for _, other := range []bool{false, true} {
			script := "global n probe begin { if (" + x + ") println(1) }"
			if other {
				script = "global n probe begin { if (!(" + x + ")) println(1) }"
			}
			s, err := Analyze("<input>", script, &Options{}, nil)
			var b []stmt
			if err == nil {
				b = s.a.bodies[0].list
			}
			branch := len(b) == 1
			if branch {
				_, branch = b[0].(*ifStmt)
			}
			require.Equal(t, !known, branch, script)
		}
	}
}

// stap finds some faults when it translates: -p2 does not say them.
func TestFaultsOfTheThirdPass(t *testing.T) {
	for _, script := range []string{
		`probe begin { break }`, `probe begin { continue }`, `function f(a) { if (a) break; println(2) } probe begin { println(1) f(1) }`,
		`global a probe begin { a <<< 1 print(a) }`,
		`global a probe begin { a <<< 1 print(@hist_linear(a, 0, 10, 0)) }`,
		`global a probe begin { a <<< 1 print(@hist_linear(a, 10, 0, 1)) }`,
	} {
		_, err := Analyze("<input>", script, &Options{Types: true}, nil)
		require.NoError(t, err, script)
		_, err = Analyze("<input>", script, &Options{}, nil)
		var p Problems
		require.ErrorAs(t, err, &p, script)
		require.True(t, p.Translating(), script)
	}
}

func TestUsesWithoutATypeAreRefused(t *testing.T) {
	for _, script := range []string{
		`probe begin { println(x < y) }`, `probe begin { println(x == y) }`, `probe begin { if (x != y) println(1) }`,
		`function f() { println("a") } function g(v) { println("b") } probe begin { g(f()) }`,
		`global g probe begin { g[1] = 2 foreach (k in h) { println(1) } }`,
	} {
		_, err := Analyze("<input>", script, &Options{}, nil)
		var p Problems
		require.ErrorAs(t, err, &p, script)
	}
	_, err := Analyze("<input>", `probe begin { println(x == 1, y < "a") }`, &Options{}, nil)
	require.NoError(t, err)
}
