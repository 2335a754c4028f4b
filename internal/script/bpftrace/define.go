package bpftrace

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"kprobelab/internal/bounded"
	"kprobelab/internal/ctype"
	"kprobelab/internal/source"
)

// definer reads the structures, unions and enumerations that a script defines, in C. They go before
// the kernel's of the same name.
type definer struct {
	lines  *preprocessor
	kernel *source.File           // nil for none
	types  map[string]*ctype.Type // by their words and names, as "struct foo"
	whole  map[string]bool        // types whose members are known, not only the name
	values map[string]ctype.Enumerator
	of     map[string]*ctype.Type // the enumeration of each value
	list   []string
	at     int
	depth  int
}

// define reads the definitions that the preprocessor has left. The error names the first bad one's mistake.
func define(lines *preprocessor, kernel *source.File) (d *definer, err error) {
	d = &definer{lines: lines, kernel: kernel, types: map[string]*ctype.Type{}, whole: map[string]bool{}, values: map[string]ctype.Enumerator{}, of: map[string]*ctype.Type{}}
	for _, text := range lines.definitions {
		if err = d.definition(text); err != nil {
			break
		}
	}
	return d, err
}

// badC is an error of a definition.
type badC string

var cToken = regexp.MustCompile(`(?s)/\*.*?\*/|//[^\n]*|[A-Za-z_]\w*|\d\w*|\S`)

func (d *definer) definition(text string) (err error) {
	d.list, d.at, d.depth = d.list[:0], 0, 0
	for _, t := range cToken.FindAllString(text, -1) {
		if !strings.HasPrefix(t, "/*") && !strings.HasPrefix(t, "//") {
			d.list = append(d.list, t)
		}
	}
	defer func() {
		switch e := recover().(type) {
		case nil:
		case badC:
			err = fmt.Errorf("%s", string(e))
		default:
			panic(e)
		}
	}()
	d.tagged(d.next())
	return nil
}

func (d *definer) peek() string {
	if d.at < len(d.list) {
		return d.list[d.at]
	}
	return ""
}

func (d *definer) next() string {
	t := d.peek()
	if d.at++; t == "" {
		panic(badC("a definition ends too early"))
	}
	return t
}

func (d *definer) accept(t string) bool {
	if d.peek() != t {
		return false
	}
	d.at++
	return true
}

func (d *definer) want(t string) {
	if !d.accept(t) {
		panic(badC(fmt.Sprintf("expected '%s' before '%s'", t, d.peek())))
	}
}

func isName(t string) bool { return t != "" && identRE.FindString(t) == t }

// tagged reads the type after struct, union or enum: a name, a body, or both.
func (d *definer) tagged(word string) *ctype.Type {
	name := ""
	if isName(d.peek()) && d.peek() != "__attribute__" {
		name = d.next()
	}
	d.attributes()
	if !d.accept("{") {
		return d.known(word + " " + name)
	}
	if d.depth++; d.depth > bounded.BpftraceNesting {
		panic(badC("structures are nested too deep"))
	}
	key := word + " " + name
	if d.whole[key] {
		panic(badC(fmt.Sprintf("redefinition of '%s'", name)))
	}
	t := &ctype.Type{Kind: ctype.Struct, Name: name}
	if name != "" {
		if d.types[key] == nil {
			d.types[key] = t // it can point to itself
		}
		t, d.whole[key] = d.types[key], true
	}
	switch word {
	case "enum":
		*t = *d.enumeration(name, t)
	case "union":
		*t = *ctype.Compose(ctype.Union, name, d.fields())
	default:
		*t = *ctype.Compose(ctype.Struct, name, d.fields())
	}
	if t.Size() > bounded.DefinitionSize {
		panic(badC(fmt.Sprintf("%s is larger than %d bytes", t, bounded.DefinitionSize)))
	}
	d.depth--
	d.attributes()
	return t
}

// attributes skips __attribute__ and its arguments.
func (d *definer) attributes() {
	for d.accept("__attribute__") {
		d.round()
	}
}

// round skips a text in parentheses.
func (d *definer) round() {
	d.want("(")
	for depth := 1; depth > 0; {
		switch d.next() {
		case "(":
			depth++
		case ")":
			depth--
		}
	}
}

func (d *definer) enumeration(name string, t *ctype.Type) *ctype.Type {
	var values []ctype.Enumerator
	v := int64(0)
	for !d.accept("}") {
		one := d.next()
		if !isName(one) {
			panic(badC("expected identifier"))
		}
		if d.accept("=") {
			v = d.number()
		}
		if _, ok := d.values[one]; ok {
			panic(badC(fmt.Sprintf("redefinition of enumerator '%s'", one)))
		}
		e := ctype.Enumerator{Name: one, Value: v}
		values = append(values, e)
		d.values[one], d.of[one] = e, t
		v++
		if !d.accept(",") && d.peek() != "}" {
			panic(badC("missing ',' between enumerators"))
		}
	}
	return ctype.EnumOf(name, values)
}

// number reads a constant expression, up to the token that ends it.
func (d *definer) number() int64 {
	c := &condition{list: d.list[min(d.at, len(d.list)):], name: d.constant}
	v := c.value(0)
	d.at += c.at
	if c.bad != "" {
		panic(badC(c.bad))
	}
	return v
}

// constant returns the value of a name in a definition: an enumerator's or a macro's. false means that it has none.
func (d *definer) constant(name string) (int64, bool) {
	if e, ok := d.values[name]; ok {
		return e.Value, true
	}
	return d.lines.constant(name)
}

func (d *definer) fields() (list []ctype.Field) {
	for !d.accept("}") {
		if d.accept(";") {
			continue
		}
		t := d.specifiers()
		if d.peek() == ";" { // of a structure without a name the members are this one's; all else declares none
			if t.Kind == ctype.Struct || t.Kind == ctype.Union {
				if t.Name == "" {
					for _, m := range t.Members() {
						unique(list, m.Name)
					}
					list = append(list, ctype.Field{Type: t})
				}
			}
			continue
		}
		if d.peek() == "}" {
			panic(badC("expected member name or ';' after declaration specifiers"))
		}
		for {
			f := d.declarator(t)
			unique(list, f.Name)
			list = append(list, f)
			if !d.accept(",") {
				break
			}
		}
		if !d.accept(";") && d.peek() != "}" {
			panic(badC(fmt.Sprintf("expected ';' before '%s'", d.peek())))
		}
		if len(list) > bounded.DefinitionFields {
			panic(badC("a structure has too many members"))
		}
	}
	return list
}

// unique refuses a member's name that is there, in a structure without a name, too.
func unique(list []ctype.Field, name string) {
	for _, f := range list {
		within := false
		if f.Name == "" && f.Type.Composite() {
			_, within = f.Type.Member(name)
		}
		if name != "" && (f.Name == name || within) {
			panic(badC(fmt.Sprintf("duplicate member '%s'", name)))
		}
	}
}

var arithmetic = []string{"unsigned", "signed", "long", "short", "int", "char", "_Bool", "bool", "float", "double"}

// specifiers reads the type with which a declaration begins.
func (d *definer) specifiers() *ctype.Type {
	words := map[string]int{}
	for {
		d.attributes()
		switch t := d.peek(); {
		case t == "const" || t == "volatile" || t == "restrict":
			d.at++
		case slices.Contains(arithmetic, t):
			words[d.next()]++
			if !combine(words) {
				panic(badC(fmt.Sprintf("cannot combine '%s' with the words before", t)))
			}
		case len(words) > 0:
			return base(words)
		case t == "struct" || t == "union" || t == "enum":
			return d.tagged(d.next())
		case t == "void":
			d.at++
			return &ctype.Type{Kind: ctype.Void, Name: "void"}
		case isName(t):
			d.at++
			return d.known(t)
		default:
			panic(badC(fmt.Sprintf("expected a type before '%s'", t)))
		}
	}
}

// combine reports whether words make one arithmetic type (C11, 6.7.2).
func combine(words map[string]int) bool {
	kinds := 0
	for _, w := range []string{"char", "int", "_Bool", "bool", "float", "double"} {
		kinds += words[w]
	}
	long, short, sign := words["long"], words["short"], words["signed"]+words["unsigned"]
	switch {
	case kinds > 1 || long > 2 || short > 1 || sign > 1 || long > 0 && short > 0:
		return false
	case words["_Bool"]+words["bool"]+words["float"] > 0:
		return long+short+sign == 0
	case words["double"] > 0:
		return long < 2 && short+sign == 0
	}
	return words["char"] == 0 || long+short == 0
}

func base(words map[string]int) *ctype.Type {
	t := &ctype.Type{Kind: ctype.Base, Bytes: 4, Name: "int", Signed: words["unsigned"] == 0}
	switch {
	case words["char"] > 0:
		t.Bytes, t.Name, t.Char = 1, "char", words["unsigned"]+words["signed"] == 0
	case words["bool"]+words["_Bool"] > 0:
		t.Bytes, t.Name, t.Signed = 1, "_Bool", false
	case words["short"] > 0:
		t.Bytes, t.Name = 2, "short"
	case words["double"] > 0:
		t.Bytes, t.Name, t.Float = 8, "double", true
	case words["float"] > 0:
		t.Name, t.Float = "float", true
	case words["long"] > 0:
		t.Bytes, t.Name = 8, "long"
	}
	if !t.Signed && t.Name != "_Bool" {
		t.Name = "unsigned " + t.Name
	}
	return t
}

// sizes are integers' types that need no kernel to be known, and are no characters.
var sizes = regexp.MustCompile(`^(?:__)?(u|s|uint|int)(8|16|32|64)(?:_t)?$`)

// known is a type by its name: the script's, the kernel's, or one of C's libraries'.
func (d *definer) known(name string) *ctype.Type {
	if t := d.types[name]; t != nil {
		return t
	}
	if m := sizes.FindStringSubmatch(name); m != nil {
		bits, _ := strconv.ParseInt(m[2], 10, 64)
		return &ctype.Type{Kind: ctype.Base, Name: name, Bytes: bits / 8, Signed: m[1] == "s" || m[1] == "int"}
	}
	word, plain, tagged := strings.Cut(name, " ")
	if !tagged {
		plain = name
	}
	if d.kernel != nil {
		find := d.kernel.Named
		if tagged {
			find = func(name string) (*ctype.Type, error) { return d.kernel.Tagged(tags[word], name) }
		}
		if t, err := find(plain); err == nil && (tagged || !t.Composite() && t.Kind != ctype.Enum) {
			return t
		}
	}
	switch {
	case word == "enum":
		return ctype.EnumOf(plain, nil)
	case tagged: // a pointer to it can be had
		d.types[name] = &ctype.Type{Kind: ctype.Struct, Name: plain}
		return d.types[name]
	case name == "size_t" || name == "uintptr_t":
		return &ctype.Type{Kind: ctype.Base, Name: name, Bytes: 8}
	case name == "ssize_t" || name == "intptr_t" || name == "off_t":
		return &ctype.Type{Kind: ctype.Base, Name: name, Bytes: 8, Signed: true}
	case name == "pid_t":
		return &ctype.Type{Kind: ctype.Base, Name: name, Bytes: 4, Signed: true}
	}
	panic(badC(fmt.Sprintf("unknown type name '%s'", name)))
}

// parameters reads what a pointer's function is called with: types that have to be known, and no more
// of them than that.
func (d *definer) parameters() {
	d.want("(")
	for !d.accept(")") {
		if d.accept(".") { // of three
			continue
		}
		d.specifiers()
		for depth := 0; depth > 0 || d.peek() != "," && d.peek() != ")"; {
			switch t := d.next(); {
			case t == "(" || t == "[":
				depth++
			case t == ")" || t == "]":
				depth--
			case depth == 0 && t != "*" && !isName(t):
				panic(badC("expected ')'"))
			}
		}
		d.accept(",")
	}
}

func (d *definer) declarator(t *ctype.Type) (f ctype.Field) {
	for d.accept("*") {
		t = ctype.PointerTo(t)
		for d.accept("const") || d.accept("volatile") || d.accept("restrict") || d.accept("__restrict") {
		}
	}
	d.attributes()
	function := d.accept("(") // a pointer to a function
	if function {
		d.want("*")
		t = ctype.PointerTo(&ctype.Type{Kind: ctype.Void, Name: "void"})
	}
	if isName(d.peek()) && tags[d.peek()] == ctype.Void {
		f.Name = d.next()
	} else if d.peek() != ":" {
		panic(badC(fmt.Sprintf("expected member name before '%s'", d.peek())))
	}
	var counts []int64
	for d.accept("[") {
		n := int64(0)
		if d.peek() != "]" {
			n = d.number()
		} else {
			t = &ctype.Type{Kind: ctype.Base} // bpftrace knows no arrays of no size
		}
		d.want("]")
		if n < 0 {
			panic(badC(fmt.Sprintf("'%s' declared as an array with a negative size", f.Name)))
		}
		if n > bounded.DefinitionSize {
			panic(badC("an array is too large"))
		}
		counts = append(counts, n)
	}
	if function {
		d.want(")")
		d.parameters()
	}
	for _, n := range slices.Backward(counts) {
		t = ctype.ArrayOf(t, n)
		if t.Size() > bounded.DefinitionSize {
			panic(badC("an array is too large"))
		}
	}
	if f.Type = t; d.accept(":") {
		n := d.number()
		if r := t.Real(); r.Kind != ctype.Base && r.Kind != ctype.Enum || n < 0 || n > 8*r.Size() {
			panic(badC("the width of a bit-field is wrong"))
		}
		f.Wide, f.Bits = true, int(n)
	} else if r := t.Real(); r.Composite() && r.Size() == 0 && len(r.Members()) == 0 {
		panic(badC(fmt.Sprintf("field has incomplete type '%s'", t)))
	} else if r.Kind == ctype.Void {
		panic(badC("field has incomplete type 'void'"))
	}
	d.attributes()
	return f
}
