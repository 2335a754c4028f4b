package definition

import "strings"

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

// Other says what kind of event a line of dynamic_events defines that is neither a kprobe's nor a
// uprobe's, such as "fprobe events"; "" for none.
func Other(words []string) string {
	if len(words) < 2 {
		return ""
	}
	head, name, named := strings.Cut(words[0], ":")
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
