package trigger

import (
	"fmt"
	"slices"
	"strings"

	"kprobelab/errno"
	"kprobelab/internal/tracing/filter"
)

// List are the triggers of one event. The zero List has none. Calls must not
// run at once.
//
// A hit goes through it in this order:
//
//	if !l.Conditional() { l.Hit(tr) }     before a record is made
//	(soft-disabled and not conditional: done)
//	post := l.Record(tr, rec, current)    the record is made, not yet written
//	(soft-disabled or filtered out: the record is dropped)
//	l.Post(tr, post)                      whether or not it was dropped
//
// Conditional triggers need a record even while tracing is off.
type List struct {
	owner Event
	// list is in the order of the file: the newest first.
	list []*trigger
}

// Write runs a command on the triggers of an event. An error wraps an errno.Errno: EINVAL for a
// text that is no command or names no event, EEXIST for a second trigger of its kind, ERANGE, and
// the filter's errno.
func (l *List) Write(text string, owner Event, tr Tracer) error {
	c, err := parse(text)
	if err != nil {
		return err
	}
	t, err := build(&c, tr, owner.Format())
	if err != nil {
		return err
	}
	if c.remove {
		l.remove(t)
		return nil
	}
	if t.kind == kindSnapshot {
		if err := tr.AllocSnapshot(); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(l.list, t.kin) {
		return fmt.Errorf("the event has a trigger of %s's kind: %w", t.name, errno.EEXIST)
	}
	return l.add(t, owner)
}

// add holds the trigger's target, and the event itself: it has to be armed for
// the trigger to see hits.
func (l *List) add(t *trigger, owner Event) error {
	if t.target != nil {
		if err := t.target.Hold(); err != nil {
			return err
		}
	}
	if err := owner.Hold(); err != nil {
		if t.target != nil {
			t.target.Release()
		}
		return err
	}
	l.owner = owner
	l.list = slices.Insert(l.list, 0, t)
	return nil
}

func (l *List) remove(like *trigger) {
	if i := slices.IndexFunc(l.list, like.kin); i >= 0 {
		t := l.list[i]
		l.list = slices.Delete(l.list, i, i+1)
		l.release(t)
	}
}

func (l *List) release(t *trigger) {
	l.owner.Release()
	if t.target != nil {
		t.target.Release()
	}
}

// Clear removes all, for an event that goes away.
func (l *List) Clear() {
	list := l.list
	l.list = nil
	for _, t := range list {
		l.release(t)
	}
}

// Len is the number of triggers.
func (l *List) Len() int { return len(l.list) }

// String is the text of the trigger file.
func (l *List) String() string {
	if len(l.list) == 0 {
		return Available
	}
	var b strings.Builder
	for _, t := range l.list {
		b.WriteString(t.String())
	}
	return b.String()
}

// Conditional reports whether the triggers need the record: one has a filter, or acts after the
// record is written.
func (l *List) Conditional() bool {
	for _, t := range l.list {
		if t.filter != nil || t.post() {
			return true
		}
	}
	return false
}

// Hit runs the triggers without a record.
func (l *List) Hit(tr Tracer) {
	for _, t := range l.list {
		t.act(tr)
	}
}

// Later are the kinds of triggers to run when the record is written.
type Later uint8

// Record runs the triggers that the record passes, and returns the triggers for after its write.
func (l *List) Record(tr Tracer, rec []byte, c filter.Current) (post Later) {
	if !l.Conditional() {
		return 0
	}
	for _, t := range l.list {
		switch {
		case !t.filter.Match(rec, c):
		case t.post():
			post |= 1 << t.kind
		default:
			t.act(tr)
		}
	}
	return post
}

// Post runs the triggers that Record has deferred.
func (l *List) Post(tr Tracer, post Later) {
	if post == 0 {
		return
	}
	for _, t := range l.list {
		if post&(1<<t.kind) != 0 {
			t.act(tr)
		}
	}
}
