package tracing

import (
	"errors"
	"slices"
	"strings"

	"kprobelab/errno"
	"kprobelab/internal/tracing/filter"
	"kprobelab/internal/tracing/word"
)

// groups are the events by their groups, in the order of the groups' first.
func (a *traceArray) groups() []string {
	var list []string
	for _, f := range a.files {
		if !slices.Contains(list, f.Group()) {
			list = append(list, f.Group())
		}
	}
	return list
}

func (a *traceArray) inGroup(group string) []*eventFile {
	var list []*eventFile
	for _, f := range a.files {
		if f.Group() == group {
			list = append(list, f)
		}
	}
	return list
}

// eventNodes are the files in events.
func (a *traceArray) eventNodes() []*node {
	list := []*node{setting("enable", func() string { return mixed(a.files) }, func(s string) error {
		return writeEnable(a.files, s)
	}), text("header_page", a.t.headerPage), text("header_event", headerEvent)}
	groups := a.groups()
	if !slices.Contains(groups, ownGroup) {
		groups = append(groups, ownGroup)
	}
	for _, g := range groups {
		list = append(list, folder(g, func() []*node { return a.groupNodes(g) }))
	}
	return list
}

func (a *traceArray) groupNodes(group string) []*node {
	files := a.inGroup(group)
	var list []*node
	if group == ownGroup { // it has folders and no files
		list = a.t.ownNodes()
	} else {
		list = []*node{
			setting("enable", func() string { return mixed(files) }, func(s string) error { return writeEnable(files, s) }),
			setting("filter", func() string { return filter.GroupText + "\n" }, func(s string) error {
				return a.writeGroupFilter(files, s)
			}),
		}
	}
	for _, f := range files {
		list = append(list, folder(f.Name(), f.nodes))
	}
	return list
}

// nodes are the files of one event.
func (f *eventFile) nodes() []*node {
	return []*node{
		setting("enable", func() string { return f.state() + "\n" }, func(s string) error {
			return writeEnable([]*eventFile{f}, s)
		}),
		setting("filter", f.filterText, f.writeFilter),
		text("format", f.event.format.String),
		text("id", func() string { return itoa(f.event.format.ID) + "\n" }),
		{
			// Truncation would remove histograms, and nothing else.
			name: "trigger", mode: modeWrite, read: f.triggers.String, write: f.writeTrigger,
		},
	}
}

// mixed returns the content of the file enable of a group: 0, 1, or X for both.
func mixed(files []*eventFile) string {
	var off, on bool
	for _, f := range files {
		off, on = off || !f.enabled, on || f.enabled
	}
	switch {
	case off && on:
		return "X\n"
	case on:
		return "1\n"
	case off:
		return "0\n"
	}
	return "?\n"
}

// writeEnable enables or disables all, and returns the first error.
func writeEnable(files []*eventFile, s string) error {
	v, err := decimal(s)
	if err != nil {
		return err
	}
	if v > 1 {
		return errno.EINVAL
	}
	return setAll(files, v == 1)
}

func setAll(files []*eventFile, on bool) error {
	var first error
	for _, f := range files {
		first = firstError(first, f.setEnabled(on))
	}
	return first
}

func (a *traceArray) setAll(on bool) error { return setAll(a.files, on) }

func (f *eventFile) filterText() string {
	switch {
	case f.filterError != "":
		return f.filterError + "\n"
	case f.filter != nil:
		return f.filter.String() + "\n"
	}
	return "none\n"
}

// writeFilter sets the filter; "0" clears it. After a refused filter the event has none, and the
// file shows the error.
func (f *eventFile) writeFilter(s string) error {
	if word.Trim(s) == "0" {
		f.filter, f.filterError = nil, ""
		return nil
	}
	err := f.setFilter(word.TrimRight(s))
	f.array.t.logError(&f.array.errors, filter.Prefix, err)
	return err
}

func (f *eventFile) setFilter(s string) error {
	var err error
	f.filterError = ""
	f.filter, err = filter.Compile(s, f.event.format)
	var e *filter.Error
	if errors.As(err, &e) {
		f.filterError = e.ReadBack()
	}
	return err
}

// writeGroupFilter sets the filter of all events that have its fields. For each
// that has not, error_log has an entry; the write succeeds all the same.
func (a *traceArray) writeGroupFilter(files []*eventFile, s string) error {
	if word.Trim(s) == "0" {
		for _, f := range files {
			f.filter, f.filterError = nil, ""
		}
		return nil
	}
	for _, f := range files {
		var e *filter.Error
		if errors.As(f.setFilter(word.TrimRight(s)), &e) {
			refused := e.ForGroup()
			f.filterError = refused.ReadBack()
			a.t.logError(&a.errors, filter.Prefix, refused)
		}
	}
	return nil
}

// writeTrigger runs a command on the event's triggers.
func (f *eventFile) writeTrigger(b []byte) (int, error) {
	s := word.Trim(string(b))
	if s == "" {
		return len(b), nil
	}
	// What is wrong with a trigger's filter is in no log.
	if err := f.triggers.Write(s, f, &tracer{a: f.array}); err != nil {
		return 0, err
	}
	return len(b), nil
}

// eventNames are lines of group:event, the newest first.
func (a *traceArray) eventNames(want func(*eventFile) bool) string {
	var b strings.Builder
	for _, f := range slices.Backward(a.files) {
		if want(f) {
			b.WriteString(f.Group() + ":" + f.Name() + "\n")
		}
	}
	return b.String()
}

// writeSetEvent enables the events that the first word names, or disables those
// of a word with a "!": "event", "group", "group:event", "group:*", "*:*". Of
// several words one is taken, and the write says so.
func (a *traceArray) writeSetEvent(b []byte) (int, error) {
	w, n := firstWord(b)
	if w == "" {
		return n, nil
	}
	name, off := strings.CutPrefix(w, "!")
	if err := a.setMatching(name, !off); err != nil {
		return 0, err
	}
	return n, nil
}

func (a *traceArray) setMatching(name string, on bool) error {
	group, event, both := strings.Cut(name, ":")
	every := func(s string) bool { return s == "" || s == "*" }
	var files []*eventFile
	for _, f := range a.files {
		if both && (every(group) || group == f.Group()) && (every(event) || event == f.Name()) ||
			!both && (name == f.Group() || name == f.Name()) {
			files = append(files, f)
		}
	}
	if len(files) == 0 {
		return errno.EINVAL
	}
	return setAll(files, on)
}
