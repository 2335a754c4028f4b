package asked

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// generator makes texts that are close to what kernels accept: most parts are
// valid, some are not.
type generator struct{ *rand.Rand }

// Generate makes n questions of each sort; the same seed makes the same.
func Generate(seed uint64, n int) []Op {
	g := generator{rand.New(rand.NewPCG(seed, 0x61736b6564))}
	ops := []Op{{Write, "events/enable", "0"}}
	for range n {
		ops = append(ops, g.define()...)
		ops = append(ops, g.lines()...)
	}
	ops = append(ops, Op{Write, "kprobe_events", "p:f vfs_write u=%dx:u8 s=%dx:s32 x=%dx:x64 str=+0(%si):string c=$comm arr=+0(%si):u8[4]\n" +
		"r:g vfs_write r=$retval:s64 u=$retval:u8\n"})
	for range n {
		ops = append(ops, g.filter()...)
	}
	for range n {
		ops = append(ops, g.filterOf(g.words)...)
	}
	return ops
}

// define writes a definition, and perhaps something about it.
func (g generator) define() []Op {
	d := g.definition()
	ops := []Op{
		{Write, "kprobe_events", ""},
		{Write, "error_log", ""},
		{Append, g.pick("kprobe_events", "kprobe_events", "dynamic_events"), d + g.pick("\n", "\n", "")},
		{Read, "error_log", ""},
		{Read, "kprobe_events", ""},
	}
	if g.IntN(3) == 0 {
		again := g.pick(d, g.definition(), "-:e", "-:g/e", "-:g/", "p:e vfs_read a=%di\n", "r:g/e vfs_read a=%di\n")
		ops = append(ops, Op{Append, "kprobe_events", again}, Op{Read, "error_log", ""}, Op{Read, "kprobe_events", ""})
	}
	if strings.Contains(d, ":g/e ") {
		ops = append(ops, Op{Read, "events/g/e/format", ""})
	}
	return ops
}

// lines writes several lines at once, some of them long, and with bytes in them
// that end a text or a line.
func (g generator) lines() []Op {
	var lines []string
	for range 1 + g.IntN(5) {
		lines = append(lines, g.pick(g.definition(), "p:g/a vfs_read", "p:g/b vfs_write x=%di", "r:g/c vfs_open $retval", "-:g/a", "-:g/",
			"#c", "", "p:g/e vfs_read # tail", "  p:g/f vfs_open\t", "-:nosuch"))
	}
	if g.IntN(20) == 0 {
		lines = append(lines, "p:g/l vfs_read"+strings.Repeat(" %di", g.IntN(700)), strings.Repeat("x", 4085+g.IntN(20)))
	}
	text := strings.Join(lines, g.pick("\n", "\n", "\n\n", ";", "\r\n")) + g.pick("\n", "\n", "", " ")
	if g.IntN(6) == 0 {
		at := g.IntN(len(text) + 1)
		text = text[:at] + g.pick("\x00", "\x01", "\n", "\t") + text[at:]
	}
	return []Op{
		{Write, "kprobe_events", ""},
		{Write, "error_log", ""},
		{Append, "kprobe_events", text},
		{Read, "kprobe_events", ""},
		{Read, "error_log", ""},
	}
}

// filter writes one to an event or to its group.
func (g generator) filter() []Op { return g.filterOf(func() string { return g.expression(0) }) }

// words is a filter with what 6.6 and later have: functions by name, sets of CPUs, and the field stacktrace, which
// is none of a filter's. Half of them stand beside another predicate.
func (g generator) words() string {
	field := g.mostly([]string{"__probe_ip.function", "cpu", "CPU", "u", "x", "common_cpu"}, []string{"__probe_ip.func", "u.function", "x.function", "str.function", "c", "r", "stacktrace", "common_stacktrace", ".function", "__probe_ip.function.x"})
	op := g.mostly([]string{"==", "!=", "&"}, []string{"<", "~", "|", ">=", ""})
	value := g.mostly([]string{"vfs_write", "CPUS{0}", "CPUS{0-1}", "CPUS{0,2-3}", "CPUS{1}"}, []string{
		"nosuch", "vfs_writ", "CPUS{}", "CPUS{x}", "CPUS{0", "CPUS 0}", "CPUS{0-}", "CPUS{-1}", "CPUS{99999}", "CPUS{ 0 }", "cpus{0}", "CPUS{0}x", "'vfs_write'", "1", "0x10", "vfs_write+1", "",
	})
	one := field + g.space() + op + g.space() + value
	if g.IntN(2) == 0 {
		one += g.space() + g.pick("&&", "||") + g.space() + g.predicate()
	}
	return one
}

// filterOf writes a filter.
func (g generator) filterOf(text func() string) []Op {
	file := g.pick("events/kprobes/f/filter", "events/kprobes/f/filter", "events/kprobes/g/filter", "events/kprobes/filter")
	return []Op{
		{Write, "error_log", ""},
		{Append, file, text()},
		{Read, "events/kprobes/f/filter", ""},
		{Read, "events/kprobes/g/filter", ""},
		{Read, "error_log", ""},
	}
}

func (g generator) pick(list ...string) string { return list[g.IntN(len(list))] }

// mostly is one of the first list, and now and then of the second.
func (g generator) mostly(good, other []string) string {
	if g.IntN(5) > 0 {
		return g.pick(good...)
	}
	return g.pick(other...)
}

func (g generator) definition() string {
	s := g.mostly([]string{"p", "p", "p", "r"}, []string{"r0", "r1", "r10", "r4096", "r4097", "rx", "r-1", "r1x", "p1", "q", "", "P", "pp", "p ", "rr", "-", "p:"})
	s += g.name() + " " + g.place()
	for range g.IntN(4) {
		s += " " + g.argument()
	}
	return s
}

func (g generator) name() string {
	if g.IntN(4) == 0 {
		return g.pick("", "", ":", "::e", ":/", ":g/", ":/e", "e", ": e", ":g/e/f", ":e:")
	}
	group := g.mostly([]string{"", "g/", "my/"}, []string{
		"kprobes/", "G_1/", "a-b/", "1g/", "a.b/", "/", strings.Repeat("x", 63) + "/", strings.Repeat("x", 64) + "/", "g h/", "g.",
	})
	return ":" + group + g.mostly([]string{"e", "ev"}, []string{
		"E1", "_e", "1e", "e-f", "e.f", "", strings.Repeat("y", 63), strings.Repeat("y", 64), "e/f",
	})
}

func (g generator) place() string {
	return g.mostly([]string{"vfs_read", "vfs_write", "vfs_open", "kfree", "do_sys_openat2"}, []string{
		"vfs_read+5", "vfs_read+0x5", "vfs_write+1", "vfs_write+9", "vfs_read+99999", "vfs_read+x", "vfs_read+", "vfs_read-1", "vfs_read+-1",
		"vfs_read+5%return", "vfs_read%return", "vfs_read%retur", "vfs_read%returnx", "vfs_read+18446744073709551615", "vfs_read+4294967296",
		"0xffffffff81000000", "0", "1", "0x", "0xffffffffffffffff", "12345678", "nosuch_sym", "nosuch_mod:vfs_read", ":vfs_read", "vfs_read:",
		"__schedule", "memcpy", "exc_int3", "get_kprobe", "name_show", "_text", "jiffies", "", "vfs read", "\tvfs_read",
	})
}

func (g generator) argument() string {
	s := g.fetch(0) + g.fetchType()
	if g.IntN(4) > 0 {
		s = g.mostly([]string{"a", "b", "count", "x1", "_y"}, []string{
			"common_type", "__probe_ip", "a-b", "a.b", "1a", "a,b", strings.Repeat("n", 31), strings.Repeat("n", 32), strings.Repeat("n", 33), "",
		}) + "=" + s
	}
	return s
}

// fetch is an expression; depth bounds what is in parentheses.
func (g generator) fetch(depth int) string {
	switch g.IntN(8) {
	case 0, 1:
		return "%" + g.mostly([]string{"ax", "di", "sp", "ip", "r8", "r15", "flags"}, []string{"orig_ax", "eax", "al", "foo", "", "di+8"})
	case 2:
		return "$" + g.mostly([]string{"stack", "stack0", "retval", "comm", "arg1", "arg2"}, []string{
			"stack127", "stack4096", "stack-1", "stackx", "COMM", "arg0", "arg128", "arg", "argx", "foo", "", "retvalx", "comm1", "stack99999999999",
		})
	case 3:
		return "@" + g.mostly([]string{"jiffies", "linux_banner+8", "0xffffffff82a00000"}, []string{"jiffies-0x10", "jiffies+x", "nosuch_sym", "", "+8", "0x", "123"})
	case 4:
		return `\` + g.mostly([]string{"1", "-8", "0x1f", `"text"`}, []string{"", "1x", "18446744073709551616", "08", "+5", `"`, `""`, `"a b"`, `"open`, `"x"y`})
	case 5:
		return g.pick("foo", "", "%", "$", "@", "(", ")", "+0", "x=y", "_", "1", "*")
	}
	if depth > 3 {
		return "%di"
	}
	offset := g.mostly([]string{"+0", "-8", "+16", "+u0", "+0x10"}, []string{"+", "-", "++0", "+-1", "0", "+x", "-99999999999999999999", "+u", "-u8", "u0"})
	return offset + "(" + g.fetch(depth+1) + g.mostly([]string{")"}, []string{"", "))", " )", ")x"})
}

func (g generator) fetchType() string {
	return g.mostly([]string{"", "", ":u8", ":s32", ":x64", ":string", ":ustring", ":symbol", ":b4@4/32", ":u8[4]", ":string[2]"}, []string{
		":symstr", ":char", ":u16[64]", ":u8[65]", ":u8[0]", ":u8[-1]", ":u8[x]", ":u8[4", ":u8[4]x", ":u8[ 2]", ":b0@0/8", ":b64@0/64", ":b65@0/64",
		":b1@x/8", ":b1x/8", ":b4/32", ":b1@63/64", ":b8@4/8", ":b1@0/7", ":", ":foo", ":U8", ":s128", ":b", ":x8]", ":[2]",
	})
}

// expression is a filter.
func (g generator) expression(depth int) string {
	switch n := g.IntN(10); {
	case n < 5 || depth > 3:
		return g.predicate()
	case n < 8:
		return g.expression(depth+1) + g.space() + g.mostly([]string{"&&", "||"}, []string{"&", "|", "&&&", "and", ""}) + g.space() + g.expression(depth+1)
	case n < 9:
		return g.pick("(", "((", "!(", "!") + g.expression(depth+1) + g.pick(")", ")", "))", "")
	}
	return g.pick("", "!", "()", "(", "0", "none", " ", "u", "u ==", "== 1", "u == 1 2", "u == 1)", "u == 1 &&", "u == 1 || !")
}

func (g generator) space() string { return g.pick("", " ", " ", "\t") }

func (g generator) predicate() string {
	field := g.mostly([]string{"u", "s", "x", "str", "c", "arr", "r", "common_pid"}, []string{"CPU", "COMM", "comm", "common_type", "__probe_ip", "nosuch", "U", "1u"})
	op := g.mostly([]string{"==", "!=", "<", "<=", ">", ">=", "&", "~"}, []string{"=", "===", "!~", "=<", "<>", "", "|"})
	value := g.mostly([]string{"0", "1", "255", "0x10", `"abc"`, "'a*'", `"*b"`}, []string{
		"-1", "256", "010", "1x", "abc", "'[ab]'", "18446744073709551616", "-129", "''", "'", "'a", "1 2", "0x", "+1", "0b1", fmt.Sprintf("%q", strings.Repeat("y", 250+g.IntN(60))),
	})
	return field + g.space() + op + g.space() + value
}
