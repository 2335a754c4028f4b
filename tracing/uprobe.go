package tracing

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"kprobelab/errno"
	"kprobelab/internal/tracing/definition"
)

// family selects the kinds of probes of a file of definitions: kprobes, uprobes, or both
// (dynamic_events).
type family struct{ kernel, user bool }

var (
	kernelProbes = family{kernel: true}
	userProbes   = family{user: true}
	allProbes    = family{kernel: true, user: true}
)

// has reports whether the family's file lists a probe.
func (f family) has(tp *probe) bool { return tp.user() && f.user || !tp.user() && f.kernel }

// user reports a uprobe. No program runs here, so it is defined, enabled and disabled, and not hit.
func (tp *probe) user() bool { return tp.def.File != "" }

// uprobeNodes are the files of uprobe events.
func (t *Tracing) uprobeNodes() []*node {
	if !t.p.Uprobes.Exists {
		return nil
	}
	return []*node{t.commands("uprobe_events", userProbes), text("uprobe_profile", t.uprobeProfile)}
}

// uprobeProfile is uprobe_profile.
func (t *Tracing) uprobeProfile() string {
	var b strings.Builder
	for _, tp := range t.probes {
		if tp.user() {
			fmt.Fprintf(&b, "  %s %-44s %15d\n", tp.def.File, tp.def.Event, tp.hits)
		}
	}
	return b.String()
}

// fileSize is the size of a file that a uprobe may be in.
func (t *Tracing) fileSize(name string) (int64, error) {
	if t.o.Files == nil {
		return 0, errno.ENOENT
	}
	return t.o.Files(name)
}

// createUser defines a uprobe (trace_uprobe_create).
func (t *Tracing) createUser(l definition.Line) error {
	d, err := definition.ParseUser(l, func(name string) error {
		_, err := t.fileSize(name)
		return err
	}, t.c)
	var e *definition.Error
	if errors.As(err, &e) && e.ID == definition.NotAProbe {
		e.Errno = errno.EINVAL // of other kinds, there is none
	}
	if err != nil {
		return err
	}
	for _, o := range t.probes {
		if o.user() && o.def.File == d.File && o.def.FileOffset == d.FileOffset && o.def.Counter != d.Counter {
			t.printk("Reference counter offset mismatch.")
			return errno.EINVAL
		}
	}
	return t.register(t.newProbe(d))
}

// enableUser enables a uprobe: with no process that has the file mapped, the kernel only looks
// whether the file is long enough (uprobe_register).
func (tp *probe) enableUser() error {
	size, err := tp.t.fileSize(tp.def.File)
	if err == nil && tp.def.FileOffset > uint64(size) {
		err = errno.EINVAL
	}
	return err
}

// otherKind refuses a name that an event of the other kind has: an event has kprobes, or uprobes.
func (t *Tracing) otherKind(tp *probe, e *probeEvent) error {
	if slices.ContainsFunc(e.probes, func(o *probe) bool { return o.user() != tp.user() }) {
		return tp.def.Line.Refuse(0, 0, definition.EventExist, errno.EEXIST)
	}
	return nil
}
