package callsyntax

import (
	"fmt"
	"strconv"
	"strings"

	"kprobelab/internal/place"
	"kprobelab/x86"
)

// Probe is a probe as people write it: a place, and for a return probe [:MAXACTIVE] after it.
type Probe struct {
	// Return makes it a kretprobe.
	Return bool
	// Symbol is a kallsyms name or "module:name"; empty where Addr is given.
	Symbol string
	Addr   x86.Addr
	// Offset in bytes.
	Offset uint32
	// MaxActive is the size of the kretprobe's pool; 0 is the kernel's default.
	MaxActive int
}

// ParseKprobe reads a place (package place).
func ParseKprobe(text string) (Probe, error) {
	at, err := place.Parse(text)
	if err != nil {
		err = fmt.Errorf("kprobe %q: %w", text, err)
	}
	return Probe{Symbol: at.Symbol, Addr: at.Addr, Offset: at.Offset}, err
}

// ParseKretprobe reads PLACE[:MAXACTIVE]. What follows the last colon is
// MAXACTIVE if it is a number, otherwise a symbol after its module's name.
func ParseKretprobe(text string) (Probe, error) {
	place, pool := text, ""
	if i := strings.LastIndexByte(text, ':'); i >= 0 && (i+1 == len(text) || text[i+1] == '-' || isDigit(text[i+1])) {
		place, pool = text[:i], text[i+1:]
	}
	p, err := ParseKprobe(place)
	if err != nil {
		return p, fmt.Errorf("kretprobe %q: %s", text, strings.TrimPrefix(err.Error(), fmt.Sprintf("kprobe %q: ", place)))
	}
	p.Return = true
	if place != text {
		n, err := strconv.ParseInt(pool, 10, 32)
		if err != nil || n < 0 {
			return p, fmt.Errorf("kretprobe %q: MAXACTIVE %q is not a number of instances", text, pool)
		}
		p.MaxActive = int(n)
	}
	return p, nil
}

// String names the place as the kernel does: SYM+0xOFF.
func (p Probe) String() string {
	return place.Place{Symbol: p.Symbol, Addr: p.Addr, Offset: p.Offset}.String()
}
