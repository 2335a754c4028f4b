package report

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"kprobelab/errno"
	"kprobelab/kprobes/probepoint"
	"kprobelab/kprobes/rule"
)

// Style marks text for a terminal. The zero value leaves it plain.
type Style struct{ Bold, Red, Cyan func(string) string }

func mark(by func(string) string, text string) string {
	if by == nil {
		return text
	}
	return by(text)
}

func (s *Style) bold(text string) string { return mark(s.Bold, text) }
func (s *Style) red(text string) string  { return mark(s.Red, text) }
func (s *Style) cyan(text string) string { return mark(s.Cyan, text) }

// explanationWriter writes an explanation for people.
type explanationWriter struct {
	*bufio.Writer
	Style
	e *Explanation
}

// WriteText writes the explanation for people: the answer, every reason, the
// picture of the region, the slot, the detour buffer, and other addresses.
func (e *Explanation) WriteText(out io.Writer, s Style) error {
	w := explanationWriter{bufio.NewWriter(out), s, e}
	w.point()
	w.registration()
	w.hazards()
	w.optimization()
	if e.Region != nil && len(e.Region.Bytes) > 0 {
		w.picture()
	}
	w.block("slot", e.Slot)
	w.block("detour buffer", e.Detour)
	w.nearest()
	return w.Flush()
}

// title begins a part.
func (w *explanationWriter) title(text string) { fmt.Fprintf(w, "\n%s\n", w.bold(text)) }

// point is the address, its function and the instruction there.
func (w *explanationWriter) point() {
	e := w.e
	name := e.Addr.String()
	if e.Symbol != "" {
		name = fmt.Sprintf("%s+%#x", e.Symbol, e.Offset)
		if e.SymbolSize != 0 {
			name += fmt.Sprintf("/%#x", e.SymbolSize)
		}
		if e.Addr.Known {
			name += fmt.Sprintf(" (%s)", e.Addr)
		}
	}
	fmt.Fprintln(w, w.bold(name))
	if e.PlacedAt.Known && e.PlacedAt != e.Addr {
		fmt.Fprintf(w, "  placed at %s, past the ENDBR\n", e.PlacedAt)
	}
	if e.Instruction != nil {
		inside := ""
		if e.RegisterReason == rule.NotBoundary {
			inside = "  (decoded from here; the function has no such instruction)"
		}
		fmt.Fprintf(w, "  %s  %s%s\n", e.Instruction.Bytes, w.cyan(e.Instruction.Text), inside)
	}
}

// registration writes register_kprobe's answer and how the probe runs.
func (w *explanationWriter) registration() {
	e := w.e
	w.title("registration")
	if e.Errno != 0 {
		fmt.Fprintf(w, "  %s %s: %s\n", w.red(errno.Errno(-e.Errno).Name()), e.RegisterReason, e.RegisterWhy)
		return
	}
	fmt.Fprintf(w, "  accepted, %s: %s\n", e.Way, e.Way.Means())
	if e.Emulation != "" && e.Way != probepoint.Emulated {
		fmt.Fprintf(w, "  (otherwise %s emulates the instruction)\n", e.Emulation)
	} else if e.Emulation != "" {
		fmt.Fprintf(w, "  (%s)\n", e.Emulation)
	}
	w.pool()
}

// optimization is the verdict with all reasons.
func (w *explanationWriter) optimization() {
	e := w.e
	w.title("optimization")
	switch {
	case e.Optimized:
		fmt.Fprintln(w, "  optimized: a jump to the detour buffer takes the int3's place")
	case e.Errno != 0 && !e.PlacedAt.Known:
		fmt.Fprintln(w, "  no: the probe is refused")
	case e.Errno != 0 && len(e.Reasons) == 0:
		fmt.Fprintln(w, "  no: the probe is refused; no rule would prevent the optimization")
	case e.Errno != 0:
		fmt.Fprintf(w, "  no: the probe is refused; besides, %s would prevent the optimization\n", Counted(len(e.Reasons), "rule"))
	default:
		fmt.Fprintf(w, "  no, for %s\n", Counted(len(e.Reasons), "reason"))
	}
	for i := range e.Reasons {
		r := &e.Reasons[i]
		fmt.Fprintf(w, "  %s%s\n", w.red(r.ID.String()), stops(r, len(e.Reasons)))
		fmt.Fprintf(w, "      %s\n      [%s]\n", r.Sentence, r.Source)
	}
	if len(e.Unless) > 0 {
		fmt.Fprintln(w, "  it is no jump as long as")
	}
	for _, u := range e.Unless {
		fmt.Fprintf(w, "      %s\n      [%s]\n", u.Sentence, u.Source)
	}
	for _, n := range e.Notes {
		fmt.Fprintf(w, "  note: %s\n", n)
	}
}

// stops marks the reason that the kernel finds, among several.
func stops(r *ExplainReason, n int) string {
	switch {
	case r.Stops && n > 1:
		return "  (the kernel stops here)"
	case r.Stops:
		return ""
	}
	return "  (the kernel does not come to it)"
}

// block is machine code that the kernel would make.
func (w *explanationWriter) block(name string, b *CodeBlock) {
	if b == nil {
		return
	}
	w.title(fmt.Sprintf("%s, %d bytes at %s", name, len(b.Bytes), b.Addr))
	for i := range b.Code {
		c := &b.Code[i]
		note := ""
		if c.Note != "" {
			note = "; " + c.Note
		}
		line := fmt.Sprintf("  %08x  %-22s %-34s %s", uint32(c.Addr.Addr), c.Bytes, c.Text, note)
		fmt.Fprintln(w, strings.TrimRight(line, " "))
	}
}

// nearest are other addresses of the function.
func (w *explanationWriter) nearest() {
	if w.e.Optimized || !w.e.PlacedAt.Known || w.e.Symbol == "" || w.e.SymbolSize == 0 {
		return
	}
	if len(w.e.Nearest) == 0 {
		w.title("no address of " + w.e.Symbol + " can be optimized")
		return
	}
	w.title("nearest addresses of " + w.e.Symbol + " that are optimized")
	for _, n := range w.e.Nearest {
		fmt.Fprintf(w, "  +%#-6x %s  %s\n", n.Offset, n.Addr, n.Instruction)
	}
}
