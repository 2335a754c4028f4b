package run

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"kprobelab/internal/debuginfo"
	"kprobelab/internal/perfprobe"
	"kprobelab/internal/source"
	"kprobelab/internal/tracing/definition"
	"kprobelab/profile"
)

// IsUserEvent reports a definition of a uprobe.
func IsUserEvent(line string) bool { return definition.ReadLine(line).User() }

// IsKernelsEvent reports a definition that goes to a booted kernel's own dynamic_events: a uprobe, or an event that is
// neither a kprobe nor a uprobe.
func IsKernelsEvent(line string) bool {
	l := definition.ReadLine(line)
	return l.User() || l.Other() != ""
}

// Source is the debugging information of a program or a library. It resolves definitions that name lines and variables
// of the source.
type Source struct{ w *perfprobe.Writer }

// OpenSource reads a program or a library, with its debugging information if it has some.
func OpenSource(path string, rules *profile.Config) (*Source, error) {
	f, err := source.Open(path)
	if err == nil && f.Program() == "" {
		return nil, source.ErrNone
	}
	if err != nil {
		f, err = source.OfProgram(path)
	}
	if err != nil {
		return nil, err
	}
	return &Source{&perfprobe.Writer{File: f, Features: debuginfo.Features(rules)}}, nil
}

// Definitions returns the uprobe definitions for a line about the program: the line itself if it is a definition,
// otherwise the definitions of the probe that the line describes in the syntax of perf probe.
func (s *Source) Definitions(line string) ([]string, error) {
	l := definition.ReadLine(line)
	program := s.w.File.Program()
	switch {
	case l.Empty():
		return nil, misused("-e needs a definition, such as 'p:name %s:0x1234'", program)
	case l.User():
		return []string{line}, nil
	case l.Defines():
		return nil, notAUprobe(s.w.File, l.Words)
	case l.Other() != "":
		return nil, misused("%q: %s are of kernels, and %s is a program: a uprobe is defined as p[:[GRP/]EVENT] PATH:OFFSET", line, l.Other(), program)
	}
	p, err := perfprobe.Parse(l)
	if err != nil {
		return nil, misused("%w (a definition of uprobe_events begins with p: or r:)", err)
	}
	list, err := s.w.Define(p)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", line, err)
	}
	var out []string
	for _, d := range list {
		out = append(out, d.Line().Text)
	}
	return out, nil
}

// notAUprobe says why a definition is none of a uprobe's, and what it could be.
func notAUprobe(f *source.File, words []string) error {
	if len(words) < 2 {
		return misused("%q: want p[:[GRP/]EVENT] PATH:OFFSET", strings.Join(words, " "))
	}
	file, place := "", words[1]
	i := strings.LastIndexByte(words[1], ':')
	if i >= 0 {
		file, place = words[1][:i], words[1][i+1:]
	}
	symbol, _, _ := strings.Cut(place, "+")
	symbol, _, _ = strings.Cut(symbol, "%")
	list := f.Symbols(symbol)
	function := slices.IndexFunc(list, func(s source.Symbol) bool { return s.Func })
	switch {
	case function >= 0:
		if at, ok := f.FileOffset(list[function].Start); ok {
			return misused("%q: a uprobe is defined by its offset in the file, not by a symbol: %s:0x%x for %s", words[1], f.Program(), at, symbol)
		}
	case i >= 0 && !strings.Contains(file, "/"):
		return misused("%q: the path of a uprobe's file has a slash: ./%s", words[1], words[1])
	}
	return misused("%q: %s is a program, and a uprobe is defined as PATH:OFFSET", words[1], f.Program())
}

// SourceError makes err an *Error: misuse for a syntax error, an unusable file for faulty debugging information, else a
// refusal.
func SourceError(err error) error {
	var syntax *perfprobe.SyntaxError
	var file *debuginfo.FileError
	var known *Error
	switch {
	case err == nil, errors.As(err, &known):
		return err
	case errors.As(err, &syntax):
		return &Error{Misused, err}
	case errors.As(err, &file), errors.Is(err, source.ErrDamaged), errors.Is(err, source.ErrTooMuch), errors.Is(err, source.ErrNone):
		return unusable(err)
	}
	return refused(err)
}

// definitions are the definitions of uprobes that the lines mean. Only words of the source need the program's own file.
func (f *Files) definitions(rules *profile.Config, lines []string) (list []string, err error) {
	var s *Source
	for _, line := range lines {
		if IsUserEvent(line) {
			list = append(list, line)
			continue
		}
		if s == nil {
			if s, err = OpenSource(f.host, rules); err != nil {
				return nil, misused("%q: want p[:[GRP/]EVENT] PATH:OFFSET; a place in the words of the source is looked for in the program: %w", line, err)
			}
		}
		more, err := s.Definitions(line)
		if err != nil {
			return nil, SourceError(err)
		}
		list = append(list, more...)
	}
	return list, nil
}
