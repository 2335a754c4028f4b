package compare

import (
	"kprobelab/decoder"
)

// batch is how many questions go to a decoder at a time.
const batch = 8192

// Fuzz asks the decoders and us about count generated encodings.
func Fuzz(others []Decoder, seed uint64, count int, c *Comparison, progress func(done, total int64)) error {
	g := NewGenerator(seed)
	b := newBatch(batch)
	for done := 0; done < count; {
		n := min(batch, count-done)
		for i := range n {
			g.Next(b.windows[i])
		}
		b.n = n
		if err := b.ask(others, c); err != nil {
			return err
		}
		done += n
		progress(int64(done), int64(count))
	}
	return nil
}

// Walk asks the decoders and us about code that stands at addr. It goes from
// instruction to instruction by our lengths, and a byte at a time over what we
// refuse. The same bytes are asked about once.
func Walk(others []Decoder, code []byte, addr uint64, c *Comparison, seen map[string]bool, progress func(done, total int64)) error {
	b := newBatch(batch)
	for at := 0; at < len(code); {
		w := code[at:min(len(code), at+decoder.MaxInsnSize)]
		i, err := decoder.Decode(w)
		length := max(1, i.Length)
		c.Instructions++
		key := string(w[:length])
		if err != nil {
			key = string(w)
		} else {
			c.Accepted++
		}
		if !seen[key] {
			seen[key] = true
			b.windows[b.n], b.at[b.n] = w, addr+uint64(at)
			b.n++
		}
		at += length
		if b.n == batch || at >= len(code) {
			if err := b.ask(others, c); err != nil {
				return err
			}
			c.Instructions -= b.n // ask counts them, too
			c.Accepted -= b.accepted
			b.n = 0
			progress(int64(at), int64(len(code)))
		}
	}
	return nil
}

// questions are a batch under way.
type questions struct {
	n            int
	windows      [][]byte
	at           []uint64
	ours, theirs []Answer
	accepted     int
	votes        votes
}

func newBatch(n int) *questions {
	b := &questions{windows: make([][]byte, n), at: make([]uint64, n), ours: make([]Answer, n), theirs: make([]Answer, n)}
	for i := range b.windows {
		b.windows[i] = make([]byte, decoder.MaxInsnSize)
	}
	return b
}

// ask puts the batch to us and to the others.
func (b *questions) ask(others []Decoder, c *Comparison) error {
	w, ours, theirs := b.windows[:b.n], b.ours[:b.n], b.theirs[:b.n]
	Ours(w, ours)
	b.accepted = 0
	for i := range ours {
		if ours[i].Length > 0 {
			b.accepted++
		}
	}
	c.Instructions += b.n
	c.Accepted += b.accepted
	b.votes.reset(b.n)
	for _, o := range others {
		if err := o.Ask(w, theirs); err != nil {
			return err
		}
		for i := range theirs {
			c.Add(o.Name(), w[i], b.at[i], ours[i], theirs[i])
		}
		b.votes.add(o.Name(), theirs)
	}
	for i := range w {
		if length, ok := b.votes.majority(i); ok {
			c.Add(Majority, w[i], b.at[i], ours[i], Answer{Length: length})
		}
	}
	return nil
}

// Shrink makes a difference's example as short and plain as it can be. The same
// decoder still differs in the same way, with the same cause or none, at the
// same opcode: the example stays one of its group.
func Shrink(o Decoder, d *Difference) []byte {
	var ours, theirs [1]Answer
	keeps := func(w []byte) bool {
		q := [][]byte{w}
		Ours(q, ours[:])
		if OpcodeName(w) != d.Opcode || o.Ask(q, theirs[:]) != nil {
			return false
		}
		return whatDiffers(ours[0], theirs[0], true) == d.What && Cause(o.Name(), w, ours[0], theirs[0]) == d.Cause
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
