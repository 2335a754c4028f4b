package film

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"kprobelab/internal/bounded"
	"kprobelab/x86"
)

// ErrNone is a file that is no film.
var ErrNone = errors.New("it is no film: kprobelab run … --film FILE writes one")

// The sizes of a CPU and of a Code in memory, about.
const sizeOfCPU, sizeOfCode = 256, 128

var errHex = errors.New("bytes are no hexadecimal digits")

// Is reports whether a file begins as a film does.
func Is(b []byte) bool { return bytes.HasPrefix(b, []byte(Magic)) }

// Read reads a film whole.
func Read(r io.Reader) (*Film, error) {
	in := bufio.NewReader(bounded.Reader(r, bounded.FilmFile))
	first, err := in.ReadSlice('\n') // up to the reader's buffer
	number, ok := strings.CutPrefix(strings.TrimSuffix(string(first), "\n"), Magic)
	version, numberErr := strconv.Atoi(number)
	switch {
	case !ok || err != nil || numberErr != nil || version < 1:
		return nil, ErrNone
	case version > Version:
		return nil, fmt.Errorf("this film has version %d of the format, and this program reads version %d: a newer kprobelab plays it", version, Version)
	}
	z, err := gzip.NewReader(in)
	if err != nil {
		return nil, damaged(0, err)
	}
	lines := bufio.NewScanner(bounded.Reader(z, bounded.FilmText))
	lines.Buffer(nil, bounded.FilmLine)
	f := &Film{}
	n := 0
	for ; lines.Scan(); n++ {
		if n == 0 {
			err = f.begin(lines.Bytes())
		} else {
			err = f.add(lines.Bytes())
		}
		if err != nil {
			return nil, damaged(n+1, cmp.Or(lines.Err(), err)) // the last line is cut where reading has failed
		}
	}
	if err := lines.Err(); err != nil {
		return nil, damaged(n+1, err)
	}
	if len(f.States) == 0 {
		return nil, damaged(n+1, io.ErrUnexpectedEOF)
	}
	slices.SortStableFunc(f.symbols, func(a, b Symbol) int { return cmp.Compare(a.At, b.At) })
	return f, nil
}

// damaged is an error at a line of the unpacked text.
func damaged(line int, err error) error {
	var kind *json.UnmarshalTypeError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = errors.New("it ends before its end")
	case errors.As(err, &kind):
		err = fmt.Errorf("%s is a %s", kind.Field, kind.Value)
	}
	return fmt.Errorf("the film is damaged at line %d: %w", line, err)
}

func (f *Film) begin(line []byte) error {
	if err := json.Unmarshal(line, &f.Head); err != nil {
		return err
	}
	if f.Head.CPUs < 1 || f.Head.CPUs > bounded.FilmCPUs {
		return fmt.Errorf("it has %d processors; a film has 1 to %d", f.Head.CPUs, bounded.FilmCPUs)
	}
	return nil
}

// add appends the state that a line describes by its difference to the one before.
func (f *Film) add(line []byte) error {
	var d frame
	if err := json.Unmarshal(line, &d); err != nil {
		return err
	}
	if len(f.States) >= bounded.FilmStates {
		return fmt.Errorf("it has more than %d states", bounded.FilmStates)
	}
	s := State{CPUs: make([]CPU, f.Head.CPUs)}
	if n := len(f.States); n > 0 {
		s = f.States[n-1]
	}
	s.Who, s.Text, s.Now, s.Ran, s.CPU = d.Who, d.Text, d.Now, d.Ran, -1
	if d.CPU != nil {
		if s.CPU = *d.CPU; s.CPU < 0 || s.CPU >= f.Head.CPUs {
			return fmt.Errorf("there is no processor %d", s.CPU)
		}
	}
	if len(d.CPUs) > 0 {
		s.CPUs = slices.Clone(s.CPUs)
		f.copied += len(s.CPUs) * sizeOfCPU
	}
	for _, c := range d.CPUs {
		if c.CPU < 0 || c.CPU >= len(s.CPUs) {
			return fmt.Errorf("there is no processor %d", c.CPU)
		}
		if err := s.CPUs[c.CPU].take(&c); err != nil {
			return err
		}
	}
	copied, err := s.takeCode(&d)
	if err != nil {
		return err
	}
	if f.copied += copied; f.copied > bounded.FilmMemory {
		return errors.New("it changes more code and registers than a film may")
	}
	if d.Probes != nil {
		s.Probes = *d.Probes
	}
	s.Log = append(s.Log, d.Log...)
	f.States = append(f.States, s)
	f.symbols = append(f.symbols, d.Symbols...)
	return nil
}

func (c *CPU) take(d *cpuChange) error {
	if d.Task != "" {
		c.Task = d.Task
	}
	if d.Frame != nil {
		c.Frame = *d.Frame
	}
	for name, v := range d.Regs {
		n := slices.IndexFunc(registers, func(r struct {
			name string
			of   func(*x86.PtRegs) *uint64
		}) bool {
			return r.name == name
		})
		if n < 0 {
			return fmt.Errorf("there is no register %q", name)
		}
		c.Known, *registers[n].of(&c.Regs) = true, uint64(v)
	}
	if d.Stack != nil {
		if len(d.Stack) > bounded.FilmStack {
			return fmt.Errorf("it has %d words of a stack; a film has at most %d", len(d.Stack), bounded.FilmStack)
		}
		c.Stack = make([]uint64, len(d.Stack))
		for i, w := range d.Stack {
			c.Stack[i] = uint64(w)
		}
	}
	return nil
}

// takeCode makes the changes of code, and returns the number of bytes that it copied.
func (s *State) takeCode(d *frame) (bytesCopied int, err error) {
	if len(d.Gone)+len(d.New)+len(d.Writes) == 0 {
		return 0, nil
	}
	s.Code = slices.Clone(s.Code)
	bytesCopied = len(s.Code) * sizeOfCode
	for _, at := range d.Gone {
		n := codeAt(s.Code, x86.Addr(at))
		if n < 0 {
			return 0, fmt.Errorf("there is no code at %x", uint64(at))
		}
		s.Code = slices.Delete(s.Code, n, n+1)
	}
	for _, c := range d.New {
		switch {
		case len(s.Code) >= bounded.FilmCode || len(c.Bytes) > bounded.FilmCodeSize:
			return 0, fmt.Errorf("it has too much code: at most %d pieces of %d bytes", bounded.FilmCode, bounded.FilmCodeSize)
		case c.Original != nil && len(c.Original) != len(c.Bytes):
			return 0, fmt.Errorf("%s has %d bytes, and %d original ones", c.Name, len(c.Bytes), len(c.Original))
		case codeAt(s.Code, x86.Addr(c.At)) >= 0:
			return 0, fmt.Errorf("there is code at %x already", uint64(c.At))
		}
		s.Code = append(s.Code, Code{c.Name, c.Kind, x86.Addr(c.At), c.Bytes, c.Original})
	}
	copied := map[int]bool{}
	for _, w := range d.Writes {
		n := slices.IndexFunc(s.Code, func(c Code) bool {
			off := uint64(w.At) - uint64(c.At)
			return off < uint64(len(c.Bytes)) && off+uint64(len(w.Bytes)) <= uint64(len(c.Bytes))
		})
		if n < 0 {
			return 0, fmt.Errorf("there is no code at %x", uint64(w.At))
		}
		if c := &s.Code[n]; !copied[n] {
			c.Bytes, copied[n] = bytes.Clone(c.Bytes), true
			bytesCopied += len(c.Bytes)
		}
		copy(s.Code[n].Bytes[uint64(w.At)-uint64(s.Code[n].At):], w.Bytes)
	}
	return bytesCopied, nil
}
