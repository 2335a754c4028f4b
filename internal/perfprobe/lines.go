package perfprobe

import (
	"strconv"
	"strings"

	"kprobelab/internal/source"
	"kprobelab/internal/tracing/definition"
)

// Range is a range of lines of a function or a file.
type Range struct {
	Where source.Where
	// From and To are counted from the function's own line where there is one; To is -1
	// for the end.
	From, To int
}

// ParseLines reads FILE[:A[+N|-B]] or FUNC[@FILE][:A[+N|-B]].
func ParseLines(text string) (r Range, err error) {
	name, lines, some := strings.Cut(text, ":")
	r.To = -1
	if some {
		if err := r.lines(lines); err != nil {
			return r, err
		}
	}
	switch fn, file, both := strings.Cut(name, "@"); {
	case both:
		r.Where.Function, r.Where.File = fn, file
	case strings.ContainsAny(name, "/."):
		r.Where.File = name
	default:
		r.Where.Function = name
	}
	if r.Where.File == "" && !definition.IsName(r.Where.Function) {
		return r, wrong("%q is no function and no file", name)
	}
	return r, nil
}

func (r *Range) lines(s string) error {
	at := strings.IndexAny(s, "+-")
	first, rest := s, ""
	if at >= 0 {
		first, rest = s[:at], s[at:]
	}
	var err error
	if r.From, err = strconv.Atoi(first); err != nil || r.From < 0 {
		return wrong("%q is no line number", first)
	}
	if rest == "" {
		return nil
	}
	n, err := strconv.ParseInt(rest[1:], 0, 31)
	if err != nil || n < 0 {
		return wrong("%q is no line number", rest[1:])
	}
	if r.To = int(n); rest[0] == '+' {
		r.To += r.From - 1
	}
	if r.From > r.To {
		return wrong("line %d is after line %d", r.From, r.To)
	}
	return nil
}
