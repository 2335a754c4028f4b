package bpftrace

import (
	"fmt"
	"slices"
	"strings"

	"kprobelab/internal/bounded"
	"kprobelab/internal/ctype"
	"kprobelab/internal/script/host"
	"kprobelab/internal/source"
)

// Options holds the settings of the command line and the environment with which a script is read.
type Options struct {
	// Args are the positional parameters.
	Args []string
	// Unsafe allows what only --unsafe allows.
	Unsafe bool
	// Command: -c names a program, and the script waits for its start.
	Command bool
	// Program is the program of -c, as the command line names it.
	Program string
	// JSON: the output is JSON.
	JSON bool
	// Env are variables of the environment, NAME=VALUE; the BPFTRACE_ ones are settings.
	Env []string
	// NoWarnings leaves out the warnings about BPF's functions that fail.
	NoWarnings bool
	// Language is the version of the language.
	Language Language
	// Named are the named parameters, NAME=VALUE or NAME, which getopt() reads.
	Named []string
}

// variable is a scratch variable.
type variable struct {
	name      string
	typ       *Type
	resizable bool
	assigned  bool
	// flexible: only positive numbers of the script have been assigned.
	flexible bool
	declared *node
	slot     int
}

// array is a map.
type array struct {
	name     string
	key, val *Type // nil: not known yet
}

// scope is a block: variables of it are known in it and in those inside.
type scope struct {
	of    *node
	probe *probe
	other bool
}

// checker finds the types of a script, in passes. A variable that is used before its assignment
// gets its type in the next pass.
type checker struct {
	o        *Options
	k        *Kernel
	t        *tree
	problems *Problems

	lines *preprocessor
	// traced are the functions that patterns can fit, eventNames the names of all events.
	traced      traced
	eventNames  []string
	formatNames map[string]bool
	// listing: the points are only listed, not attached.
	listing bool

	config map[string]string
	// defined are the types that the script defines.
	defined *definer
	maxStr  int
	keys    int
	// sizes are the most elements of the maps that the script declares.
	sizes map[string]int

	maps   map[string]*array
	order  []*array
	vars   map[scope]map[string]*variable
	scopes []scope
	slots  map[*probe][]*variable

	pass, unresolved int
	final            bool
	loops            int
	// looping is the number of for-loops around a statement.
	looping  int
	call     string
	argument int
	probe    *probe
	seen     map[string]bool
	// enums are the kernel's enumerations of which the script uses a value. bpftrace does not know the others.
	enums      map[string]bool
	positional bool
	// sargs: the script uses sargN.
	sargs bool
}

func (c *checker) error(at span, format string, a ...any) {
	c.problems.list = append(c.problems.list, &Problem{Message: strings.TrimSuffix(fmt.Sprintf(format, a...), "\n"), at: at})
}

// hint says what could be meant, in a message of its own.
func (c *checker) hint(at span, format string, a ...any) {
	c.problems.list = append(c.problems.list, &Problem{Message: fmt.Sprintf(format, a...), at: at, hinting: true})
}

// plain notes an error without a place.
func (c *checker) plain(format string, a ...any) {
	c.problems.list = append(c.problems.list, &Problem{Message: fmt.Sprintf(format, a...), free: true})
}

// missed warns of a part of a block that is left out, unless the script says that it need not
// be there.
func (c *checker) missed(format string, a ...any) {
	c.problems.warnings = append(c.problems.warnings, &Problem{Warning: true, free: true, Message: fmt.Sprintf(format, a...)})
}

func (c *checker) errors() int { return len(c.problems.list) }

// points reads the attach points. Those that a pattern of providers means follow the others
// of their block.
func (c *checker) points() {
	for _, p := range c.t.probes {
		var list, more []*point
		add := func(pt *point) {
			if err := c.readPoint(pt); err != "" {
				c.error(pt.at, "%s", err)
			}
			if !pt.skip {
				list = append(list, pt)
			}
		}
		for _, pt := range p.points {
			pattern, rest, ok := strings.Cut(pt.raw, ":")
			if !wild(pattern) {
				add(pt)
				continue
			}
			if !ok {
				rest = pattern
			}
			switch names := expandProvider(pattern, rest, ok); {
			case len(names) == 0:
				c.error(pt.at, "No probe type matched for %s", pattern)
			case len(names) == 1:
				pt.raw = names[0] + ":" + rest
				add(pt)
			default:
				for _, name := range names {
					more = append(more, &point{raw: name + ":" + rest, at: pt.at, optional: true})
				}
			}
		}
		for _, pt := range more {
			add(pt)
		}
		if len(list) == 0 {
			c.error(p.at, "No attach points for probe")
		}
		p.points = list
	}
}

// The providers that patterns of them mean, in the tool's order.
var (
	kernelProviders  = []string{"fentry", "hardware", "iter", "kprobe", "rawtracepoint", "software", "tracepoint"}
	programProviders = []string{"uprobe", "usdt"}
)

// expandProvider returns the providers that a pattern means. If a path follows the pattern, it
// returns providers of programs' probes.
func expandProvider(pattern, rest string, more bool) []string {
	if !more {
		pattern = "*"
	}
	if file, _, _ := strings.Cut(rest, ":"); more && strings.Contains(file, "/") {
		return fitting(pattern, programProviders)
	}
	return fitting(pattern, kernelProviders)
}

// settings maps the names that a config block can set to the types of their values.
var settings = map[string]string{
	"cache_user_symbols": "string", "cpp_demangle": "bool", "lazy_symbolication": "bool", "log_size": "int", "max_bpf_progs": "int",
	"max_cat_bytes": "int", "max_map_keys": "int", "max_probes": "int", "max_strlen": "int", "max_type_res_iterations": "int",
	"missing_probes": "string", "on_stack_limit": "int", "perf_rb_pages": "int", "print_maps_on_exit": "bool", "probe_inline": "bool",
	"stack_mode": "stack_mode", "str_trunc_trailer": "string", "symbol_source": "string", "use_blazesym": "bool",
}

// choice is a setting with a few values; say names them as bpftrace does. The value keeps leaves the setting as it is.
type choice struct {
	values []string
	say    string
	keeps  string
}

func (c *choice) takes(value string) bool {
	return slices.Contains(c.values, value) || c.keeps != "" && value == c.keeps
}

func (c *choice) refusal(name string) string {
	return "Invalid value for " + name + ": valid values are " + c.say + "."
}

// choices are the settings whose values are words.
var choices = map[string]*choice{
	"missing_probes":     {values: []string{"ignore", "warn", "error"}, say: `"ignore", "warn", and "error"`},
	"cache_user_symbols": {values: []string{"PER_PID", "PER_PROGRAM", "NONE", "0"}, say: "PER_PID, PER_PROGRAM, and NONE", keeps: "1"},
	"symbol_source":      {values: []string{"dwarf", "symbol_table"}, say: `"dwarf" and "symbol_table"`},
}

func (c *checker) configure() {
	set := map[string]bool{}
	for name := range c.config { // by the environment
		set[name] = true
	}
	for _, s := range c.t.config {
		name := strings.TrimPrefix(strings.ToLower(s.name), "bpftrace_")
		want, ok := settings[name]
		if c.o.Language.newest() {
			want, ok = c.newestSetting(name, s.value)
		}
		switch v := s.value; {
		case !ok:
			c.error(s.at, "Unrecognized config variable: %s", s.name)
		case !v.literal():
			c.error(s.at, "Assignment for %s must be literal.", s.name)
		case literalKind(v) != literal(want):
			c.error(s.at, "Invalid type for %s. Type: %s. Expected Type: %s", s.name, literalKind(v), literal(want))
		case want == "bool" && v.num > 1:
			c.plainAtOnce("Invalid value for %s. Needs to be 0 or 1. Value: %d", s.name, int64(v.num))
		case choices[name] != nil && !choices[name].takes(v.text):
			c.plain("%s", choices[name].refusal(name))
			c.error(v.at, "") // bpftrace has no words for the place
		case choices[name] != nil && v.text == choices[name].keeps:
		case set[name] && choices[name] != nil:
			c.error(v.at, "") // nor for a second value of these
		case set[name]:
			// The first value counts.
		default:
			set[name] = true
			c.config[name] = v.text
			if v.op == nInt {
				c.config[name] = fmt.Sprint(v.num)
				c.limit(name, uint64(v.num))
			}
		}
	}
}

// limit sets what a setting bounds.
func (c *checker) limit(name string, n uint64) {
	switch name {
	case "max_strlen":
		c.maxStr = int(min(max(n, 1), 1<<14))
	case "max_map_keys":
		c.keys = int(min(max(n, 1), 1<<20))
	}
}

// literal is the type of a setting's value.
func literal(want string) string {
	if want == "bool" {
		return "int"
	}
	return want
}

func literalKind(n *node) string {
	switch n.op {
	case nInt:
		return "int"
	case nString:
		return "string"
	case nStackMode:
		return "stack_mode"
	}
	return "none"
}

// check finds all types.
func (c *checker) check() {
	c.maps, c.vars = map[string]*array{}, map[scope]map[string]*variable{}
	var kernel *source.File
	if c.k != nil {
		kernel = c.k.Source
	}
	var err error
	if c.defined, err = define(c.lines, kernel); err != nil {
		c.problems.list = append(c.problems.list, &Problem{Message: "definitions: " + err.Error(), free: true})
	}
	if c.points(); c.errors() == 0 {
		c.configure()
	}
	for _, f := range c.t.functions {
		c.error(f.at, "fn %s: functions of the script's own are not there", f.text)
	}
	if c.errors() > 0 {
		return
	}
	if c.expand(); c.errors() > 0 {
		return
	}
	c.findEnums()
	last := 0
	for c.pass = 1; ; c.pass++ {
		c.unresolved, c.seen = 0, map[string]bool{}
		for _, p := range c.t.probes {
			c.block(p)
		}
		if c.errors() > 0 || c.final {
			return
		}
		if c.unresolved == 0 || last != 0 && c.unresolved >= last || c.pass > bounded.BpftracePasses {
			c.final = true
		}
		last = c.unresolved
	}
}

// findEnums finds the enumerations of the kernel's of which the script has a value, wherever the value stands.
func (c *checker) findEnums() {
	c.enums = map[string]bool{}
	named := func(n *node) {
		if n.op != nIdent {
			return
		}
		if _, enum, ok := c.enumerator(n.text); ok {
			c.enums[enum.Name] = true
		}
	}
	for _, p := range c.t.probes {
		p.pred.each(named)
		for _, n := range p.body {
			n.each(named)
		}
	}
}

func (c *checker) block(p *probe) {
	c.probe = p
	for _, pt := range p.points {
		if len(p.points) > 1 && pt.provider == "iter" {
			c.error(pt.at, "Only single iter attach point is allowed.")
			return
		}
		c.checkPoint(pt)
		if c.pass == 1 && c.errors() == 0 {
			c.resolve(pt)
		}
	}
	if p.pred != nil {
		t := c.expr(p.pred)
		if c.final && !t.isInt() && t.Kind != Pointer {
			c.error(p.predAt, "Invalid type for predicate: %s", t.kind())
		}
	}
	c.body(scope{probe: p}, p.body)
}

func (c *checker) body(s scope, list []*node) {
	c.scopes = append(c.scopes, s)
	for i, n := range list {
		c.statement(n)
		c.warnUnreachable(n, i < len(list)-1)
	}
	c.scopes = c.scopes[:len(c.scopes)-1]
}

func (c *checker) find(name string) *variable {
	for _, s := range c.scopes {
		if v := c.vars[s][name]; v != nil {
			return v
		}
	}
	return nil
}

func (c *checker) declare(s scope, v *variable) *variable {
	if c.vars[s] == nil {
		c.vars[s] = map[string]*variable{}
	}
	c.vars[s][v.name] = v
	return v
}

func (c *checker) inner() scope { return c.scopes[len(c.scopes)-1] }

// slot makes room for a variable in its probe's handlers.
func (c *checker) slot(v *variable) {
	if c.slots == nil {
		c.slots = map[*probe][]*variable{}
	}
	v.slot = len(c.slots[c.probe])
	c.slots[c.probe] = append(c.slots[c.probe], v)
}

func (c *checker) array(name string) *array {
	a := c.maps[name]
	if a == nil {
		a = &array{name: name}
		c.maps[name] = a
		c.order = append(c.order, a)
	}
	return a
}

// named returns the type that the script names, and whether it is known. An unknown type has its name and size 0.
func (c *checker) named(ct *typeName) (t *Type, known bool) {
	known = true
	if c.o.Language.newest() {
		if t, known := c.newestNamed(ct); t != nil {
			return t, known
		}
	}
	switch k := words[ct.name]; k {
	case tIntType:
		size := 1
		switch {
		case ct.name != "bool":
			fmt.Sscanf(strings.TrimLeft(ct.name, "uint"), "%d", &size)
			size /= 8
		case ct.stars == 0 && !ct.sized && !ct.unsized:
			size = 0 // as in the tool, which dies of a value of that size
		}
		t = integer(size, ct.name[0] == 'i')
	case tBuiltinType, tBuiltin:
		t = declared(ct.name)
	case tSizedType:
		t = &Type{Kind: map[string]Kind{"string": String, "inet": Inet, "buffer": Buffer}[ct.name], Size: int(min(ct.size, 1<<14))}
	default:
		t, known = c.cType(ct)
	}
	if words[ct.name] != tSizedType && (ct.sized || ct.unsized) {
		n := int(min(ct.size, 1<<12))
		t = &Type{Kind: Array, Elem: t, N: n, Size: n * t.Size}
	}
	for range ct.stars {
		t = &Type{Kind: Pointer, Size: 8, Elem: t}
	}
	return t, known
}

// declaredKinds maps the words for bpftrace's own types to their kinds. Its other words for types mean no type.
var declaredKinds = map[string]Kind{
	"void": Void, "min_t": Min, "max_t": Max, "sum_t": Sum, "count_t": Count, "avg_t": Avg, "stats_t": Stats,
	"timestamp": Timestamp, "macaddr_t": Mac, "cgroup_path_t": CgroupPath, "strerror_t": Strerror,
}

// declared returns the type of a word for one of bpftrace's own types. A u before an aggregate's word makes it unsigned.
func declared(word string) *Type {
	kind, ok := declaredKinds[word]
	signed := true
	if !ok {
		kind, signed = declaredKinds[strings.TrimPrefix(word, "u")], false
		if kind < Count {
			return none
		}
	}
	if kind == Void {
		return &Type{Kind: Void}
	}
	return &Type{Kind: kind, Size: 8, Signed: signed}
}

// tags are the words before the names of types.
var tags = map[string]ctype.Kind{"struct": ctype.Struct, "union": ctype.Union, "enum": ctype.Enum}

// cType returns a structure, a union or an enumeration of the script or the kernel. As in bpftrace, the word struct,
// union or enum is needed. The kernel's typedefs are known if they name a structure without a name of its own.
func (c *checker) cType(ct *typeName) (t *Type, known bool) {
	word, name, _ := strings.Cut(ct.name, " ")
	if key := word + " " + name; c.defined.whole[key] {
		return fromC(c.defined.types[key]), true
	}
	if c.k != nil && c.k.Source != nil {
		kind, tagged := tags[word]
		if !tagged {
			kind, name = ctype.Typedef, word
		}
		if t, err := c.k.Source.Tagged(kind, name); err == nil && (tagged || t.Real().Composite() && t.Real().Name == "") {
			one := fromC(t)
			if one.Kind == Record && one.C.Kind == ctype.Struct && one.C.Name == "" {
				one.Name = ct.name
			}
			return one, true
		}
	}
	if word == "enum" {
		return &Type{Kind: Integer, Size: 8, Name: name}, false
	}
	return &Type{Kind: Record, Name: ct.name}, false
}

// intAlias has the tool's names of C's integers.
var intAlias = map[string]string{"char": "int8", "short": "int16", "int": "int32", "long": "int64"}

// only returns the provider of the probe's points, "" if they have several.
func (c *checker) only() string {
	p := ""
	for _, pt := range c.probe.points {
		if p != "" && pt.provider != p {
			return ""
		}
		p = pt.provider
	}
	return p
}

// first returns a probe that stands for all probes of the block, nil if none is known.
func (c *checker) first() *host.Probe {
	for _, pt := range c.probe.points {
		if len(pt.probes) > 0 {
			return pt.probes[0]
		}
	}
	return nil
}
