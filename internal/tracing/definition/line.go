package definition

import (
	"strings"

	"kprobelab/internal/tracing/word"
)

// Line is a line of kprobe_events, uprobe_events or dynamic_events, split into words once.
type Line struct {
	// Text is the line as it was written.
	Text string
	// Words are the line's words, as the kernel splits it (argv_split).
	Words []string
}

// ReadLine splits a line.
func ReadLine(text string) Line { return Line{text, word.Split(text)} }

// LineOf makes a line of words.
func LineOf(words ...string) Line { return Line{strings.Join(words, " "), words} }

// Command is the line as error_log prints it.
func (l Line) Command() string { return strings.Join(l.Words, " ") }

// Empty reports a line without words.
func (l Line) Empty() bool { return len(l.Words) == 0 }

// Deletes reports a deletion by an event's name.
func (l Line) Deletes() bool { return !l.Empty() && strings.HasPrefix(l.Words[0], "-:") }

// Defines tells a definition ("p", "r16" or "p:name" and more words) from a symbol and from the words of the source.
// Without more words, "p16" and "px:name" may be symbols.
func (l Line) Defines() bool {
	if !l.begins() {
		return false
	}
	head, _, named := strings.Cut(l.Words[0][1:], ":")
	number := strings.Trim(head, "0123456789") == ""
	if len(l.Words) == 1 {
		return number && (named || head == "")
	}
	return number || named
}

// begins reports whether the line begins with the letter of a kprobe's or a uprobe's definition.
func (l Line) begins() bool {
	return !l.Empty() && (l.Words[0][0] == 'p' || l.Words[0][0] == 'r')
}

// User reports a definition of a uprobe: a file and an offset, which a digit begins.
func (l Line) User() bool {
	if len(l.Words) < 2 || !l.begins() {
		return false
	}
	i := strings.LastIndexByte(l.Words[1], ':')
	return i >= 0 && strings.Contains(l.Words[1], "/") && isDigit(first(l.Words[1][i+1:]))
}

// others are the kinds of dynamic_events beside kprobes and uprobes, by the letter that begins a
// definition, and whether digits may follow it.
var others = map[byte]struct {
	name   string
	digits bool
}{
	'f': {"fprobe events", true},     // kernel/trace/trace_fprobe.c, 6.5
	't': {"tracepoint events", true}, // the same
	'e': {"event probes", false},     // trace_eprobe.c, 5.15
	's': {"synthetic events", false}, // trace_events_synth.c, 5.0
}

// Other names the kind of event that a line of dynamic_events defines, such as "fprobe events". It
// returns "" for kprobes, uprobes and lines that define nothing.
func (l Line) Other() string {
	if len(l.Words) < 2 {
		return ""
	}
	head, name, named := strings.Cut(l.Words[0], ":")
	if head == "" || named && (name == "" || isDigit(name[0])) { // a function and a line, in perf's words
		return ""
	}
	kind, ok := others[head[0]]
	digits := head[1:]
	if !ok || digits != "" && (!kind.digits || strings.Trim(digits, "0123456789") != "") {
		return ""
	}
	if head[0] == 's' && !named {
		return ""
	}
	return kind.name
}
