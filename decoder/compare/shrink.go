package compare

import (
	"slices"

	"kprobelab/decoder"
)

// Shrink makes a difference's example as short and plain as possible, and returns it. The same
// decoder still differs in the same way, with the same cause or none, at the same opcode, so the
// example stays in its group.
func (c *Comparison) Shrink(o Decoder, d *Difference) []byte {
	var ours, theirs [1]Answer
	keeps := func(w []byte) bool {
		q := [][]byte{w}
		Ours(q, ours[:])
		if OpcodeName(w) != d.Opcode || o.Ask(q, theirs[:]) != nil {
			return false
		}
		if theirs[0].Text != "" && theirs[0].Length == ours[0].Length {
			ours[0].Text = decoder.Text(w, 0)
		}
		return whatDiffers(ours[0], theirs[0]) == d.What && Cause(c.known[o.Name()], w, ours[0], theirs[0]) == d.Cause
	}
	w := make([]byte, decoder.MaxInsnSize)
	copy(w, d.Example)
	if !keeps(w) {
		return d.Example
	}
	w = shrinkWindow(w, keeps)
	keeps(w)
	d.Ours, d.Theirs = ours[0], theirs[0]
	return w[:max(1, ours[0].Length, theirs[0].Length)]
}

// shrinkWindow makes a window with some property as short and as plain as possible with that
// property. It leaves bytes out, and adds zeros at the end, or replaces bytes by plainer ones,
// until nothing more can be changed. The window has decoder.MaxInsnSize bytes.
func shrinkWindow(window []byte, keeps func([]byte) bool) []byte {
	best := slices.Clone(window)
	for changed := true; changed; {
		changed = false
		for i := range best {
			for _, try := range attempts(best, i) {
				if simpler(try, best) && keeps(try) {
					best, changed = try, true
					break
				}
			}
		}
	}
	return best
}

// attempts are the window without byte i, and with plainer bytes in its place.
func attempts(w []byte, i int) [][]byte {
	dropped := append(slices.Delete(slices.Clone(w), i, i+1), 0)
	list := [][]byte{dropped}
	for _, b := range []byte{0x00, 0xC0, w[i] & 0xF0, w[i] & (w[i] - 1), w[i] &^ 1, w[i] & 0x3F} {
		if b != w[i] {
			t := slices.Clone(w)
			t[i] = b
			list = append(list, t)
		}
	}
	return list
}

// simpler orders windows, so that shrinking ends: fewer bytes that are not
// zero, then fewer bits, then smaller.
func simpler(a, b []byte) bool {
	if x, y := weight(a), weight(b); x != y {
		return x < y
	}
	return slices.Compare(a, b) < 0
}

func weight(w []byte) (n int) {
	for _, b := range w {
		if b != 0 {
			n += 256
		}
		n += int(b)
	}
	return n
}
