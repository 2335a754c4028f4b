package archive

import (
	"cmp"
	"encoding/binary"
	"slices"
	"sort"
	"strconv"
	"strings"

	"kprobelab/internal/bounded"
	"kprobelab/x86"
)

// window is the length of a piece of text in bytes.
const window = 512 << 10

// texts are the texts of areas, one after another, by ascending address.
type texts []text

type text struct {
	span
	// before counts the bytes of text before it.
	before uint64
}

func textsOf(areas []area) (t texts) {
	for i := range areas {
		if areas[i].Text.len() > 0 {
			t = append(t, text{span: areas[i].Text})
		}
	}
	slices.SortStableFunc(t, func(a, b text) int { return cmp.Compare(a.span[0], b.span[0]) })
	for i := 1; i < len(t); i++ {
		t[i].before = t[i-1].before + t[i-1].len()
	}
	return t
}

// len is the length of all in bytes.
func (t texts) len() uint64 {
	if len(t) == 0 {
		return 0
	}
	return t[len(t)-1].before + t[len(t)-1].len()
}

// fits reports whether there is not more than an archive keeps.
func (t texts) fits() bool { return t.len() <= bounded.ArchiveText }

// offset is an address's place.
func (t texts) offset(a x86.Addr) (uint64, bool) {
	i := sort.Search(len(t), func(i int) bool { return t[i].span[0] > uint64(a) }) - 1
	if i < 0 || !t[i].rng().Contains(a) {
		return 0, false
	}
	return t[i].before + uint64(a) - t[i].span[0], true
}

const windowPrefix = "text."

func windowName(i int) string { return windowPrefix + strconv.Itoa(i) }

// windowNumber is the number of a piece by the name of its section.
func windowNumber(name string) (int, bool) {
	_, number, ok := strings.Cut(name, windowPrefix)
	i, err := strconv.Atoi(number)
	return i, ok && err == nil
}

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
