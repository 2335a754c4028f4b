package terminal

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"kprobelab/internal/bounded"
	"kprobelab/internal/printable"
)

// ErrorText is an error's text. A file's name in it cannot make lines or columns of its
// own, be it the error's or a part of an argument: a path's element, a flag's value.
func ErrorText(err error, args []string) string {
	text := err.Error()
	var path *fs.PathError
	if errors.As(err, &path) && path.Path != "" {
		text = strings.ReplaceAll(text, path.Path, printable.Name(path.Path))
	}
	for _, arg := range args {
		for _, name := range strings.FieldsFunc(arg, func(r rune) bool { return strings.ContainsRune("/=@", r) }) {
			if strings.TrimSpace(name) != "" {
				text = strings.ReplaceAll(text, name, printable.Name(name))
			}
		}
	}
	return shortLines(text)
}

// shortLines leaves out the middle of each line that is longer than bounded.ErrorLine.
func shortLines(text string) string {
	if len(text) <= bounded.ErrorLine {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if n := len(line) - bounded.ErrorLine; n > 0 {
			const half = bounded.ErrorLine / 2
			head, tail := strings.ToValidUTF8(line[:half], ""), strings.ToValidUTF8(line[len(line)-half:], "")
			lines[i] = fmt.Sprintf("%s … %d bytes … %s", head, n, tail)
		}
	}
	return strings.Join(lines, "\n")
}

// Indent moves every line in by two spaces.
func Indent(text string) string { return "  " + strings.ReplaceAll(text, "\n", "\n  ") }
