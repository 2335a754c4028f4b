package stap

import (
	"fmt"
	"strings"

	"kprobelab/internal/bounded"
)

// Problem is an error in a script, in stap's words.
type Problem struct {
	// Kind is "parse error" or "semantic error", or emptyScript.
	Kind    string
	Message string
	// at is the wrong token, saw the token that was read last. If saw is nil and end is not, the
	// error is at the end of that file.
	at, saw *token
	end     *file
	// translating: stap finds it in pass 3.
	translating bool
	// skip: the parser goes on at the next keyword of the outermost level.
	skip bool
	// site distinguishes problems with the same message. stap prints one problem for each site.
	site string
	// always: the problem is an error even at an optional probe point.
	always bool
	// last: the problem ends the analysis.
	last bool
}

func (p *Problem) Error() string { return strings.TrimPrefix(p.Kind+": "+p.Message, ": ") }

// Text returns the message as stap prints it.
func (p *Problem) Text() string {
	var b strings.Builder
	if p.Kind == emptyScript {
		return p.Message + "\n"
	}
	fmt.Fprintf(&b, "%s: %s", p.Kind, p.Message)
	t := p.at
	switch {
	case p.Kind == semanticError:
		if t != nil {
			fmt.Fprintf(&b, ": %s", t)
		}
		b.WriteString("\n")
		return b.String() + line(t, "        source: ")
	case t != nil:
		fmt.Fprintf(&b, "\n         at: %s", t)
	case p.saw != nil:
		t = p.saw
		fmt.Fprintf(&b, "\n        saw: %s", t)
	case p.end != nil:
		fmt.Fprintf(&b, "\n        saw: %s EOF", p.end.name)
	}
	b.WriteString("\n")
	return b.String() + line(t, "     source: ")
}

// line returns the line of a token, and a mark under the token.
func line(t *token, label string) string { return lineWithin(t, label, 0) }

// lineWithin does as line, for a token inside of depth macros. If there are many macros, it names some of them.
func lineWithin(t *token, label string, depth int) string {
	if t == nil || t.pos.file == nil || t.pos.Line < 1 || t.pos.Line > len(t.pos.file.lines) {
		return ""
	}
	shown := t.pos.file.lines[t.pos.Line-1]
	var mark strings.Builder
	for i := range min(t.pos.Column-1, len(shown)) {
		if shown[i] == '\t' {
			mark.WriteByte('\t')
		} else {
			mark.WriteByte(' ')
		}
	}
	s := fmt.Sprintf("%s%s\n%s%s^\n", label, shown, strings.Repeat(" ", len(label)), mark.String())
	if t.macro != nil && depth < namedMacros {
		s += fmt.Sprintf("in expansion of macro: %s\n%s", t.macro, lineWithin(t.macro, label, depth+1))
	}
	return s
}

// namedMacros is the number of macros around a word that a message names.
const namedMacros = 8

const (
	parseError    = "parse error"
	emptyScript   = "" // there is nothing in the script, or nothing is left
	semanticError = "semantic error"
)

// Problems is the list of the problems of a script, and an error.
type Problems []*Problem

func (p Problems) Error() string {
	if len(p) == 1 {
		return p[0].Error()
	}
	return fmt.Sprintf("%s, and %d more", p[0].Error(), len(p)-1)
}

// Parsing reports whether the script could not even be read.
func (p Problems) Parsing() bool { return p[0].Kind != semanticError }

// Translating reports whether the script is right but for what stap finds when it translates, in pass 3.
func (p Problems) Translating() bool { return p[0].translating }

// Text returns the messages as stap prints them, similar ones once.
func (p Problems) Text() string {
	var b strings.Builder
	seen, similar := map[string]bool{}, 0
	for i, one := range p {
		if b.Len() > bounded.ProblemText {
			fmt.Fprintf(&b, "%d messages more are not shown.\n", len(p)-i)
			break
		}
		key := one.Message + "\n" + one.site
		if seen[key] {
			similar++
			continue
		}
		seen[key] = true
		b.WriteString(one.Text() + "\n")
	}
	if last := p[len(p)-1]; last.Kind == emptyScript {
		return strings.TrimSuffix(b.String(), "\n")
	}
	kind := p[0].Kind
	if kind == parseError {
		s := "s"
		if len(p) == 1 {
			s = ""
		}
		fmt.Fprintf(&b, "%d %s%s.\n", len(p), kind, s)
	}
	if similar > 0 {
		fmt.Fprintf(&b, "Number of similar error messages suppressed: %d.\n", similar)
	}
	return b.String()
}
