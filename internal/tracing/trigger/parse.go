package trigger

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"kprobelab/errno"
	"kprobelab/internal/tracing/word"
)

// command is a trigger file's command, taken apart.
type command struct {
	remove bool
	name   string
	// group and event are the arguments of enable_event and disable_event.
	group, event string
	// counted: there is a count, in number; it may be no number.
	counted bool
	number  string
	// filter is the filter at the end, with its "if"; empty for none.
	filter string
}

// commands are the commands that there are.
var commands = map[string]struct {
	kind kind
	// on is true if the command switches on.
	on bool
}{
	"traceon": {kindOnOff, true}, "traceoff": {kindOnOff, false},
	"snapshot": {kindSnapshot, false}, "stacktrace": {kindStack, false},
	"enable_event": {kindToggle, true}, "disable_event": {kindToggle, false},
}

// Available is the content of the trigger file of an event without triggers.
const Available = "# Available triggers:\n# traceon traceoff snapshot stacktrace enable_event disable_event\n"

const blank = " \t"

// parse splits a command into its parts (trigger_process_regex and the functions that it calls).
func parse(text string) (command, error) {
	text = word.Trim(text)
	name, rest, _ := cutAny(text, ":"+blank)
	rest = word.TrimLeft(rest)
	c := command{name: strings.TrimPrefix(name, "!"), remove: strings.HasPrefix(name, "!")}
	switch known, ok := commands[c.name]; {
	case !ok:
		return c, fmt.Errorf("there is no trigger command %q: %w", c.name, errno.EINVAL)
	case known.kind == kindToggle:
		return c, c.parseTarget(rest)
	}
	return c, c.parseCount(rest)
}

// cutAny cuts at the first of several bytes, as strsep does.
func cutAny(s, at string) (before, after string, found bool) {
	if i := strings.IndexAny(s, at); i >= 0 {
		return s[:i], s[i+1:], true
	}
	return s, "", false
}

// parseCount reads "[COUNT] [if FILTER]": a text that does not begin with a digit is all filter.
func (c *command) parseCount(rest string) error {
	if rest == "" || rest[0] < '0' || rest[0] > '9' {
		c.filter = rest
		return nil
	}
	c.counted = true
	var after string
	c.number, after, _ = cutAny(rest, blank)
	c.filter = word.TrimLeft(after)
	return nil
}

// parseTarget reads "GROUP:EVENT[:COUNT] [if FILTER]".
func (c *command) parseTarget(rest string) error {
	target, after, _ := cutAny(rest, blank)
	c.filter = word.TrimLeft(after)
	var ok bool
	if c.group, target, ok = strings.Cut(target, ":"); !ok {
		return fmt.Errorf("%s needs GROUP:EVENT: %w", c.name, errno.EINVAL)
	}
	c.event, c.number, c.counted = strings.Cut(target, ":")
	return nil
}

// unlimited is the count of a trigger without one (and the largest number,
// which the kernel cannot tell from it).
const unlimited = -1

// count returns the number of times that the trigger may act; the text after a further colon is
// ignored.
func (c *command) count() (int64, error) {
	if !c.counted {
		return unlimited, nil
	}
	number, _, _ := strings.Cut(c.number, ":")
	v, err := strconv.ParseUint(number, 0, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, fmt.Errorf("count %q: %w", number, errno.ERANGE)
	case err != nil || strings.ContainsAny(number, "_bBoO") && !strings.HasPrefix(number, "0x") && !strings.HasPrefix(number, "0X"):
		return 0, fmt.Errorf("count %q: %w", number, errno.EINVAL)
	}
	return int64(v), nil
}

// condition returns the filter's text after "if"; false if there is none.
func (c *command) condition() (string, bool, error) {
	if c.filter == "" {
		return "", false, nil
	}
	word, text, ok := cutAny(c.filter, blank)
	if word != "if" || !ok {
		return "", false, fmt.Errorf("%q: a filter is \"if\" and an expression: %w", c.filter, errno.EINVAL)
	}
	return text, true, nil
}
