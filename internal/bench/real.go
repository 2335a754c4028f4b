package bench

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Real is the cost of a hit on one path of a real kernel, in nanoseconds of the host, as the module
// of make bench-qemu measured it.
type Real struct {
	// Path is named as kprobelab's; Form distinguishes the probed instructions on it: "plain",
	// "jmp", "entry-handler", …
	Path, Form string
	// Kernel is the release, as uname -r prints it; Preemption its PREEMPTION.
	Kernel     string
	Preemption bool
	// Error says why there is no figure; "" when there is one.
	Error string
	// Samples are the rounds.
	Samples []float64
}

// RealKernels holds the measurements of real kernels.
type RealKernels struct {
	// Machines describe the machines of the measurements, a line each.
	Machines []string
	Rows     []Real
}

// ErrReal is the error class for a file that is no output of make bench-qemu.
var ErrReal = errors.New("not figures of make bench-qemu")

// ParseReal reads lines of words "key=value", with quotes around values that contain blanks. There
// are three kinds of lines. "machine" describes the machine of the following lines, "kernel" names
// the kernel of the following lines, and "bench" is a path, with its samples after "ns=". Lines of
// the same path, form and kernel are rounds of one row. Blank lines and lines that begin with # are
// skipped. The error is ErrReal.
func ParseReal(text string) (*RealKernels, error) {
	m := &RealKernels{}
	kernel := map[string]string{}
	number := 0
	for line := range strings.Lines(text) {
		number++
		kind, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if kind == "" || kind[0] == '#' {
			continue
		}
		words, err := keysAndValues(rest)
		if err == nil {
			switch kind {
			case "machine":
				m.machine(rest)
			case "kernel":
				kernel = words
			case "bench":
				err = m.row(kernel, words)
			default:
				err = fmt.Errorf("%q is none of machine, kernel, bench", kind)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrReal, number, err)
		}
	}
	if len(m.Rows) == 0 {
		return nil, fmt.Errorf("%w: no line of a path", ErrReal)
	}
	return m, nil
}

// keysAndValues takes "key=value" and `key="a value"` apart.
func keysAndValues(text string) (map[string]string, error) {
	words := map[string]string{}
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		key, rest, ok := strings.Cut(text, "=")
		if !ok || key == "" || strings.ContainsAny(key, " \"") {
			return nil, fmt.Errorf("%q is not key=value", text)
		}
		if !strings.HasPrefix(rest, `"`) {
			words[key], text, _ = strings.Cut(rest, " ")
			continue
		}
		quoted, err := strconv.QuotedPrefix(rest)
		if err != nil {
			return nil, fmt.Errorf("%q has no end", rest)
		}
		if words[key], err = strconv.Unquote(quoted); err != nil {
			return nil, err
		}
		text = rest[len(quoted):]
	}
	return words, nil
}

func (m *RealKernels) machine(line string) {
	if !slices.Contains(m.Machines, line) {
		m.Machines = append(m.Machines, line)
	}
}

func (m *RealKernels) row(kernel, words map[string]string) error {
	r := Real{Path: words["path"], Form: words["form"], Error: words["error"], Kernel: kernel["release"], Preemption: kernel["preemption"] == "1"}
	if r.Kernel == "" {
		return errors.New("a path before the first kernel's release")
	}
	if r.Path == "" {
		return errors.New("no path")
	}
	if r.Error == "" {
		for v := range strings.SplitSeq(words["ns"], ",") {
			ns, err := strconv.ParseFloat(v, 64)
			if err != nil {
				return fmt.Errorf("path %s: ns: %w", r.Path, err)
			}
			r.Samples = append(r.Samples, ns)
		}
	}
	m.add(r)
	return nil
}

// add appends a row's rounds to the row of the same path, form and kernel. A path
// that failed once has no figure.
func (m *RealKernels) add(r Real) {
	for i := range m.Rows {
		if same := &m.Rows[i]; same.Path == r.Path && same.Form == r.Form && same.Kernel == r.Kernel {
			same.Samples = append(same.Samples, r.Samples...)
			if r.Error != "" {
				same.Error = r.Error
			}
			return
		}
	}
	m.Rows = append(m.Rows, r)
}

// Config says in words whose rules the kernel runs on.
func (r *Real) Config() string {
	if r.Preemption {
		return r.Kernel
	}
	return r.Kernel + " (no PREEMPTION)"
}

// majorMinor is the first two numbers of a kernel's release or of a profile's name.
func majorMinor(name string) string {
	end := strings.IndexFunc(name, func(c rune) bool { return c != '.' && (c < '0' || c > '9') })
	if end >= 0 {
		name = name[:end]
	}
	parts := strings.SplitN(name, ".", 3)
	return strings.Join(parts[:min(len(parts), 2)], ".")
}
