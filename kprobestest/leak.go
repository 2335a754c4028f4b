//go:build cgo && linux && amd64

package kprobestest

import (
	"bytes"
	"strings"

	"kprobelab/kimage"
	"kprobelab/x86"
)

// check is the leak check at the test's end.
func (m *Machine) check() {
	m.t.Helper()
	if n := m.lab.Kprobes.Registered(); n > 0 {
		m.t.Errorf("%d probes are still registered:\n%s", n, strings.TrimRight(m.lab.Kprobes.List(), " \n"))
	} else if err := m.lab.Kprobes.Settle(); err != nil { // jumps of unregistered probes
		if !m.t.Failed() && !m.t.Skipped() { // else it ended in a handler, and a task with it
			m.t.Errorf("the text cannot be checked: %v", err)
		}
	} else {
		m.checkText()
	}
	if err := m.lab.Kprobes.Err(); err != nil {
		m.t.Errorf("a hit went wrong: %v", err)
	}
}

// CheckText fails the test where text is not what it was when the machine was
// made: no probe may be registered when it is called.
func (m *Machine) CheckText() {
	m.t.Helper()
	m.checkText()
}

func (m *Machine) checkText() {
	m.t.Helper()
	for _, s := range m.lab.Image.Segments() {
		if s.Exec {
			m.checkSegment(s)
		}
	}
}

// checkSegment reports the first byte of a segment that has changed.
func (m *Machine) checkSegment(s kimage.Segment) {
	m.t.Helper()
	var now [1 << 16]byte
	for off := 0; off < len(s.Data); off += len(now) {
		want := s.Data[off:min(off+len(now), len(s.Data))]
		got := now[:len(want)]
		at := s.Addr.Add(int64(off))
		if err := m.lab.Machine.ReadMem(at, got); err != nil {
			m.t.Errorf("text at %s cannot be read back: %v", at, err)
			return
		}
		if !bytes.Equal(got, want) {
			m.reportText(at, got, want)
			return
		}
	}
}

func (m *Machine) reportText(at x86.Addr, got, want []byte) {
	m.t.Helper()
	for i := range want {
		if got[i] != want[i] {
			where := m.lab.Machine.Symbolize(at.Add(int64(i)))
			m.t.Errorf("text is not restored: %#02x at %s, where %#02x was", got[i], where, want[i])
			return
		}
	}
}
