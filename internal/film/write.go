package film

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"kprobelab/internal/bounded"
)

// Magic is a film's first line, without the version.
const Magic = "kprobelab film "

// Writer writes a film.
type Writer struct {
	z    *gzip.Writer
	last State
	// states and written are the number of states and of their bytes so far.
	states, written int
	err             error
	// symbols are the symbols that the next state brings.
	symbols []Symbol
	// lost is the number of states for which there was no room.
	lost int
}

// NewWriter writes a film's head. The caller ends with Close.
func NewWriter(w io.Writer, h Head) (*Writer, error) {
	if _, err := fmt.Fprintf(w, "%s%d\n", Magic, Version); err != nil {
		return nil, err
	}
	z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if h.CPUs > bounded.FilmCPUs {
		return nil, fmt.Errorf("a film has at most %d processors, and this machine has %d", bounded.FilmCPUs, h.CPUs)
	}
	f := &Writer{z: z}
	f.last.CPUs = make([]CPU, h.CPUs)
	return f, f.line(h)
}

// line writes a line.
func (f *Writer) line(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	f.written += len(b) + 1
	_, err = f.z.Write(append(b, '\n'))
	return err
}

// Name adds a symbol. The caller gives each address range once.
func (f *Writer) Name(s Symbol) { f.symbols = append(f.symbols, s) }

// Add writes the next state. s.Log has the lines that are new. Past bounded.FilmStates, states are counted and
// not written. Add keeps no slice of s.
func (f *Writer) Add(s *State) {
	switch {
	case f.err != nil:
		return
	case f.states >= bounded.FilmStates-1, f.written > bounded.FilmText-2*bounded.FilmLine: // the last line says how many there were
		f.lost++
		return
	}
	f.states++
	f.err = f.line(f.difference(s))
}

// difference returns the difference to the state before, which it then replaces.
func (f *Writer) difference(s *State) *frame {
	d := &frame{Who: s.Who, Text: s.Text, Now: s.Now, Ran: s.Ran, Log: s.Log, Symbols: f.symbols}
	f.symbols = nil
	if s.CPU >= 0 {
		d.CPU = &s.CPU
	}
	for n := range f.last.CPUs {
		if c := f.last.CPUs[n].change(n, &s.CPUs[n]); c != nil {
			d.CPUs = append(d.CPUs, *c)
		}
	}
	for _, old := range f.last.Code {
		if codeAt(s.Code, old.At) < 0 {
			d.Gone = append(d.Gone, Word(old.At))
		}
	}
	for i := range s.Code {
		c := &s.Code[i]
		n := codeAt(f.last.Code, c.At)
		if n < 0 || len(f.last.Code[n].Bytes) != len(c.Bytes) {
			if n >= 0 {
				d.Gone = append(d.Gone, Word(c.At))
			}
			d.New = append(d.New, newCode{c.Name, c.Kind, Word(c.At), c.Bytes, c.Original})
			continue
		}
		d.Writes = append(d.Writes, writes(c, f.last.Code[n].Bytes)...)
	}
	if !slices.Equal(f.last.Probes, s.Probes) {
		d.Probes = &s.Probes
	}
	f.last = State{CPUs: slices.Clone(s.CPUs), Probes: slices.Clone(s.Probes)}
	for _, c := range s.Code {
		c.Bytes = bytes.Clone(c.Bytes)
		f.last.Code = append(f.last.Code, c)
	}
	for n := range f.last.CPUs {
		f.last.CPUs[n].Stack = slices.Clone(f.last.CPUs[n].Stack)
	}
	return d
}

// change returns what is new of a processor, nil for nothing.
func (c *CPU) change(n int, now *CPU) *cpuChange {
	d := &cpuChange{CPU: n}
	if c.Task != now.Task {
		d.Task = now.Task
	}
	if !now.Known {
		if d.Task == "" {
			return nil
		}
		return d
	}
	if c.Frame != now.Frame {
		d.Frame = &now.Frame
	}
	for _, r := range registers {
		if v := *r.of(&now.Regs); !c.Known || v != *r.of(&c.Regs) {
			if d.Regs == nil {
				d.Regs = map[string]Word{}
			}
			d.Regs[r.name] = Word(v)
		}
	}
	if !slices.Equal(c.Stack, now.Stack) {
		for _, w := range now.Stack {
			d.Stack = append(d.Stack, Word(w))
		}
	}
	if d.Task == "" && d.Frame == nil && d.Regs == nil && d.Stack == nil {
		return nil
	}
	return d
}

// writes are the runs of bytes that differ from was.
func writes(c *Code, was []byte) (list []write) {
	for i := 0; i < len(was); i++ {
		n := i
		for n < len(was) && was[n] != c.Bytes[n] {
			n++
		}
		if n > i {
			list = append(list, write{Word(c.At.Add(int64(i))), bytes.Clone(c.Bytes[i:n])})
			i = n
		}
	}
	return list
}

// Close ends the film, and returns the first error of writing.
func (f *Writer) Close() error {
	if f.lost > 0 && f.err == nil {
		f.err = f.line(frame{Who: "film", Text: fmt.Sprintf("The film is full: %d more states are not in it.", f.lost)})
	}
	err := f.z.Close()
	if f.err != nil {
		return f.err
	}
	return err
}
