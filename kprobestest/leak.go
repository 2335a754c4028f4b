package kprobestest

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"kprobelab/kimage"
	"kprobelab/x86"
)

// check is the leak check at the test's end.
func (m *Machine) check() {
	m.t.Helper()
	if n := m.lab.Kprobes.Registered(); n > 0 {
		m.t.Errorf("probes still registered (%d):\n%s%s", n, strings.TrimRight(m.lab.Kprobes.List(), " \n"), m.left())
	} else if err := m.lab.Kprobes.Settle(); err != nil { // jumps of unregistered probes
		if !m.t.Failed() && !m.t.Skipped() { // otherwise it ended in a handler, and a task ended with it
			m.t.Errorf("the text cannot be checked: %v", err)
		}
	} else {
		m.checkText()
	}
	if list := m.lab.Watches.All(); len(list) > 0 {
		m.t.Errorf("watchpoints still set (%d), the first at %s", len(list), m.lab.Machine.Symbolize(list[0].Addr))
	}
	if err := m.lab.Kprobes.Err(); err != nil {
		m.t.Errorf("a hit went wrong: %v", err)
	}
}

// left lists the places where leftover probes were registered.
func (m *Machine) left() string {
	var b strings.Builder
	for _, p := range m.lab.Kprobes.Probes() {
		fmt.Fprintf(&b, "\n%016x  registered at %s", uint64(p.Addr), m.sites[p])
	}
	return b.String()
}

// site is the file and line of the test's own code that is registering a probe: the
// innermost call from outside of this module's packages, or from a test of theirs.
func site() string {
	pc := make([]uintptr, 64)
	frames := runtime.CallersFrames(pc[:runtime.Callers(2, pc)])
	for {
		f, more := frames.Next()
		mine := strings.HasPrefix(f.Function, "kprobelab.") || strings.HasPrefix(f.Function, "kprobelab/")
		if !mine || strings.HasSuffix(f.File, "_test.go") {
			return fmt.Sprintf("%s:%d", f.File, f.Line)
		}
		if !more {
			return "an unknown place"
		}
	}
}

// CheckText fails the test if text differs from the text when the machine was made. No probe may be
// registered then.
func (m *Machine) CheckText() {
	m.t.Helper()
	m.checkText()
}

func (m *Machine) checkText() {
	m.t.Helper()
	for _, s := range m.lab.Image.Segments() {
		switch {
		case s.Exec && m.pooled != nil:
			m.checkDirty(s)
		case s.Exec && s.Write:
			m.checkSections(s)
		case s.Exec:
			m.checkRange(s.Addr, s.Data)
		}
	}
}

// checkSections checks the code in a segment that has data too, as a kernel's
// init segment.
func (m *Machine) checkSections(in kimage.Segment) {
	m.t.Helper()
	for _, s := range m.lab.Image.Sections() {
		if s.Exec && !s.Write && s.Addr.In(in.Addr, in.Addr.Add(int64(in.Size))) {
			m.checkRange(s.Addr, s.Data)
		}
	}
}

// checkDirty checks the pages of a booted kernel's segment that were written since the
// machine was fresh: they are listed as the kernel's mapping of all memory has them.
func (m *Machine) checkDirty(s kimage.Segment) {
	m.t.Helper()
	low, err := m.lab.Machine.DirectMapped(s.Addr)
	if err != nil {
		m.t.Errorf("text at %s cannot be found: %v", s.Addr, err)
		return
	}
	for _, r := range m.lab.Machine.Dirty(m.pooled.fresh) {
		start, end := max(r.Start, low), min(r.End, low.Add(int64(len(s.Data))))
		if start < end {
			off := uint64(start - low)
			m.checkRange(s.Addr.Add(int64(off)), s.Data[off:off+uint64(end-start)])
		}
	}
}

// kernelPatches are the sites that a booted kernel changes by itself, at any time.
var kernelPatches = []kimage.SiteKind{kimage.SiteJumpLabel, kimage.SiteStaticCall}

// patched reports whether the address is in a site that the kernel itself changes.
func (m *Machine) patched(at x86.Addr) bool {
	if m.lab.Image.Core() == nil {
		return false
	}
	return slices.ContainsFunc(kernelPatches, func(k kimage.SiteKind) bool {
		_, is := m.lab.Image.SiteAt(k, at)
		return is
	})
}

// checkRange reports the first changed byte from addr on.
func (m *Machine) checkRange(addr x86.Addr, data []byte) {
	m.t.Helper()
	var now [1 << 16]byte
	for off := 0; off < len(data); off += len(now) {
		want := data[off:min(off+len(now), len(data))]
		got := now[:len(want)]
		at := addr.Add(int64(off))
		if err := m.lab.Machine.ReadMem(at, got); err != nil {
			m.t.Errorf("text at %s cannot be read back: %v", at, err)
			return
		}
		if !bytes.Equal(got, want) && m.reportText(at, got, want) {
			return
		}
	}
}

// reportText reports the first changed byte, if there is one.
func (m *Machine) reportText(at x86.Addr, got, want []byte) bool {
	m.t.Helper()
	for i := range want {
		if got[i] != want[i] && !m.patched(at.Add(int64(i))) {
			where := m.lab.Machine.Symbolize(at.Add(int64(i)))
			m.t.Errorf("text is not restored: %#02x at %s, where %#02x was", got[i], where, want[i])
			return true
		}
	}
	return false
}
