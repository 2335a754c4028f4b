package watch

import (
	"fmt"
	"strconv"
	"strings"

	"kprobelab/errno"
	"kprobelab/internal/place"
	"kprobelab/machine"
	"kprobelab/watch/registers"
	"kprobelab/x86"
)

// Place is a watchpoint as people write it: SYM[+OFF][:LEN][:ACCESS], or as perf does,
// mem:ADDR[/LEN][:ACCESS]. ACCESS is r, w, rw or x.
type Place struct {
	// Symbol is a kallsyms name or "module:name", empty where Addr is given.
	Symbol string
	Addr   x86.Addr
	// Offset in bytes.
	Offset uint32
	// Len is the number of bytes, 0 if the text has none.
	Len uint32
	// Kinds are the accesses, with machine's values.
	Kinds uint32
}

// DefaultLen is the default length of data (perf: HW_BREAKPOINT_LEN_4); the length of an
// instruction is 8, sizeof(long).
const DefaultLen = 4

// letters are the kinds in ACCESS, in the order in which perf prints them.
var letters = []struct {
	letter string
	kind   uint32
}{{"r", machine.WatchRead}, {"w", machine.WatchWrite}, {"x", machine.WatchExec}}

// Access writes kinds as in a Place.
func Access(kinds uint32) string {
	s := ""
	for _, l := range letters {
		if kinds&l.kind != 0 {
			s += l.letter
		}
	}
	return s
}

// access parses ACCESS; it returns 0 if the text is not a valid access.
func access(text string) (kinds uint32) {
	for _, l := range letters {
		if strings.Count(text, l.letter) == 1 {
			kinds |= l.kind
			text = strings.Replace(text, l.letter, "", 1)
		}
	}
	if text != "" {
		return 0
	}
	return kinds
}

// Parse reads a Place. Without ACCESS, it is rw.
func Parse(text string) (Place, error) {
	rest, perf := strings.CutPrefix(text, "mem:")
	p := Place{Kinds: machine.WatchRead | machine.WatchWrite}
	if at := strings.LastIndexByte(rest, ':'); at >= 0 {
		if k := access(rest[at+1:]); k != 0 {
			rest, p.Kinds = rest[:at], k
		} else if perf {
			return p, fmt.Errorf("watchpoint %q: the access %q is not r, w, rw or x", text, rest[at+1:])
		}
	}
	sep := byte(':')
	if perf {
		sep = '/'
	}
	if at := strings.LastIndexByte(rest, sep); at >= 0 {
		size := rest[at+1:]
		n, err := strconv.ParseUint(size, 0, 8)
		switch {
		case err == nil:
			rest, p.Len = rest[:at], uint32(n)
			if n == 0 {
				return p, fmt.Errorf("watchpoint %q: %w: it has no byte", text, errno.EINVAL)
			}
		case perf, size == "", size[0] >= '0' && size[0] <= '9', size[0] == '-':
			return p, fmt.Errorf("watchpoint %q: the length %q is not a number of bytes", text, size)
		}
	}
	at, err := place.Parse(rest)
	if err != nil {
		return p, fmt.Errorf("watchpoint %q: %w", text, err)
	}
	p.Symbol, p.Addr, p.Offset = at.Symbol, at.Addr, at.Offset
	return p, nil
}

// Watchpoint is one at the place, for every CPU and task. Where there is a symbol, its address is to
// be added.
func (p Place) Watchpoint() *Watchpoint {
	w := &Watchpoint{Addr: p.Addr.Add(int64(p.Offset)), Len: p.Len, Kinds: p.Kinds, CPU: Any, Task: Any}
	switch {
	case w.Len == 0 && w.Kinds == machine.WatchExec:
		w.Len = registers.ExecuteLen
	case w.Len == 0:
		w.Len = DefaultLen
	}
	return w
}

// String is the Place in the command line's notation.
func (p Place) String() string {
	s := place.Place{Symbol: p.Symbol, Addr: p.Addr, Offset: p.Offset}.String()
	if p.Len != 0 {
		s += ":" + strconv.Itoa(int(p.Len))
	}
	return s + ":" + Access(p.Kinds)
}
