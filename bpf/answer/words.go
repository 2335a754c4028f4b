package answer

import (
	"fmt"
	"path"
	"strings"

	"kprobelab/internal/printable"
)

// Word says in a word or two what the kernel did with the program.
func (p *Program) Word() string {
	word := p.word()
	if p.Optional && !p.Unasked && (!p.Loads || p.Attaches != nil && !*p.Attaches) {
		word += ", optional"
	}
	return word
}

func (p *Program) word() string {
	switch {
	case p.Unasked:
		return "not asked"
	case !p.Loads:
		return "refused"
	case p.Attaches == nil:
		return "loads"
	case !*p.Attaches:
		return "not attached"
	}
	return "attaches"
}

// Bad reports whether the kernel refused the program, or did not attach it, and the tool does not go on without it.
func (p *Program) Bad() bool {
	return !p.Optional && !p.Unasked && (!p.Loads || p.Attaches != nil && !*p.Attaches)
}

// Why says why the kernel refused or did not attach the program, in lines: the place to blame is in the second. It is "" for a
// program that attaches.
func (p *Program) Why() string {
	text := p.AttachError
	if !p.Loads {
		text = p.Error
		if p.Errno != "" && !strings.Contains(text, p.Errno) {
			text += " (" + p.Errno + ")"
		}
		if b := p.Blame; b != nil {
			text += fmt.Sprintf("\n      at instruction %d", b.Instruction)
			if b.File != "" {
				text += fmt.Sprintf(", %s:%d: %s", path.Base(b.File), b.Line, b.Text)
			}
		}
	}
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(printable.Name(lines[i]), " ")
	}
	return strings.Join(lines, "\n")
}
