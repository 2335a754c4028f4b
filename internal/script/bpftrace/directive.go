package bpftrace

import (
	_ "embed" // headers.txt
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"kprobelab/internal/bounded"
)

// preprocessor follows a script's lines for the C preprocessor. What bpftrace's compiler refuses of them is
// refused; #define gives macros, and conditions say which of them and of the definitions there are.
type preprocessor struct {
	open []conditional
	// macros has the texts of macros without parameters. defined is true for the names of all macros.
	macros  map[string]string
	defined map[string]bool
	// headers: the script includes a header.
	headers bool
	// depth is the number of macros that are being computed, one inside another.
	depth int
	// definitions are the structures, unions and enumerations.
	definitions []string
}

// conditional is an #if that has no #endif yet.
type conditional struct {
	// over: #else was read. taken: the condition of an earlier or of this branch was true. skips: this branch
	// is left out. around: the whole #if is left out.
	over, taken, skips, around bool
}

// predefined are macros of bpftrace's compiler.
var predefined = []string{"__x86_64__", "__linux__", "__KERNEL__", "__BPF_TRACING__"}

// preprocess goes through a script's lines and definitions. Where the kernel's types are known BPFTRACE_HAVE_BTF is
// defined.
func preprocess(texts []string, types bool) (p *preprocessor, err error) {
	p = &preprocessor{macros: map[string]string{}, defined: map[string]bool{"BPFTRACE_HAVE_BTF": types}}
	for _, name := range predefined {
		p.defined[name] = true
	}
	for _, text := range texts {
		switch {
		case !strings.HasPrefix(text, "#"):
			if !p.skipped() {
				p.definitions = append(p.definitions, text)
			}
		default:
			if err = p.line(text); err != nil {
				return p, err
			}
		}
	}
	if len(p.open) > 0 {
		err = fmt.Errorf("unterminated conditional directive")
	}
	return p, err
}

//go:embed headers.txt
var headersText string

// headers are the constants of the kernel's headers.
var headers = sync.OnceValue(func() map[string]string {
	m := map[string]string{}
	for line := range strings.Lines(headersText) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && name != "#" {
			m[name] = value
		}
	}
	return m
})

// expansions returns the macros that are expanded in a script: its own, and all known constants of headers if it
// includes one header, because headers include one another.
func (p *preprocessor) expansions() map[string]string {
	if !p.headers {
		return p.macros
	}
	all := maps.Clone(headers())
	maps.Copy(all, p.macros)
	return all
}

func (p *preprocessor) skipped() bool { return len(p.open) > 0 && p.open[len(p.open)-1].skips }

var (
	cComment = regexp.MustCompile(`/\*.*?\*/|//.*`)
	marker   = regexp.MustCompile(`^([0-9][0-9A-Za-z_.]*)\s*(.*)$`)
	header   = regexp.MustCompile(`^(<[^>]+>|"[^"]+")`)
	quoted   = regexp.MustCompile(`^"(?:[^"\\]|\\.)*"`)
	params   = regexp.MustCompile(`^\(\s*(?:\)|(?:[A-Za-z_]\w*\s*,\s*)*(?:[A-Za-z_]\w*\s*(?:\.\.\.)?|\.\.\.)\s*\))`)
)

// line reads one directive.
func (p *preprocessor) line(text string) error {
	text = strings.TrimSpace(cComment.ReplaceAllString(strings.TrimPrefix(text, "#"), " "))
	word := identRE.FindString(text)
	rest := strings.TrimSpace(text[len(word):])
	switch word {
	case "if", "ifdef", "ifndef":
		around := p.skipped()
		if !around {
			if err := checkDirective(word, text, rest); err != nil {
				return err
			}
		}
		holds := !around && p.holds(word, rest)
		p.open = append(p.open, conditional{taken: holds, skips: !holds, around: around})
		return nil
	case "elif", "elifdef", "elifndef", "else":
		if len(p.open) == 0 {
			return fmt.Errorf("#%s without #if", word)
		}
		c := &p.open[len(p.open)-1]
		if c.over {
			return fmt.Errorf("#%s after #else", word)
		}
		c.over = word == "else"
		holds := !c.around && !c.taken && (c.over || p.holds(strings.TrimPrefix(word, "el"), rest))
		c.skips, c.taken = !holds, c.taken || holds
		return nil
	case "endif":
		if len(p.open) == 0 {
			return fmt.Errorf("#endif without #if")
		}
		p.open = p.open[:len(p.open)-1]
		return nil
	}
	if p.skipped() {
		return nil
	}
	if err := checkDirective(word, text, rest); err != nil {
		return err
	}
	name := identRE.FindString(rest)
	switch body := rest[len(name):]; word {
	case "define":
		p.defined[name] = true
		if value := strings.TrimSpace(body); value != "" && body[0] != '(' {
			p.macros[name] = value
		}
	case "undef":
		p.defined[name] = false
	case "include", "include_next", "import":
		p.headers = true
	}
	return nil
}

// holds reports whether a condition is true: "ifdef", "ifndef" or "if".
func (p *preprocessor) holds(word, rest string) bool {
	switch word {
	case "ifdef":
		return p.defined[identRE.FindString(rest)]
	case "ifndef":
		return !p.defined[identRE.FindString(rest)]
	}
	zero := func(name string) (int64, bool) { v, _ := p.constant(name); return v, true } // as in C
	return (&condition{list: cToken.FindAllString(rest, -1), name: zero, defined: func(name string) bool { return p.defined[name] }}).value(0) != 0
}

// constant returns the value of a macro that is a number. false means that it is none.
func (p *preprocessor) constant(name string) (int64, bool) {
	text, ok := p.macros[name]
	if !ok && p.headers {
		text, ok = headers()[name]
	}
	if p.depth++; !ok || p.depth > bounded.BpftraceNesting {
		p.depth--
		return 0, false
	}
	defer func() { p.depth-- }()
	c := &condition{list: cToken.FindAllString(text, -1), name: p.constant}
	v := c.value(0)
	return v, c.bad == ""
}

// checkDirective returns the error in a directive that is not left out, nil for none.
func checkDirective(word, text, rest string) error {
	switch word {
	case "if":
		if rest == "" {
			return fmt.Errorf("expected value in expression")
		}
	case "ifdef", "ifndef", "undef", "define":
		name := identRE.FindString(rest)
		switch {
		case rest == "":
			return fmt.Errorf("macro name missing")
		case name == "":
			return fmt.Errorf("macro name must be an identifier")
		case word == "define" && strings.HasPrefix(rest[len(name):], "(") && !params.MatchString(rest[len(name):]):
			return fmt.Errorf("expected comma in macro parameter list")
		}
	case "include", "include_next", "import":
		if !header.MatchString(rest) && !isName(rest) {
			return fmt.Errorf("expected \"FILENAME\" or <FILENAME>")
		}
	case "error":
		return fmt.Errorf("%s", rest)
	case "line":
		return lineNumber(rest, "#line directive", false)
	case "warning", "pragma", "ident", "sccs", "assert", "unassert":
	case "":
		if text == "" {
			return nil
		}
		if marker.MatchString(text) {
			return lineNumber(text, "line marker directive", true)
		}
		return fmt.Errorf("invalid preprocessing directive")
	default:
		return fmt.Errorf("invalid preprocessing directive")
	}
	return nil
}

// lineNumber checks a line's number and what follows it: a file's name and, of a marker, flags.
func lineNumber(text, what string, flags bool) error {
	m := marker.FindStringSubmatch(text)
	switch {
	case m == nil:
		return fmt.Errorf("%s requires a positive integer argument", what)
	case strings.Trim(m[1], "0123456789") != "":
		return fmt.Errorf("%s requires a simple digit sequence", what)
	}
	if _, err := strconv.ParseUint(m[1], 10, 32); err != nil {
		return fmt.Errorf("%s requires a positive integer argument", what)
	}
	name := quoted.FindString(m[2])
	if m[2] != "" && name == "" {
		return fmt.Errorf("invalid filename for %s", what)
	}
	last := 0
	for _, f := range strings.Fields(m[2][len(name):]) {
		if !flags {
			return nil // only a warning
		}
		n, err := strconv.Atoi(f)
		switch {
		case err != nil || n <= last || n > 4 || n == 4 && last != 3 || n == 2 && last == 1:
			return fmt.Errorf("invalid flag %s", what)
		case n == 2:
			return fmt.Errorf("invalid line marker flag '2': cannot pop empty include stack")
		}
		last = n
	}
	return nil
}
