package matrix

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"io"
	"unicode/utf8"
)

// document is the form of JSON.
type document struct {
	// Program is the program with its arguments.
	Program string `json:"program"`
	// ExitCode is the first exit code of a kernel that is not 0.
	ExitCode int `json:"exit_code"`
	// Base is the kernel that the others are compared with, "" if none ran.
	Base string `json:"base"`
	// Repeated says what repeated runs have shown, "" without --repeat.
	Repeated string    `json:"repeated,omitempty"`
	Kernels  []*record `json:"kernels"`
}

// record is a kernel in JSON. The fields Hex are in hexadecimal what is not UTF-8.
type record struct {
	Kernel    string            `json:"kernel"`
	Release   string            `json:"release,omitempty"`
	Seed      int64             `json:"seed,omitempty"`
	ExitCode  int               `json:"exit_code"`
	Error     string            `json:"error,omitempty"`
	Stdout    string            `json:"stdout"`
	StdoutHex string            `json:"stdout_hex,omitempty"`
	Stderr    string            `json:"stderr"`
	StderrHex string            `json:"stderr_hex,omitempty"`
	Same      bool              `json:"same"`
	Diff      string            `json:"diff,omitempty"`
	Events    []json.RawMessage `json:"events"`
}

// JSON writes all as one object. The same runs give the same bytes.
func (m *Matrix) JSON(w io.Writer, program string) error {
	d := document{Program: program, ExitCode: m.Code(), Repeated: m.Repeated(), Kernels: []*record{}}
	if base := m.Base(); base != nil {
		d.Base = base.Kernel
	}
	for _, c := range m.Cells {
		diff := m.Difference(c)
		r := &record{
			Kernel: c.Kernel, Release: c.Release, Seed: c.Seed, ExitCode: c.Code, Same: c.Ran() && diff.Diff == "", Diff: diff.Diff,
			Stdout: c.Stdout.String(), StdoutHex: notText(c.Stdout.Bytes()), Stderr: c.Stderr.String(), StderrHex: notText(c.Stderr.Bytes()),
			Events: []json.RawMessage{},
		}
		if c.Err != nil {
			r.Error = c.Err.Error()
		}
		for line := range bytes.Lines(c.events.Bytes()) {
			r.Events = append(r.Events, json.RawMessage(bytes.TrimSuffix(line, []byte("\n"))))
		}
		d.Kernels = append(d.Kernels, r)
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(d)
}

// notText is the hexadecimal form of bytes that are not UTF-8, "" of others.
func notText(b []byte) string {
	if utf8.Valid(b) {
		return ""
	}
	return hex.EncodeToString(b)
}
