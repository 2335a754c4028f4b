package report

import (
	"fmt"
	"strings"

	"kprobelab/optimizer"
	"kprobelab/x86"
)

// cell is the width of a byte in the picture, in columns.
const cell = 4

// picture draws the region as kprobes.rst does in "Terminology": the bytes around the
// insertion address (IA), the instructions, the detoured code region (DCR) and the jump
// target prohibition region (JTPR), and under it the jumps into it.
func (w *explanationWriter) picture() {
	p := drawing{r: w.e.Region, n: len(w.e.Region.Bytes)}
	w.title("region")
	w.line("IA", p.put(0, "v"))
	w.line("offset", p.offsets())
	w.line("bytes", p.bytes())
	w.line("instructions", p.instructions())
	if end := p.r.FunctionEnd; end < p.r.From+p.n {
		w.line("function", p.upTo(end, fmt.Sprintf("ends at %+d", end)))
	}
	w.line("jump", p.bar(0, x86.Rel32Size, "[e9][    rel32     ]"))
	if size := w.regionSize(); size > 0 {
		w.line("DCR", p.span(0, size))
	}
	w.line("JTPR, code", p.span(1, 1+x86.Rel32Size))
	w.line("JTPR, doc", p.span(1, x86.Rel32Size))
	if marks := p.marks(); marks != "" {
		w.line("jumps", marks)
	}
	w.legend(&p)
}

func (w *explanationWriter) line(name, text string) {
	fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf("  %-14s%s", name, text), " "))
}

// regionSize returns the length of the DCR, as far as it could be decoded, in bytes.
func (w *explanationWriter) regionSize() int { return min(w.e.DCR.Len(), optimizer.MaxRegion) }

// legend names the instructions and the jumps.
func (w *explanationWriter) legend(p *drawing) {
	for i, in := range p.r.Instructions {
		kept := ""
		if in.Start >= 0 && in.Start < w.regionSize() && !in.Boostable {
			kept = "   not boostable"
		}
		fmt.Fprintf(w, "    %d  %+-4d %s%s\n", i+1, in.Start, in.Text, kept)
	}
	for _, j := range p.r.Jumps {
		fmt.Fprintf(w, "    ^  %+-4d from +%#x: %s, %s\n", j.To, j.Offset, j.Text, verdictOf(&j))
	}
}

// verdictOf says whether a jump prevents the optimization.
func verdictOf(j *RegionJump) string {
	switch {
	case j.Prohibited && j.Documented:
		return "prohibited"
	case j.Prohibited:
		return "prohibited by the code, not by the documentation"
	}
	return "harmless"
}

// drawing places things by their offset from the probe.
type drawing struct {
	r *Region
	// n is the number of bytes.
	n int
}

// col returns the column at which the byte at an offset begins.
func (p *drawing) col(off int) int { return (off - p.r.From) * cell }

// put returns text, indented to the middle of the byte at an offset.
func (p *drawing) put(off int, text string) string {
	return strings.Repeat(" ", p.col(off)+1) + text
}

func (p *drawing) offsets() string {
	var b strings.Builder
	for i := range p.n {
		text := fmt.Sprintf("[%2d]", p.r.From+i)
		if len(text) > cell { // no room for brackets
			text = fmt.Sprintf("%3d ", p.r.From+i)
		}
		b.WriteString(text)
	}
	return b.String()
}

func (p *drawing) bytes() string {
	var b strings.Builder
	for i := range p.n {
		fmt.Fprintf(&b, " %02x ", p.r.Bytes[i])
	}
	return b.String()
}

// bar is text that fills the bytes from a to b.
func (p *drawing) bar(a, b int, text string) string {
	width := (b - a) * cell
	if len(text) > width {
		text = text[:width]
	}
	return strings.Repeat(" ", p.col(a)) + text
}

// upTo returns a line that ends at the byte at an offset, with text after it.
func (p *drawing) upTo(end int, text string) string {
	return strings.Repeat("-", max(0, p.col(end)-1)) + "] " + text
}

// span is [<---->] over the bytes from a to b.
func (p *drawing) span(a, b int) string {
	return p.bar(a, b, "[<"+strings.Repeat("-", max(0, (b-a)*cell-4))+">]")
}

// instructions are brackets with the number that the legend explains.
func (p *drawing) instructions() string {
	line := []byte(strings.Repeat(" ", p.n*cell))
	for i, in := range p.r.Instructions {
		a, b := max(0, p.col(in.Start)), min(len(line), p.col(in.End))
		if b-a < 2 {
			continue
		}
		for j := a; j < b; j++ {
			line[j] = ' '
		}
		if in.Start >= p.r.From {
			line[a] = '['
		}
		if p.col(in.End) <= len(line) {
			line[b-1] = ']'
		}
		number := fmt.Sprint(i + 1)
		copy(line[(a+b-len(number))/2:b-1], number)
	}
	return string(line)
}

// marks are carets under the bytes that jumps lead to.
func (p *drawing) marks() string {
	line := []byte(strings.Repeat(" ", p.n*cell))
	for _, j := range p.r.Jumps {
		if c := p.col(j.To) + 1; c >= 0 && c < len(line) {
			line[c] = '^'
		}
	}
	return strings.TrimRight(string(line), " ")
}
