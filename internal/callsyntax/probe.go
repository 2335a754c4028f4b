package callsyntax

import (
	"fmt"
	"strconv"
	"strings"

	"kprobelab/x86"
)

// Probe is a probe as people write it: SYM[+OFF] or 0xADDR[+OFF], and for a
// return probe [:MAXACTIVE] after it.
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

// ParseKprobe reads SYM[+OFF].
func ParseKprobe(text string) (Probe, error) {
	place, off, has := strings.Cut(text, "+")
	p := Probe{Symbol: place}
	if has {
		v, err := strconv.ParseUint(off, 0, 32)
		if err != nil {
			return p, fmt.Errorf("kprobe %q: the offset %q is not a number of bytes", text, off)
		}
		p.Offset = uint32(v)
	}
	return p, p.setPlace("kprobe", text)
}

// ParseKretprobe reads SYM[+OFF][:MAXACTIVE]. What follows the last colon is
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

// setPlace tells an address from a symbol.
func (p *Probe) setPlace(kind, text string) error {
	switch {
	case p.Symbol == "":
		return fmt.Errorf("%s %q: a symbol or an address is missing", kind, text)
	case !isDigit(p.Symbol[0]):
		return nil
	}
	v, err := strconv.ParseUint(p.Symbol, 0, 64)
	if err != nil {
		return fmt.Errorf("%s %q: %q is neither a symbol nor an address", kind, text, p.Symbol)
	}
	p.Symbol, p.Addr = "", x86.Addr(v)
	return nil
}

// String names the place as the kernel does: SYM+0xOFF.
func (p Probe) String() string {
	s := p.Symbol
	if s == "" {
		s = p.Addr.String()
	}
	if p.Offset != 0 {
		s += "+0x" + strconv.FormatUint(uint64(p.Offset), 16)
	}
	return s
}
