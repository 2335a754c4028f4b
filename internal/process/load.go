package process

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"kprobelab/errno"
	"kprobelab/x86"
)

// loaded is a program that can be mapped: its file, its image, its arguments.
type loaded struct {
	file  *File
	args  []string
	image *image
	// interp is its dynamic linker, nil if it has none.
	interp *image
	bias   x86.Addr
}

// span returns the address range of the program.
func (l *loaded) span() x86.Range {
	return x86.Range{Start: l.image.span.Start + l.bias, End: l.image.span.End + l.bias}
}

// A script's first line, and how many scripts may name one another (BINPRM_BUF_SIZE, exec_binprm).
const (
	maxLine    = 256
	maxScripts = 5
)

// NoInterpreterError is a program whose interpreter is no file that it can open. It unwraps to ENOENT.
type NoInterpreterError struct{ Program, Interpreter string }

// Error implements error.
func (e *NoInterpreterError) Error() string {
	return fmt.Sprintf("%s needs its interpreter %s, which was not given: %v", e.Program, e.Interpreter, errno.ENOENT)
}

// Unwrap is the errno that execve returns.
func (e *NoInterpreterError) Unwrap() error { return errno.ENOENT }

// prepare finds the program that execve of a file would execute.
func (p *Process) prepare(f *File, args []string) (*loaded, error) {
	l := &loaded{file: f, args: args}
	for n := 0; bytes.HasPrefix(f.Data, []byte("#!")); n++ {
		name, argument, err := interpreterLine(f)
		if err != nil {
			return nil, err
		}
		next, err := p.fileToRun(Clean(name))
		switch {
		case err != nil:
			return nil, err
		case next == nil:
			return nil, &NoInterpreterError{f.Name, name}
		case n == maxScripts:
			return nil, fmt.Errorf("%s: more than %d scripts name one another as interpreters: %w", f.Name, maxScripts, errno.ELOOP)
		}
		list := []string{name}
		if argument != "" {
			list = append(list, argument)
		}
		l.args = append(append(list, f.Name), l.args[min(1, len(l.args)):]...)
		f = next
	}
	var err error
	if l.image, err = readImage(f); err != nil {
		return nil, err
	}
	if name := l.image.interp; name != "" {
		ld, err := p.fileToRun(name)
		switch {
		case err != nil:
			return nil, err
		case ld == nil:
			return nil, &NoInterpreterError{f.Name, name}
		}
		if l.interp, err = readImage(ld); err != nil {
			return nil, err
		}
	}
	l.bias = l.image.bias()
	if window := l.image.window(); window.Start < lowest || window.End > mapTop-mapSize {
		return nil, fmt.Errorf("%s: %w: its address %s cannot be used", f.Name, ErrNotELF, window.Start)
	}
	return l, nil
}

// interpreterLine reads a script's first line (load_script).
func interpreterLine(f *File) (name, argument string, err error) {
	line, _, ended := bytes.Cut(f.Data[2:min(len(f.Data), maxLine)], []byte("\n"))
	text := strings.Trim(string(line), " \t")
	name, argument, found := strings.Cut(text, " ")
	if tab := strings.IndexByte(text, '\t'); tab >= 0 && (!found || tab < len(name)) {
		name, argument, found = text[:tab], text[tab+1:], true
	}
	if name == "" || strings.ContainsRune(text, 0) || !ended && !found && len(f.Data) >= maxLine {
		return "", "", fmt.Errorf("%s: its first line names no interpreter: %w", f.Name, errno.ENOEXEC)
	}
	return name, strings.Trim(argument, " \t"), nil
}

func (im *image) bias() x86.Addr {
	if im.position {
		return dynBase - im.span.Start
	}
	return 0
}

// trampolineRoom is the room for the mappings that the kernel makes close to a program, below it.
const trampolineRoom = 16 * PageSize

// window returns the address range that the program and its heap may take.
func (im *image) window() x86.Range {
	start := im.span.Start + im.bias()
	return x86.Range{Start: min(start, max(start-min(start, trampolineRoom), lowest)), End: im.span.End + im.bias() + breakRoom}
}

// windows returns the address ranges in which programs may have memory: one of each file that could
// be a program, mmap's area, and the stack.
func (p *Process) windows() []x86.Range {
	var list []x86.Range
	for _, f := range p.files {
		im, err := readImage(f)
		if err != nil {
			continue // execve will say so
		}
		if w := im.window(); w.Start >= lowest && w.End <= mapTop-mapSize {
			list = append(list, w)
		}
	}
	slices.SortFunc(list, func(a, b x86.Range) int { return cmp.Compare(a.Start, b.Start) })
	out := list[:0]
	for _, w := range list {
		if n := len(out); n > 0 && w.Start <= out[n-1].End {
			out[n-1].End = max(out[n-1].End, w.End)
			continue
		}
		out = append(out, w)
	}
	return append(out, x86.Range{Start: mapTop - mapSize, End: mapTop}, x86.Range{Start: stackTop - stackSize, End: stackTop})
}
