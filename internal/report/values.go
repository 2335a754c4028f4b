package report

import (
	gohex "encoding/hex"
	"strconv"
	"strings"

	"kprobelab/x86"
)

// Addr is an address, or none. It is written as "0x" and 16 hexadecimal digits,
// in JSON too, whose numbers do not hold it; none is "".
type Addr struct {
	x86.Addr
	// Known: there is one.
	Known bool
}

func known(a x86.Addr) Addr { return Addr{a, true} }

// String is the written form.
func (a Addr) String() string { return string(a.append(nil)) }

// MarshalText gives the written form.
func (a Addr) MarshalText() ([]byte, error) { return a.append([]byte{}), nil }

// UnmarshalText reads the written form.
func (a *Addr) UnmarshalText(b []byte) error {
	*a = Addr{}
	if len(b) == 0 {
		return nil
	}
	v, err := strconv.ParseUint(strings.TrimPrefix(string(b), "0x"), 16, 64)
	*a = known(x86.Addr(v))
	return err
}

// append appends the written form.
func (a Addr) append(b []byte) []byte {
	if !a.Known {
		return b
	}
	b = append(b, '0', 'x')
	for shift := 60; shift >= 0; shift -= 4 {
		b = append(b, "0123456789abcdef"[a.Addr>>shift&15])
	}
	return b
}

// Bytes are bytes of code, raw. They are written in hexadecimal.
type Bytes string

// String is the written form.
func (b Bytes) String() string { return gohex.EncodeToString([]byte(b)) }

// MarshalText gives the written form.
func (b Bytes) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// UnmarshalText reads the written form.
func (b *Bytes) UnmarshalText(text []byte) error {
	code, err := gohex.DecodeString(string(text))
	*b = Bytes(code)
	return err
}

// AddrRange is a range of addresses; End is the first after it.
type AddrRange struct {
	Start Addr `json:"start"`
	End   Addr `json:"end"`
}

func newRange(r x86.Range) *AddrRange { return &AddrRange{known(r.Start), known(r.End)} }

// Len returns the length of the range in bytes.
func (r *AddrRange) Len() int { return int(r.End.Sub(r.Start.Addr)) }
