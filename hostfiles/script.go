package hostfiles

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"kprobelab/internal/bounded"
)

// The kernel's limits of a script: its first line, and how many scripts may name each other (fs/binfmt_script.c, fs/exec.c).
const (
	scriptLine  = 256
	scriptDepth = 5
)

// script adds the program that a script's first line names.
func (s *Set) script(file, name string, depth int) error {
	f, err := bounded.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	b := make([]byte, scriptLine)
	n, err := io.ReadFull(f, b)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	line, _, whole := bytes.Cut(b[:n], []byte("\n"))
	switch {
	case n == 0:
		return fmt.Errorf("%s: %w: it is empty", name, ErrProgram)
	case !bytes.HasPrefix(line, []byte("#!")):
		return fmt.Errorf("%s: %w: it is neither an ELF program nor a script with #! in its first line", name, ErrProgram)
	case !whole && n == scriptLine:
		return fmt.Errorf("%s: %w: its first line has more than %d bytes", name, ErrProgram, scriptLine)
	case depth == scriptDepth:
		return fmt.Errorf("%s: %w: more than %d scripts name each other", name, ErrProgram, scriptDepth)
	}
	interpreter, argument, _ := strings.Cut(strings.Trim(string(line[2:]), " \t"), " ")
	if !path.IsAbs(interpreter) {
		return fmt.Errorf("%s: %w: its first line names %q, no absolute path", name, ErrProgram, interpreter)
	}
	if err := s.interpreter(interpreter, name, depth); err != nil {
		return err
	}
	if path.Base(interpreter) != "env" {
		return nil
	}
	for _, word := range strings.Fields(argument) {
		if strings.HasPrefix(word, "-") || strings.Contains(word, "=") {
			continue
		}
		return s.interpreter(word, name, depth)
	}
	return nil
}

func (s *Set) interpreter(program, name string, depth int) error {
	p := place{tree(s.Root), program}
	if !path.IsAbs(program) {
		var err error
		if p, err = s.named(program); err != nil {
			return fmt.Errorf("%s: its first line: %w", name, err)
		}
	}
	if _, err := p.in.real(p.path); err != nil {
		return &MissingError{Name: program, Of: name}
	}
	_, err := s.program(p, program, depth+1)
	return err
}
