package archive

import (
	"encoding/binary"
	"fmt"

	"kprobelab/x86"
)

// window is the length of a piece of text in bytes.
const window = 512 << 10

// texts are the texts of the areas, one after another.
type texts []span

func textsOf(areas []area) (t texts) {
	for i := range areas {
		t = append(t, areas[i].Text)
	}
	return t
}

// len is the length of all in bytes.
func (t texts) len() (n uint64) {
	for _, s := range t {
		n += s.len()
	}
	return n
}

// offset is an address's place.
func (t texts) offset(a x86.Addr) (uint64, bool) {
	var before uint64
	for _, s := range t {
		if s.rng().Contains(a) {
			return before + uint64(a) - s[0], true
		}
		before += s.len()
	}
	return 0, false
}

func windowName(i int) string { return fmt.Sprintf("text.%d", i) }

// nibble is the largest number in half a byte; for a verdict it says that the
// number follows.
const nibble = 15

// packWindow packs verdicts.
func packWindow(verdicts []byte) (out []byte) {
	last := -1
	for i, v := range verdicts {
		if v == 0 {
			continue
		}
		gap := i - last
		last = i
		b := byte(min(v, nibble)) << 4
		if gap <= nibble {
			b |= byte(gap)
		}
		out = append(out, b)
		if gap > nibble {
			out = binary.AppendUvarint(out, uint64(gap))
		}
		if v >= nibble {
			out = append(out, v)
		}
	}
	return out
}

// unpackWindow unpacks the verdicts of n addresses.
func unpackWindow(b []byte, n int) ([]byte, error) {
	verdicts := make([]byte, n)
	at := -1
	for len(b) > 0 {
		gap, v := uint64(b[0]&nibble), b[0]>>4
		b = b[1:]
		if gap == 0 {
			var used int
			if gap, used = binary.Uvarint(b); used <= 0 {
				return nil, damaged("a piece of text ends early")
			}
			b = b[used:]
		}
		if v == nibble {
			if len(b) == 0 {
				return nil, damaged("a piece of text ends early")
			}
			v, b = b[0], b[1:]
		}
		if gap == 0 || gap > uint64(n-1-at) {
			return nil, damaged("a piece of text is longer than it should be")
		}
		at += int(gap)
		verdicts[at] = v
	}
	return verdicts, nil
}
