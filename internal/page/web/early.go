package web

import (
	"fmt"
	"html"
	"strings"
)

// Lesson is a lesson's text, which the page has before its program runs.
type Lesson struct {
	Title string   `json:"title"`
	Text  []string `json:"text"`
}

// Planting is the memory at a place before and after the registration of a probe there, for the picture that moves before
// the program runs. The bytes are a machine's.
type Planting struct {
	Place, Insn   string
	Before, After []string
	// Slot is the probe's slot; its first Copied bytes are the copy of the instruction.
	Slot   []string
	Copied int
}

// early is the lessons' text as HTML.
func early(lessons []Lesson) string {
	var b strings.Builder
	for n, l := range lessons {
		fmt.Fprintf(&b, "<article data-lesson=\"%d\"><h3>%d. %s</h3>\n", n+1, n+1, html.EscapeString(l.Title))
		for _, t := range l.Text {
			fmt.Fprintf(&b, "<p>%s</p>\n", html.EscapeString(t))
		}
		b.WriteString("</article>\n")
	}
	return b.String()
}

// figure is the planting as HTML: bytes that move and, where motion is reduced, before and after.
func (p *Planting) figure() string {
	place, insn := html.EscapeString(p.Place), html.EscapeString(p.Insn)
	moves := cells(p.Before, func(k int) string {
		if p.After[k] == p.Before[k] {
			return ""
		}
		return fmt.Sprintf(`<b class="early-new">%s</b>`, p.After[k])
	})
	return fmt.Sprintf(`<figure id="early-stage">
<div class="early-moves" aria-hidden="true" style="--n:%d"><span class="early-cpu">CPU 0</span>
<div class="early-row early-memory"><span>memory</span>%s</div>
<div class="early-row early-slot"><span>slot</span>%s</div></div>
<div class="early-still" aria-hidden="true">
<div class="early-row"><span>before</span>%s</div>
<div class="early-row"><span>after</span>%s</div>
<div class="early-row"><span>slot</span>%s</div></div>
<figcaption>A kprobe is planted at %s. The kernel copies the instruction there, <code>%s</code>, into a slot, and writes cc (int3) over its first byte. A CPU that comes there traps, executes the copy, and goes on with the next instruction.</figcaption>
</figure>
`, p.Copied, moves, cells(p.Slot, nil), cells(p.Before, nil), cells(p.After, func(k int) string {
		if p.After[k] == p.Before[k] {
			return ""
		}
		return `<b class="early-new"></b>`
	}), cells(p.Slot, nil), place, insn)
}

// cells are bytes as HTML, with more inside of some.
func cells(list []string, more func(k int) string) string {
	var b strings.Builder
	for k, value := range list {
		inside := ""
		if more != nil {
			inside = more(k)
		}
		fmt.Fprintf(&b, `<span class="early-cell" style="--k:%d">%s%s</span>`, k, html.EscapeString(value), inside)
	}
	return b.String()
}
