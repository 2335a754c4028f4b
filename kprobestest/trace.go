package kprobestest

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"kprobelab/kprobes"
	"kprobelab/x86"
)

// Trace is a record of the hits of the machine's probes, in lines that repeat to the byte: time is
// virtual, and places are symbols.
type Trace struct {
	m     *Machine
	lines []string
}

// Trace starts a record of every hit from here on; an earlier record ends. A line has the virtual
// time in nanoseconds, CPU and task, the probed place, and the event there: see kprobes.EventKind.
func (m *Machine) Trace() *Trace {
	tr := &Trace{m: m}
	m.lab.Kprobes.Observe(tr.event)
	m.t.Cleanup(func() { m.lab.Kprobes.Observe(nil) })
	return tr
}

func (tr *Trace) event(e kprobes.Event) {
	line := fmt.Sprintf("%dns cpu%d task%d %s: %s", tr.m.lab.Machine.Now(), e.CPU, e.Task, tr.place(e), e.Kind)
	switch e.Kind {
	case kprobes.EventResume, kprobes.EventStep, kprobes.EventBoost, kprobes.EventSkipped:
		line += " at " + tr.symbol(e.Addr)
	case kprobes.EventReturnHandler:
		line += fmt.Sprintf(" ax=%#x", e.Regs.AX)
	}
	tr.lines = append(tr.lines, line)
}

// place is the probed place of the event.
func (tr *Trace) place(e kprobes.Event) string {
	if e.Probe == nil {
		return tr.symbol(e.Addr)
	}
	return tr.symbol(e.Probe.Addr)
}

func (tr *Trace) symbol(a x86.Addr) string {
	s, _, _ := strings.Cut(tr.m.lab.Machine.Symbolize(a), "/")
	return strings.TrimSuffix(s, "+0x0")
}

// Printf adds a line of the test's own.
func (tr *Trace) Printf(format string, args ...any) {
	tr.lines = append(tr.lines, fmt.Sprintf(format, args...))
}

// Lines are the lines so far.
func (tr *Trace) Lines() []string { return tr.lines }

// String is the whole trace, each line with its newline.
func (tr *Trace) String() string {
	var b strings.Builder
	for _, l := range tr.lines {
		b.WriteString(l)
		b.WriteByte('\n')
	}
	return b.String()
}

// Golden is Machine.Golden with the whole trace.
func (tr *Trace) Golden(file string) {
	tr.m.t.Helper()
	tr.m.Golden(file, tr.String())
}

// Golden compares text with a file. It writes the file instead if
// KPROBELAB_UPDATE is set, or if the test declares a flag -update and it is
// given. This package declares no flag, so the name is free for the test.
func (m *Machine) Golden(file, text string) {
	m.t.Helper()
	if updating() {
		if err := write(file, text); err != nil {
			m.t.Fatalf("golden file: %v", err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		m.t.Fatalf("golden file: %v; KPROBELAB_UPDATE=1 go test writes it", err)
	} else if err != nil {
		m.t.Fatalf("golden file: %v", err)
	}
	if !bytes.Equal(want, []byte(text)) {
		m.t.Errorf("%s differs; KPROBELAB_UPDATE=1 go test takes the new text\n%s", file, firstDifference(string(want), text))
	}
}

func updating() bool {
	f := flag.Lookup("update")
	return os.Getenv("KPROBELAB_UPDATE") != "" || f != nil && f.Value.String() == "true"
}

func write(file, text string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".golden-*") // a full disk leaves the file that was there
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // the first error says more
	}
	return err
}

// firstDifference shows the first line that is not the same.
func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := 0; ; i++ {
		switch {
		case i >= len(w) && i >= len(g):
			return ""
		case i >= len(w):
			return fmt.Sprintf("line %d: want the end\n          got  %s", i+1, g[i])
		case i >= len(g):
			return fmt.Sprintf("line %d: want %s\n          got  the end", i+1, w[i])
		case w[i] != g[i]:
			return fmt.Sprintf("line %d: want %s\n          got  %s", i+1, w[i], g[i])
		}
	}
}
