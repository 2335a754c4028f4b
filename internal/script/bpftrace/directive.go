package bpftrace

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// preprocessor follows a script's lines for the C preprocessor: what bpftrace's compiler refuses of
// them is refused. What they do is not done, but for #define.
type preprocessor struct {
	// open are the conditionals that have no #endif yet; each says that its #else was there.
	open []bool
}

var (
	cComment = regexp.MustCompile(`/\*.*?\*/|//.*`)
	marker   = regexp.MustCompile(`^([0-9][0-9A-Za-z_.]*)\s*(.*)$`)
	header   = regexp.MustCompile(`^(<[^>]+>|"[^"]+")`)
	quoted   = regexp.MustCompile(`^"(?:[^"\\]|\\.)*"`)
	params   = regexp.MustCompile(`^\(\s*(?:\)|(?:[A-Za-z_]\w*\s*,\s*)*(?:[A-Za-z_]\w*\s*(?:\.\.\.)?|\.\.\.)\s*\))`)
)

// line checks one.
func (p *preprocessor) line(text string) error {
	text = strings.TrimSpace(cComment.ReplaceAllString(strings.TrimPrefix(text, "#"), " "))
	word := identRE.FindString(text)
	rest := strings.TrimSpace(text[len(word):])
	switch word {
	case "if", "ifdef", "ifndef":
		p.open = append(p.open, false)
		if len(p.open) > 1 {
			return nil // it may be skipped, and with it what it says
		}
	case "elif", "elifdef", "elifndef", "else":
		if len(p.open) == 0 {
			return fmt.Errorf("#%s without #if", word)
		}
		over := &p.open[len(p.open)-1]
		if *over {
			return fmt.Errorf("#%s after #else", word)
		}
		*over = word == "else"
		return nil
	case "endif":
		if len(p.open) == 0 {
			return fmt.Errorf("#endif without #if")
		}
		p.open = p.open[:len(p.open)-1]
		return nil
	default:
		if len(p.open) > 0 {
			return nil
		}
	}
	return checkDirective(word, text, rest)
}

// end says what is wrong after the last line.
func (p *preprocessor) end() error {
	if len(p.open) > 0 {
		return fmt.Errorf("unterminated conditional directive")
	}
	return nil
}

// checkDirective is what is wrong with a directive that is not skipped.
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
