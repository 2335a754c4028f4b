package debian

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"kprobelab/internal/bounded"
)

// stanzas reads "Field: value" lines with continued ones, in blocks that empty lines end: deb822(5). A stanza goes to
// each when it is whole, its fields by their names in small letters. Fields for which keep is false are left out; a nil
// keep keeps all.
func stanzas(r io.Reader, keep func(field string) bool, each func(map[string]string) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), bounded.IndexLine)
	fields, last := map[string]string{}, ""
	flush := func() error {
		if len(fields) == 0 {
			return nil
		}
		f := fields
		fields, last = map[string]string{}, ""
		return each(f)
	}
	for lines.Scan() {
		line := strings.TrimSuffix(lines.Text(), "\r")
		switch {
		case strings.HasPrefix(line, "#"):
		case strings.TrimSpace(line) == "":
			if err := flush(); err != nil {
				return err
			}
		case line[0] == ' ' || line[0] == '\t':
			if last != "" {
				fields[last] += "\n" + strings.TrimSpace(line)
			}
		default:
			name, value, ok := strings.Cut(line, ":")
			last = strings.ToLower(strings.TrimSpace(name))
			if !ok || keep != nil && !keep(last) {
				last = ""
				continue
			}
			fields[last] = strings.TrimSpace(value)
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return fmt.Errorf("%w: a line has more than %d bytes", ErrIndex, bounded.IndexLine)
	case err != nil:
		return err
	}
	return flush()
}
