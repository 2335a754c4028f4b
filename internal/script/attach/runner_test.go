package attach

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kprobelab/internal/script/host"
	"kprobelab/internal/script/stap"
)

// ran runs a stap script without a kernel, and returns its output with the lines for the user.
func ran(t *testing.T, text string, args ...string) string {
	t.Helper()
	s, err := stap.Analyze("<input>", text, &stap.Options{Args: args, Release: "6.1.0"}, nil)
	if p, ok := err.(stap.Problems); ok {
		return p.Text()
	}
	require.NoError(t, err)
	var out bytes.Buffer
	r, err := New(&Script{Program: s.Program, Probes: s.Probes, Words: stap.Words{}}, &Options{Out: &out, Log: func(l string) { out.WriteString(l + "\n") }, HZ: 250})
	require.NoError(t, err)
	r.Begin()
	r.Wait(60e9)
	r.End()
	return out.String()
}

func TestScripts(t *testing.T) {
	for name, c := range map[string]struct{ script, want string }{
		"hello":           {`probe begin { print ("hello world\n") exit () }`, "hello world\n"},
		"arithmetic":      {`probe begin { printf("%d %d %d %d %d\n", 7/2, -7/2, -7%3, 1<<3|1, 5 ^ 1) }`, "3 -3 -1 9 4\n"},
		"precedence":      {`probe begin { println(1 + 2 * 3 == 7 && 2 < 3, " ", 1 ? 2 : 0 ? 3 : 4, " ", "a" . "b" == "ab") }`, "1 2 1\n"},
		"recursion":       {`function fact(n) { return n <= 1 ? 1 : n * fact(n - 1) } probe begin { println(fact(6)) }`, "720\n"},
		"overloads":       {`function f(x) { if (x > 3) next; return 1 } function f(x) { return 2 } function f() { return 3 } probe begin { println(f(1), f(5), f()) }`, "123\n"},
		"array_of_two":    {`global a probe begin { a["x", 1] = 5; a["y", 2]++; foreach ([s, n] in a-) println(s, n, a[s, n]); println([*, 2] in a, ["z", 2] in a) }`, "x15\ny21\n10\n"},
		"sorted_by_key":   {`global a probe begin { a[3] = "c"; a[1] = "a"; a[2] = "b"; foreach (v = k- in a limit 2) println(k, v) }`, "3c\n2b\n"},
		"slices":          {`global a probe begin { a[1,"x"] = 1; a[2,"x"] = 2; a[1,"y"] = 3; foreach ([n, s] in a[1, *]) print(n, s, " "); delete a[*, "x"]; foreach ([n, s] in a) print(n, s) }`, "1x 1y 1y"},
		"aggregates":      {`global x probe begin { for (i = 1; i <= 5; i++) x <<< i println(@count(x), " ", @sum(x), " ", @min(x), " ", @max(x), " ", @avg(x), " ", @variance(x)) } # as in stap(1)`, "5 15 1 5 3 12\n"},
		"sorted_by_count": {`global x probe begin { x["a"] <<< 1; x["b"] <<< 9; x["b"] <<< 1; foreach (k in x @sum-) println(k, @count(x[k])) foreach (k in x+) print(k) }`, "b2\na1\nab"},
		"empty":           {`global x probe begin { if (@count(x) == 0) println("none"); println(@avg(x)) } probe end { x <<< 1 }`, "none\nERROR: empty aggregate near operator '@avg' at <input>:1:69\n"},
		"caught":          {`probe begin { try { error("a") } catch (m) { println("got ", m) } try { x = 1 / y } catch { println("left out") } try { println(1 / y) } catch { println("again") } }`, "got a\nagain\n"},
		"regex":           {`probe begin { if ("abcd" =~ "b(c+)d$") println(matched(0), matched(1), ngroups()); println("x" !~ "y") }`, "bcdc2\n1\n"},
		"formats":         {`probe begin { printf("%5d|%-5d|%05d|%x|%#X|%o|%u|%c|%s|%10.3s|%-*s|%%|%p\n", 1, 2, 3, 255, 255, 8, -1, 65, "x", "abcdef", 4, "y", 16) }`, "    1|2    |00003|ff|0XFF|10|18446744073709551615|A|x|       abc|y   |%|0x10\n"},
		"print_family":    {`probe begin { printd(", ", 1, "b"); printdln("|", 2, 3); println(sprintf("%d", 4) . sprint(5, "z")); s = sprintdln("-", 1, 2); print(s) }`, "1, b2|3\n45z\n1-2\n"},
		"strings":         {`probe begin { println(strlen("abc"), substr("hello", 1, 3), isinstr("abc", "bc"), strtol("0x1f", 16), str_replace("a.b.c", ".", "--"), stringat("A", 0)) }`, "3ell131a--b--c65\n"},
		"tokens":          {`probe begin { t = tokenize("a b,c", " ,"); while (t != "") { print(t, ";"); t = tokenize("", " ,") } }`, "a;b;c;"},
		"timers":          {`global n probe timer.ms(100) { n++ } probe timer.s(1) { println(n); exit() }`, "10\n"},
		"jiffies":         {`global j, m probe timer.jiffies(100) { j++ } probe timer.ms(100) { m++ } probe timer.ms(12345) { println((1000 * j) / m); exit() }`, "243\n"},
		"aliases":         {`probe a = b { x = 1 } , { println("after ", x) } probe b = begin { println("b") } probe a { println("own ", x); x = 2 }`, "b\nown 1\nafter 2\n"},
		"order":           {`probe begin(2) { print("2") } probe begin { print("0") } probe begin(-1) { print("-1") } probe end { print("end") }`, "-102end"},
		"unread_globals":  {`global a, s, x, t, unused probe begin { a["k", 2] = 7; s = "v"; x = 3; t <<< 4 }`, "a[\"k\",2]=7\ns=\"v\"\nx=3\nt @count=1 @min=4 @max=4 @sum=4 @avg=4\n"},
		"macros":          {`@define add(a, b) %( (@a + @b) %) probe begin { println(@add(1, @add(2, 3))) %( $# > 1 %? println(@1, $2) %) }`, "6\nx7\n"},
		"defined":         {`probe begin { if (@defined($x)) println($x->y) else println("no"); z = @choose_defined($a, 4); println(z) }`, "no\n4\n"},
		"endless":         {`probe begin { while (1) x++ }`, "ERROR: MAXACTION exceeded near identifier 'x' at <input>:1:25\n"},
		"too_deep":        {`function f(n) { return f(n + 1) + 0 } probe begin { println(f(1)) }`, "ERROR: MAXNESTING exceeded near identifier 'f' at <input>:1:24\n"},
		"division":        {`probe begin { x = 0; println(5 / x) } probe error { println("error probe") } probe end { println("end probe") }`, "ERROR: division by 0 near operator '/' at <input>:1:32\nerror probe\n"},
		"break_continue":  {`probe begin { for (i = 0; i < 10; i++) { if (i == 2) continue; if (i == 5) break; print(i) } while (i-- > 3) ; print(i) }`, "01342"},
		"wrap":            {`global a%[2] probe begin { a[1] = 1; a[2] = 2; a[3] = 3; foreach (k in a) print(k) }`, "23"},
		"overflow":        {`global a[1] probe begin { a[1] = 1; a[2] = 2 }`, "ERROR: Array overflow, check size limit (1) near identifier 'a' at <input>:1:37\n"},
		"histogram":       {`global x probe begin { x <<< 1; x <<< 3; print(@hist_linear(x, 0, 4, 2)); foreach (b in @hist_linear(x, 0, 4, 2)) print(@hist_linear(x, 0, 4, 2)[b]) }`, "value |-------------------------------------------------- count\n    0 |@                                                  1\n    2 |@                                                  1\n    4 |                                                   0\n\n01100"},
		"library":         {`probe begin { println(MKDEV(8, 1), " ", bytes_to_string(2048), " ", usecs_to_string(1500000), " ", errno_str(2)) }`, "8388609 2.00K 0m1.500000s ENOENT\n"},
		"errors":          {`probe begin { println(errno_str(-10), errno_p(10), errno_str(131), "[", errno_str(132), errno_str(0), "]", errno_p(41)) }`, "ECHILD10ENOTRECOVERABLE[]0\n"},
		"conditions":      {`global on = 1 probe begin if (on) { println("on") } probe begin if (on == 2) { println("two") }`, "on\n"},
		"string_limit":    {`probe begin { s = "x"; for (i = 0; i < 10; i++) s .= s; println(strlen(s)) }`, "511\n"},
		"locals_are_new":  {`probe begin { f(); f() } function f() { x++; println(x) }`, "1\n1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ran(t, c.script, "x", "7")
			if i := strings.Index(got, "WARNING: Number"); i >= 0 {
				got = got[:i]
			}
			assert.Equal(t, c.want, got)
		})
	}
}

// A function's kprobes run before its trampoline, whatever the script says first, and a trampoline's programs at the
// return before its kretprobes: a booted 6.1 does so.
func TestTrampolinesArePlantedFirst(t *testing.T) {
	probe := func(point string, kind host.ProbeKind, chain host.Chain) *planted {
		return &planted{Counts: Counts{Probe: &host.Probe{Point: point, Kind: kind, Chain: chain}}}
	}
	r := &Runner{script: &Script{}, list: []*planted{
		probe("kprobe", host.Call, host.ByRegisters), probe("fentry", host.Call, host.BySite), probe("kprobe2", host.Call, host.ByRegisters),
		probe("fexit", host.Return, host.BySite), probe("kretprobe", host.Return, host.ByRegisters),
	}}
	for backwards, want := range map[bool][]string{
		false: {"fentry", "fexit", "kprobe", "kprobe2", "kretprobe"},
		true:  {"fexit", "fentry", "kretprobe", "kprobe2", "kprobe"},
	} {
		r.script.Backwards = backwards
		var got []string
		for _, p := range r.order() {
			got = append(got, p.Probe.Point)
		}
		require.Equal(t, want, got)
	}
}
