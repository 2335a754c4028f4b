package traces

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// record is a record of a trace: a line, or a stack.
type record struct {
	comm, pid string
	flags     string
	// event is the event's name, text what follows it: of a stack its functions.
	event string
	text  []string
	// place is the text of the task's record that a stack belongs to.
	place string
}

// stackName is the text that a stack's line has in place of an event's name.
const stackName = "<stack trace>"

func (r record) isStack() bool { return r.event == stackName }

// String is the record without process number, CPU and time.
func (r record) String() string {
	return strings.Join(append([]string{r.comm, r.flags, r.event}, r.text...), " ")
}

var head = regexp.MustCompile(`^ *(.+)-(\d+) +\[\d+\] (\S+) +[\d.]+: (?:(<stack trace>)|(\w+): (.*))$`)

// parse reads a trace. A line that begins no record goes on with the text of the one
// before: a text of the program's has newlines. One that has none before is an error.
func parse(text string) (list []record, err error) {
	places := map[string]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		m := head.FindStringSubmatch(line)
		frame, isFrame := strings.CutPrefix(line, " => ")
		switch {
		case m != nil && m[4] != "":
			list = append(list, record{comm: m[1], pid: m[2], flags: m[3], event: m[4], place: places[m[2]]})
		case m != nil:
			places[m[2]] = m[6]
			list = append(list, record{comm: m[1], pid: m[2], flags: m[3], event: m[5], text: []string{m[6]}, place: m[6]})
		case isFrame && len(list) > 0 && list[len(list)-1].isStack():
			last := &list[len(list)-1]
			last.text = append(last.text, frame)
		case len(list) > 0:
			last := &list[len(list)-1]
			last.text = append(last.text, line)
		case line != "" && !strings.HasPrefix(line, "#"):
			return nil, fmt.Errorf("%q is no line of a trace", line)
		}
	}
	return list, nil
}

// replaced is the record with another text where a pattern matches.
func (r record) replaced(what *regexp.Regexp, with string) record {
	r.text = slices.Clone(r.text)
	for i := range r.text {
		r.text[i] = what.ReplaceAllString(r.text[i], with)
	}
	return r
}
