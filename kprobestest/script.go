package kprobestest

import (
	"errors"
	"io"

	"kprobelab/script"
)

// Bpftrace runs a bpftrace script, which prints to out, until the test closes it or ends. A script that is not accepted, or
// whose probes the kernel refuses, ends the test; one that ends with an error fails it.
func (m *Machine) Bpftrace(text string, out io.Writer) *script.Run {
	m.t.Helper()
	s, err := script.Bpftrace(m.lab.Image, text, nil)
	return m.script(s, err, out)
}

// Stap runs a script of SystemTap, as Bpftrace runs a script of bpftrace.
func (m *Machine) Stap(text string, out io.Writer) *script.Run {
	m.t.Helper()
	s, err := script.Stap(m.lab.Image, text, nil)
	return m.script(s, err, out)
}

func (m *Machine) script(s *script.Script, err error, out io.Writer) *script.Run {
	m.t.Helper()
	var refused *script.RefusedError
	switch {
	case errors.As(err, &refused):
		m.t.Fatalf("%v\n%s", err, refused.Text)
	case err != nil:
		m.t.Fatal(err)
	}
	run, err := s.Start(m.lab, &script.Output{Out: out, Log: func(line string) { m.t.Log(line) }})
	if err != nil {
		m.t.Fatalf("%v\n%s", err, s.Said().Attached)
	}
	m.t.Cleanup(func() {
		m.t.Helper()
		if err := run.Close(); err != nil {
			m.t.Errorf("the script: %v", err)
		}
	})
	return run
}
