package definition

import (
	"slices"
	"strconv"
	"strings"

	"kprobelab/errno"
)

// Arg is one argument of an event.
type Arg struct {
	// Name is the name of the record's field, Text the expression with its type
	// as it was written. kprobe_events reads both back.
	Name, Text string
	Type       *Type
	// Count is the number of elements of an array; 0 means that it is no array.
	Count int
	// Offset is the value's offset in bytes from the end of the record's fixed head.
	Offset int
	// Code fetches the value.
	Code []Op
}

// Size is the argument's size in the record, in bytes. Of a string it counts the
// __data_loc, not the text.
func (a *Arg) Size() int { return a.Type.Size * max(a.Count, 1) }

// Decl is the type in the format file.
func (a *Arg) Decl() string {
	if a.Count > 0 {
		return a.Type.Decl + "[" + strconv.Itoa(a.Count) + "]"
	}
	return a.Type.Decl
}

// MaxArgs bounds a definition's arguments (MAX_TRACE_ARGS).
const MaxArgs = 128

// The kernel's limits of an argument.
const (
	maxArgName  = 32 // MAX_ARG_NAME_LEN
	maxArrayLen = 64 // MAX_ARRAY_LEN
)

// reserved are the names of a record's own fields.
var reserved = []string{
	"common_type", "common_flags", "common_preempt_count", "common_pid", "common_tgid",
	"__probe_ip", "__probe_ret_ip", "__probe_func",
}

// field reads a word of the definition, which is its next argument
// (traceprobe_parse_probe_arg).
func (p *parser) field(d *Definition, word string) error {
	name, body, named := strings.Cut(word, "=")
	switch {
	case !named:
		name, body = p.defaultName(word, len(d.Args)), word
	case len(name) > maxArgName:
		return bad(0, ArgNameTooLong)
	case name == "":
		return bad(0, NoArgName)
	}
	if !isName(name, false) {
		return bad(0, BadArgName)
	}
	taken := func(a Arg) bool { return a.Name == name }
	if slices.Contains(reserved, name) || slices.ContainsFunc(d.Args, taken) {
		return bad(0, UsedArgName)
	}
	a, err := p.body(body, len(word)-len(body), d.Size)
	if err != nil {
		return err
	}
	a.Name = name
	d.Args = append(d.Args, *a)
	d.Size += a.Size()
	return nil
}

// defaultName returns argN; with BTF it returns the expression if that is a name.
func (p *parser) defaultName(word string, i int) string {
	if name, _, _ := strings.Cut(word, ":"); p.c.BTFArgs && isName(name, false) {
		return name
	}
	return "arg" + strconv.Itoa(i+1)
}

// body reads a fetch expression with its type (traceprobe_parse_probe_arg_body).
// offs is its place in the word; size is the record's size so far, in bytes.
func (p *parser) body(text string, offs, size int) (*Arg, error) {
	switch {
	case len(text) > p.c.MaxArgText && p.c.LongArgE2BIG:
		return nil, &fault{ArgTooLong, errno.E2BIG, offs}
	case len(text) > p.c.MaxArgText:
		return nil, bad(offs, ArgTooLong)
	case text == "":
		return nil, bad(offs, NoArgBody)
	}
	a := &Arg{Text: text, Offset: size}
	expr, typ, err := p.typed(a, text, offs)
	if err != nil {
		return nil, err
	}
	if !p.c.BTFArgs {
		if err := p.fits(a, size, offs); err != nil {
			return nil, err
		}
	}
	p.code, p.last, p.reached = newProgram(), nil, offs
	if err := p.fetch(expr, offs); err != nil {
		return nil, err
	}
	if p.c.BTFArgs {
		offs = p.reached
	}
	if err := p.fromBTF(a, typ, offs); err != nil {
		return nil, err
	}
	if err := p.fits(a, size, offs); err != nil {
		return nil, err
	}
	return a, p.store(a, typ, offs, typePlace(expr, typ, offs))
}

// fromBTF takes the type of a typed value, or prepares it to be fetched as text.
func (p *parser) fromBTF(a *Arg, typ string, offs int) error {
	switch {
	case p.last == nil:
		return nil
	case strings.Contains(typ, "string"):
		return p.asText(offs)
	case typ == "":
		if t := p.infer(); t != nil {
			a.Type = t
		}
	}
	return nil
}

// typePlace returns the place of the caret for a wrong type: the type's place, or
// the expression's if typ is "".
func typePlace(expr, typ string, offs int) int {
	if typ == "" {
		return offs
	}
	return offs + len(expr) + 1
}

// fits refuses an argument that makes the record larger than MaxRecord bytes.
func (p *parser) fits(a *Arg, size, offs int) error {
	if p.c.MaxRecord > 0 && size+a.Size() > p.c.MaxRecord {
		return &fault{EventTooBig, errno.E2BIG, offs}
	}
	return nil
}

// typed splits the type off the expression, and finds it.
func (p *parser) typed(a *Arg, text string, offs int) (expr, typ string, err error) {
	expr, typ, has := strings.Cut(text, ":")
	if has && p.c.ArgFetch {
		at := offs + len(expr) + 1
		if typ, err = p.array(a, typ, at); err != nil {
			return "", "", err
		}
	}
	place := offs
	if has {
		place += len(expr) + 1
	}
	if p.c.ArgFetch && isText(expr, p.c.CommUpper) {
		// The kernel's strcmp: a type of "" is not "string" either.
		if a.Count > 0 || has && typ != "string" {
			if p.c.StringTypeLogged {
				return "", "", bad(place, NeedStringType)
			}
			return "", "", bad(0, NotLogged)
		}
		a.Type = findType("string", p.c.Types)
		return expr, typ, nil
	}
	a.Type = defaultType(p.c.Types)
	if has {
		a.Type = findType(typ, p.c.Types)
	}
	if a.Type != nil && p.user && p.c.UserNoSymbols && (typ == "symbol" || typ == "symstr") {
		a.Type = nil
	}
	if a.Type == nil {
		return "", "", bad(place, BadType)
	}
	return expr, typ, nil
}

// isText reports whether the expression is a text by itself ($comm, \"…"), so
// that its type is string.
func isText(expr string, upper bool) bool {
	return expr == "$comm" || expr == "$COMM" && upper || strings.HasPrefix(expr, `\"`)
}

// array takes [count] off a type that stands at offs.
func (p *parser) array(a *Arg, text string, offs int) (string, error) {
	typ, rest, ok := strings.Cut(text, "[")
	if !ok {
		return text, nil
	}
	offs += len(typ) + 1
	count, suffix, closed := strings.Cut(rest, "]")
	if !closed {
		return "", bad(offs+len(rest), ArrayNoClose)
	}
	if suffix != "" {
		return "", bad(offs+len(count)+1, BadArraySuffix)
	}
	n, err := kstrtouint(count)
	if err != nil || n == 0 {
		return "", bad(offs, BadArrayNum)
	}
	if n > maxArrayLen {
		return "", bad(offs, ArrayTooBig)
	}
	a.Count = int(n)
	return typ, nil
}
