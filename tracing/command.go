package tracing

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"kprobelab/errno"
	"kprobelab/internal/tracing/definition"
)

// writeChunk is the size in bytes of the kernel's buffer for a write, with the NUL that it appends
// (WRITE_BUFSIZE).
const writeChunk = 4096

// runCommands runs a write's lines one by one, up to the first that fails
// (trace_parse_run_command). Earlier lines keep their effect. A line has to be in one write:
// nothing is kept for the next.
func (t *Tracing) runCommands(b []byte, run func(line string) error) (int, error) {
	for done := 0; done < len(b); {
		chunk := b[done:]
		chunk = chunk[:min(len(chunk), writeChunk-1)]
		for at := 0; done < len(b); {
			line, size, whole := cutLine(chunk[at:])
			if !whole && done+size < len(b) {
				if at != 0 {
					break // begins the next chunk
				}
				t.printk(fmt.Sprintf("Line length is too long: Should be less than %d", writeChunk-2))
				return 0, errno.EINVAL
			}
			done += size
			at += size
			line, _, _ = strings.Cut(line, "#")
			if err := run(line); err != nil {
				return 0, err
			}
		}
	}
	return len(b), nil
}

// cutLine takes a line off a C string: up to the newline, else up to a NUL or
// the end. size has the newline in it.
func cutLine(b []byte) (line string, size int, whole bool) {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	if i := bytes.IndexByte(b, '\n'); i >= 0 {
		return string(b[:i]), i + 1, true
	}
	return string(b), len(b), false
}

// command runs a line of kprobe_events, uprobe_events or dynamic_events. Only a definition's
// refusal appears in error_log.
func (t *Tracing) command(line string, of family) error {
	dynamic := of == allProbes
	l := definition.ReadLine(line)
	if l.Empty() {
		return nil
	}
	if t.deletes(l, dynamic) {
		return t.deleteCommand(l.Words, of)
	}
	err := t.create(l, of)
	var e *definition.Error
	switch {
	case err == nil:
	case !errors.As(err, &e) || e.ID != definition.NotAProbe:
		who := "trace_kprobe"
		if !of.kernel || dynamic && l.User() {
			who = "trace_uprobe"
		}
		t.logError(&t.top.errors, who, err)
	case dynamic && t.c.NoTypeLogged && !strings.ContainsRune(otherEvents, rune(line[0])):
		t.top.errors.add(t, "dynevent: error", "No matching dynamic event type", line, 0)
	}
	return err
}

// otherEvents are the letters with which lines of dynamic_events begin that are no
// kprobe's: fprobes, tracepoints, event probes, synthetic events.
const otherEvents = "ftes"

// deletes reports whether the line is a deletion.
func (t *Tracing) deletes(l definition.Line, dynamic bool) bool {
	c := l.Text[0]
	if !t.c.RawCommand {
		c = l.Words[0][0]
	}
	return c == '-' || c == '!' && dynamic
}

// create defines a probe.
func (t *Tracing) create(l definition.Line, of family) error {
	if of.user && (!of.kernel || l.User()) {
		return t.createUser(l)
	}
	d, err := definition.Parse(l, t.kernel(), t.c)
	if err != nil {
		return err
	}
	return t.register(t.newProbe(d))
}

// pattern selects the probes of a deletion.
type pattern struct {
	group, event string
	anyGroup     bool
	// rest is a place and the first arguments, as they are read back.
	rest []string
}

// parsePattern reads -:[group/][event] [place [arguments]], or a definition
// after a "!".
func (t *Tracing) parsePattern(words []string) (p pattern, err error) {
	name, ok := strings.CutPrefix(words[0], "-:")
	if words[0][0] == '!' {
		_, name, ok = strings.Cut(words[0], ":")
	}
	if !ok {
		return p, errno.EINVAL
	}
	p = pattern{event: name, anyGroup: true, rest: words[1:]}
	if group, event, in := strings.Cut(name, "/"); in {
		p.group, p.event, p.anyGroup = group, event, false
	}
	if p.event == "" && (p.anyGroup || !t.c.AutoNames) {
		return p, errno.EINVAL
	}
	if !t.c.DynamicEvents { // to 4.20: the name alone, in the default group
		p.rest = nil
		if p.anyGroup {
			p.group, p.anyGroup = definition.DefaultGroup, false
		}
	}
	return p, nil
}

// match is trace_kprobe_match. A deletion compares "name=text"; with cut, no more of it than fits
// into the kernel's buffer.
func (p *pattern) match(d *definition.Definition, cut bool) bool {
	if p.event != "" && p.event != d.Event || !p.anyGroup && p.group != d.Group {
		return false
	}
	if len(p.rest) == 0 {
		return true
	}
	if p.rest[0] != d.Place() || len(p.rest)-1 > len(d.Args) {
		return false
	}
	for i, want := range p.rest[1:] {
		have := d.Args[i].Name + "=" + d.Args[i].Text
		if cut {
			have = have[:min(len(have), maxMatch)]
		}
		if want != have {
			return false
		}
	}
	return true
}

// maxMatch is MAX_ARGSTR_LEN.
const maxMatch = 63

// deleteCommand removes every probe that the pattern means, up to the first that cannot be removed.
// ENOENT if there is none.
func (t *Tracing) deleteCommand(words []string, of family) error {
	p, err := t.parsePattern(words)
	if err != nil {
		return err
	}
	err = errno.ENOENT
	for _, tp := range slices.Clone(t.probes) {
		if !of.has(tp) || !p.match(tp.def, t.c.MatchCut) {
			continue
		}
		if err = t.release(tp); err != nil {
			break
		}
	}
	t.resetCleared()
	return err
}

// deleteAll removes all probes of a family, or none where one is enabled
// (dyn_events_release_all): EBUSY.
func (t *Tracing) deleteAll(of family) error {
	for _, e := range t.events {
		if e.enabled() && of.has(e.probes[0]) {
			return errno.EBUSY
		}
	}
	defer t.resetCleared()
	for _, tp := range slices.Clone(t.probes) {
		if !of.has(tp) {
			continue
		}
		if err := t.release(tp); err != nil {
			return err
		}
	}
	return nil
}
