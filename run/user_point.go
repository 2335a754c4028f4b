package run

import (
	"fmt"
	"strings"

	"kprobelab/internal/place"
)

// UserPoint is a uprobe or a uretprobe as written: FILE:SYM[+OFF] or FILE:0xOFFSET.
type UserPoint struct {
	File, Place string
	Returns     bool
}

// ParseUserPoint reads one.
func ParseUserPoint(text string, returns bool) (UserPoint, error) {
	i := strings.LastIndexByte(text, ':')
	if i <= 0 || i == len(text)-1 {
		return UserPoint{}, misused("%q: want FILE:SYM[+OFF] or FILE:0xOFFSET", text)
	}
	return UserPoint{text[:i], text[i+1:], returns}, nil
}

// definition is the line of uprobe_events for a probe in a file of that name. taken counts the names of events.
func (u *UserPoint) definition(file string, offsetOf func(symbol string) (uint64, error), taken map[string]int) (string, error) {
	kind := map[bool]string{false: "p", true: "r"}[u.Returns]
	at, err := place.Parse(u.Place)
	switch {
	case err != nil:
		return "", misused("%s:%s: %w", u.File, u.Place, err)
	case at.Symbol == "":
		return fmt.Sprintf("%s %s:0x%x", kind, file, uint64(at.Addr)+uint64(at.Offset)), nil
	}
	symbol, more := at.Symbol, uint64(at.Offset)
	offset, err := offsetOf(symbol)
	if err != nil {
		return "", refused(err)
	}
	name := eventName(symbol)
	if more != 0 {
		name += fmt.Sprintf("_0x%x", more)
	}
	if u.Returns {
		name += "__return"
	}
	name = name[:min(len(name), 56)]
	if taken[name]++; taken[name] > 1 {
		name += fmt.Sprintf("_%d", taken[name]-1)
	}
	return fmt.Sprintf("%s:%s %s:0x%x", kind, name, file, offset+more), nil
}

// eventName is a symbol as a C identifier.
func eventName(symbol string) string {
	b := []byte(symbol)
	for i, c := range b {
		if c != '_' && (c|0x20 < 'a' || 'z' < c|0x20) && (c < '0' || '9' < c || i == 0) {
			b[i] = '_'
		}
	}
	return string(b)
}
