package perfprobe

import (
	"fmt"
	"strconv"
	"strings"

	"kprobelab/internal/source"
	"kprobelab/internal/tracing/definition"
)

// Probe is a probe as perf probe's command line has it (perf-probe(1), PROBE SYNTAX).
type Probe struct {
	// Group and Event are "" if the probe names none.
	Group, Event string
	Where        source.Where
	// Address is an absolute address, Absolute whether one was given.
	Address  uint64
	Absolute bool
	Args     []Arg
	text     string
}

// Arg is an argument.
type Arg struct {
	// Name is "" if the argument has no NAME=.
	Name string
	// Var is a variable's name, or text that is passed on: a register, $retval, @symbol.
	Var    string
	Fields []Field
	// Type is the type after the colon, "" for none. User: "@user" follows.
	Type string
	User bool
}

// Field is a step from a variable to a part of it.
type Field struct {
	Name  string
	Arrow bool
	// Element is for "[Index]".
	Element bool
	Index   int64
}

// SyntaxError reports a text that is no probe.
type SyntaxError struct{ What string }

func (e *SyntaxError) Error() string { return e.What }

func wrong(format string, a ...any) error { return &SyntaxError{fmt.Sprintf(format, a...)} }

// The words that stand for several variables.
const (
	allParams = "$params"
	allVars   = "$vars"
)

// Parse reads a probe: [[GROUP:]EVENT=]FUNC[@FILE][+OFF|:LINE|%return] or
// [[GROUP:]EVENT=]FILE:LINE, then arguments.
func Parse(l definition.Line) (*Probe, error) {
	words := l.Words
	if len(words) == 0 {
		return nil, wrong("no probe is given")
	}
	if len(words)-1 > definition.MaxArgs {
		return nil, wrong("a probe has at most %d arguments", definition.MaxArgs)
	}
	p := &Probe{text: l.Text}
	if err := p.point(words[0]); err != nil {
		return nil, err
	}
	if p.Event == "" && p.Where.Function != "" && p.Where.Line != 0 && p.Where.Offset == 0 {
		p.Event = fmt.Sprintf("%s_L%d", p.Where.Function, p.Where.Line)
	}
	for _, w := range words[1:] {
		a, err := parseArg(w)
		if err != nil {
			return nil, err
		}
		if p.Where.Return && isName(a.Var) {
			return nil, wrong("%s: a return probe sees no local variables, but $retval", w)
		}
		p.Args = append(p.Args, a)
	}
	return p, nil
}

// ParsePlace reads a place alone.
func ParsePlace(text string) (*Probe, error) {
	l := definition.ReadLine(text)
	if len(l.Words) != 1 {
		return nil, wrong("%q is no place: FUNC[@FILE][+OFF|:LINE] or FILE:LINE", text)
	}
	return Parse(l)
}

func (p *Probe) point(s string) error {
	if i := strings.IndexAny(s, ";=@+%"); i >= 0 && s[i] == '=' {
		if err := p.name(s[:i]); err != nil {
			return err
		}
		s = s[i+1:]
	}
	if strings.ContainsAny(s, ";") {
		return wrong("patterns of source lines (;) are not known here")
	}
	end := strings.IndexAny(s, ":+@%")
	head, rest := s, ""
	if end >= 0 {
		head, rest = s[:end], s[end:]
	}
	w := &p.Where
	if !strings.ContainsAny(s, "+@%") && end >= 0 && strings.Contains(head, ".") {
		w.File = head
	} else {
		w.Function = head
	}
	if strings.HasPrefix(w.Function, "0x") {
		n, err := strconv.ParseUint(w.Function, 0, 64)
		if err != nil {
			return wrong("%s is no address", w.Function)
		}
		p.Address, p.Absolute = n, true
	}
	for rest != "" {
		kind := rest[0]
		part := rest[1:]
		if next := strings.IndexAny(part, ":+@%"); next >= 0 {
			part, rest = part[:next], part[next:]
		} else {
			rest = ""
		}
		if err := p.option(kind, part); err != nil {
			return err
		}
	}
	return check(*w, s)
}

// option reads what follows a function's or a file's name.
func (p *Probe) option(kind byte, part string) error {
	w := &p.Where
	switch kind {
	case ':':
		n, err := strconv.ParseUint(part, 0, 31)
		if err != nil {
			return wrong("%q is no line number", part)
		}
		w.Line = int(n)
	case '+':
		n, err := strconv.ParseUint(part, 0, 64)
		if err != nil {
			return wrong("%q is no offset", part)
		}
		w.Offset = n
	case '@':
		switch {
		case w.File != "":
			return wrong("two files are named")
		case part == "":
			return wrong("a file's name is missing after @")
		}
		w.File = part
	case '%':
		if part != "return" {
			return wrong("%%%s is not known; %%return is", part)
		}
		w.Return = true
	}
	return nil
}

// name reads [GROUP:]EVENT.
func (p *Probe) name(s string) error {
	group, event, both := strings.Cut(s, ":")
	if !both {
		group, event = "", s
	}
	if both && !definition.IsName(group) || !definition.IsName(event) {
		return wrong("%s is no name for an event: letters, digits and _, no digit first", s)
	}
	p.Group, p.Event = group, event
	return nil
}

func check(w source.Where, s string) error {
	switch {
	case w.Function == "" && w.File == "":
		return wrong("%s names no function and no file", s)
	case w.Line != 0 && w.Offset != 0:
		return wrong("%s: an offset and a line exclude each other", s)
	case w.Line == 0 && w.Function == "":
		return wrong("%s: a file needs a line", s)
	case w.Return && (w.Offset != 0 || w.Line != 0):
		return wrong("%s: a return probe is at the whole function, without offset or line", s)
	}
	return nil
}

// parseArg reads [NAME=]VAR[->FIELD|.FIELD|[N]]...[:TYPE][@user].
func parseArg(s string) (a Arg, err error) {
	whole := s
	if i := strings.IndexByte(s, '='); i >= 0 {
		a.Name, s = s[:i], s[i+1:]
	}
	if i := strings.IndexByte(s, '@'); i > 0 && s[i+1:] == "user" {
		a.User, s = true, s[:i]
	}
	if i := strings.IndexByte(s, ':'); i >= 0 {
		a.Type, s = s[i+1:], s[:i]
	}
	at := strings.IndexAny(s, steps)
	if !isName(s) || at < 0 {
		a.Var = s
		if s == "" {
			return a, wrong("%q is no argument", whole)
		}
		return a, nil
	}
	a.Var = s[:at]
	if a.Fields, err = parseFields(whole, s[at:]); err != nil || a.Name != "" {
		return a, err
	}
	a.Name = a.Var
	for _, f := range a.Fields {
		if !f.Element {
			a.Name = f.Name
		}
	}
	return a, nil
}

// parseFields reads the steps into a variable of an argument.
func parseFields(whole, rest string) (list []Field, err error) {
	for rest != "" {
		var f Field
		switch {
		case rest[0] == '[':
			f, rest, err = parseElement(whole, rest)
		case rest[0] == '.':
			f.Name, rest, err = parseMember(whole, rest[1:])
		case strings.HasPrefix(rest, "->"):
			f.Arrow = true
			f.Name, rest, err = parseMember(whole, rest[2:])
		default:
			err = wrong("%s: a single - is no operator here", whole)
		}
		if err != nil {
			return nil, err
		}
		list = append(list, f)
	}
	return list, nil
}

// steps are the bytes with which a step begins.
const steps = "-.["

func parseElement(whole, s string) (f Field, rest string, err error) {
	end := strings.IndexByte(s, ']')
	if end < 0 {
		return f, "", wrong("%s: a ] is missing", whole)
	}
	if f.Index, err = strconv.ParseInt(s[1:end], 0, 64); err != nil {
		return f, "", wrong("%s: an index is a number", whole)
	}
	f.Element, f.Arrow, f.Name, rest = true, true, s[:end+1], s[end+1:]
	if rest != "" && strings.IndexByte(steps, rest[0]) < 0 {
		return f, "", wrong("%s: %q follows an index", whole, rest)
	}
	return f, rest, nil
}

func parseMember(whole, s string) (name, rest string, err error) {
	end := strings.IndexAny(s, steps)
	if end < 0 {
		end = len(s)
	}
	if end == 0 {
		return "", "", wrong("%s: a member's name is missing", whole)
	}
	return s[:end], s[end:], nil
}

// isName reports whether text begins as a name in C does (is_c_varname).
func isName(s string) bool {
	return s != "" && (s[0] == '_' || s[0] >= 'a' && s[0] <= 'z' || s[0] >= 'A' && s[0] <= 'Z')
}
