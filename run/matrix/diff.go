package matrix

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"kprobelab/internal/bounded"
)

// Difference returns the difference of two kernels' outputs: a unified diff, "" if they are the same, with the numbers of lines
// that only one of the two has.
type Difference struct {
	Diff           string
	Removed, Added int
}

// Difference compares what was written on a kernel with what the base has. Base and kernels that did not run differ in nothing.
func (m *Matrix) Difference(c *Cell) Difference {
	base := m.Base()
	if base == nil || c == base || !c.Ran() {
		return Difference{}
	}
	var d Difference
	d.add(base, c, "stdout", base.Stdout.Bytes(), c.Stdout.Bytes())
	d.add(base, c, "stderr", base.Stderr.Bytes(), c.Stderr.Bytes())
	return d
}

func (d *Difference) add(base, c *Cell, stream string, old, new []byte) {
	text := diff.Diff(base.Kernel+" "+stream, old, c.Kernel+" "+stream, new)
	if text == nil {
		return
	}
	_, text, _ = bytes.Cut(text, []byte("\n")) // the line "diff A B"
	heads := 2
	for line := range bytes.Lines(text) {
		switch {
		case heads > 0:
			heads--
		case line[0] == '-':
			d.Removed++
		case line[0] == '+':
			d.Added++
		}
	}
	if n := len(text) - bounded.MatrixDiff; n > 0 {
		text = append(text[:bounded.MatrixDiff:bounded.MatrixDiff], fmt.Sprintf("\n… %d bytes of differences more\n", n)...)
	}
	d.Diff += string(text)
}

// String says the same in a few words.
func (d Difference) String() string {
	if d.Diff == "" {
		return "the same"
	}
	return strings.TrimSpace(fmt.Sprintf("differs: +%d -%d lines", d.Added, d.Removed))
}
