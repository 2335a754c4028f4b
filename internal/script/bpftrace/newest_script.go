package bpftrace

import (
	_ "embed" // names.txt
	"strconv"
	"strings"
	"sync"

	"kprobelab/errno"
	"kprobelab/internal/script"
)

// mapKinds are the kinds of maps that a script can declare.
var mapKinds = map[string]bool{"hash": true, "lruhash": true, "percpuhash": true, "percpulruhash": true}

// declareMaps checks the maps that the script declares, and notes their sizes.
func (c *checker) declareMaps() {
	c.sizes = map[string]int{}
	for _, d := range c.t.declared {
		if !mapKinds[d.kind] {
			c.error(d.at, "Invalid bpf map type: %s", d.kind)
			c.problems.list[len(c.problems.list)-1].Hint = "Valid map types: percpulruhash, percpuhash, lruhash, hash"
			continue
		}
		c.sizes[d.name] = int(min(max(d.size, 1), 1<<20))
	}
}

// newestSettings maps the settings that 0.27 has beside 0.23's to the types of their values; "" is one that it has no more.
var newestSettings = map[string]string{
	"license": "string", "show_debug_info": "bool", "unstable_tseries": "string", "unstable_dw_ustack": "string", "unstable_typeinfo": "string",
	"unstable_macro": "string", "unstable_map_decl": "string", "unstable_import": "string", "unstable_addr": "string", "symbol_source": "",
}

// newestSetting returns the type of a setting's value, and turns a value of 0.27's into one of 0.23's: words for truth
// values and modes become numbers and modes.
func (c *checker) newestSetting(name string, v *node) (want string, ok bool) {
	if want, ok = newestSettings[name]; !ok {
		want, ok = settings[name]
	}
	switch {
	case v.op == nBool && want == "bool":
		v.op, v.text = nInt, ""
	case v.op == nString && want == "stack_mode" && (stackModes[v.text] != 0 || v.text == "build_id"):
		v.op = nStackMode
	}
	return want, ok && want != ""
}

// settingOf is config.NAME: the call becomes the value of the setting.
func (c *checker) settingOf(n *node) *Type {
	name := n.path[0]
	value, set := c.config[name]
	switch want := settings[name]; {
	case want == "int":
		if !set {
			value = map[string]string{"max_strlen": "1024", "max_map_keys": "4096", "max_probes": "1024", "max_bpf_progs": "1024", "max_cat_bytes": "10240", "log_size": "1000000", "on_stack_limit": "32"}[name]
		}
		v, _ := strconv.ParseUint(value, 10, 64)
		*n = node{op: nInt, num: v, at: n.at}
	case want == "bool":
		*n = node{op: nBool, num: uint64(truth(value == "1" || !set && name != "lazy_symbolication")), at: n.at}
	case want != "" || newestSettings[name] != "":
		if !set {
			value = map[string]string{"stack_mode": "bpftrace", "missing_probes": "error", "str_trunc_trailer": "..", "license": "GPL", "cache_user_symbols": "PER_PID"}[name]
		}
		*n = node{op: nString, text: value, at: n.at}
	default:
		c.error(n.at, "Record does not contain a field named '%s'", name)
		return none
	}
	return c.expr(n)
}

// imported refuses the files that a script imports: the caller reads the script alone.
func (c *checker) imported() {
	for _, n := range c.t.imports {
		c.error(n.at, "Unable to find suitable path for import")
		c.problems.list[len(c.problems.list)-1].Hint = "checked: " + n.text
	}
}

// pruned checks the one branch of an if whose condition is known before the script runs. It returns false if the condition
// is not known.
func (c *checker) pruned(n *node) bool {
	v, ok := c.constant(n.kids[0])
	if !ok {
		if c.final {
			c.error(n.kids[0].at, "Unable to evaluate at compile time.")
		}
		return false
	}
	if v == 0 {
		n.body = []*node{}
	} else {
		n.other = []*node{}
	}
	c.body(scope{of: n}, n.body)
	c.body(scope{of: n, other: true}, n.other)
	return true
}

// constant computes an expression that is known before the script runs.
func (c *checker) constant(n *node) (int64, bool) {
	switch n.op {
	case nBool, nSizeof, nOffset:
		return int64(n.num), true
	case nIdent:
		return int64(n.num), n.typ != nil && n.typ.enum()
	case nUnary:
		v, ok := c.constant(n.kids[0])
		switch n.text {
		case "!":
			return truth(v == 0), ok
		case "-":
			return -v, ok
		}
		return ^v, ok
	case nBinary:
		l, r := n.kids[0], n.kids[1]
		if l.op == nString && r.op == nString {
			return truth((l.text == r.text) == (n.text == "==")), n.text == "==" || n.text == "!="
		}
		x, ok := c.constant(l)
		y, too := c.constant(r)
		return applied(n.text, x, y), ok && too
	}
	return c.number(n)
}

// formatFault returns the message for a mistake in a format or its arguments, "" for none.
func (c *checker) formatFault(n *node) string {
	if c.o.Language.newest() {
		return c.format(n)
	}
	return c.o.Language.checkFormat(n)
}

// cpus returns the number of processors of the kernel.
func (g *generator) cpus() int64 {
	if g.c.k != nil && g.c.k.CPUs > 0 {
		return int64(g.c.k.CPUs)
	}
	return 1
}

// recordText is a record in words.
func (s *Script) recordText(t *Type, list []string) string {
	var parts []string
	for i, v := range list {
		if s.json {
			parts = append(parts, `"`+t.Names[i]+`": `+v)
		} else {
			parts = append(parts, "."+t.Names[i]+" = "+v)
		}
	}
	return "{ " + strings.Join(parts, ", ") + " }"
}

//go:embed names.txt
var namesText string

// names maps numbers to names, by kind: those of system calls and those of signals, as bpftrace 0.27.1 prints them.
var names = sync.OnceValue(func() map[string]map[int64]string {
	m := map[string]map[int64]string{"syscall": {}, "signal": {}}
	for line := range strings.Lines(namesText) {
		f := strings.SplitN(strings.TrimSpace(line), " ", 3)
		if len(f) == 3 && m[f[0]] != nil {
			n, _ := strconv.ParseInt(f[1], 10, 64)
			m[f[0]][n] = f[2]
		}
	}
	return m
})

// nameCodeOf makes the function that names numbers of a kind; other stands for the ones without a name.
func nameCodeOf(kind, other string) *script.Builtin {
	return textual(kind+"_name", ints[:1], func(_ *script.Thread, a *script.Args, dst []byte) []byte {
		name, ok := names()[kind][a.Int[0]]
		if !ok {
			name = other
		}
		return append(dst, name...)
	})
}

var (
	syscallCode = nameCodeOf("syscall", "Unknown syscall")
	signalCode  = nameCodeOf("signal", "N/A")
	errorCode   = textual("strerror", ints[:1], func(_ *script.Thread, a *script.Args, dst []byte) []byte {
		return append(dst, errno.Errno(int32(a.Int[0])).Text()...)
	})
	usermodeCode = number("usermode", nil, func(t *script.Thread, _ *script.Args) int64 { return truth(system(t).User()) })
)
