package compare

import "kprobelab/decoder"

// batch is the number of questions that a decoder gets at a time.
const batch = 8192

// Walk asks the decoders and ours about code at addr. It steps from instruction to instruction by
// our lengths, and by one byte over bytes that our decoder refuses. The same bytes are asked about
// once.
func Walk(others []Decoder, code []byte, addr uint64, c *Comparison, seen map[string]bool, progress func(done, total int64)) error {
	if err := c.recognize(others); err != nil {
		return err
	}
	// ask counts its questions; here, each place of the code counts.
	instructions, accepted := c.Instructions, c.Accepted
	n, err := walk(code, addr, seen, func(b *questions) error { return b.ask(others, c) }, progress)
	c.Instructions, c.Accepted = instructions+n.places, accepted+n.instructions
	return err
}

// walked counts places of code, and the places where our decoder finds an instruction.
type walked struct{ places, instructions int }

func walk(code []byte, addr uint64, seen map[string]bool, ask func(b *questions) error, progress func(done, total int64)) (n walked, err error) {
	b := newBatch(batch)
	for at := 0; at < len(code); {
		w := code[at:min(len(code), at+decoder.MaxInsnSize)]
		i, err := decoder.Decode(w)
		length := max(1, i.Length)
		n.places++
		key := string(w[:length])
		if err != nil {
			key = string(w)
		} else {
			n.instructions++
		}
		if !seen[key] {
			seen[key] = true
			b.windows[b.n], b.at[b.n] = w, addr+uint64(at)
			b.n++
		}
		at += length
		if b.n == batch || at >= len(code) {
			if err := ask(b); err != nil {
				return n, err
			}
			b.n = 0
			report(progress, int64(at), int64(len(code)))
		}
	}
	return n, nil
}

// questions are a batch under way.
type questions struct {
	n            int
	windows      [][]byte
	at           []uint64
	ours, theirs []Answer
	accepted     int
	all          [][]Answer // by decoder, for the comparison with each other
}

func newBatch(n int) *questions {
	b := &questions{windows: make([][]byte, n), at: make([]uint64, n), ours: make([]Answer, n), theirs: make([]Answer, n)}
	for i := range b.windows {
		b.windows[i] = make([]byte, decoder.MaxInsnSize)
	}
	return b
}

// ask gives the batch to our decoder and to the others.
func (b *questions) ask(others []Decoder, c *Comparison) error {
	w, ours := b.windows[:b.n], b.ours[:b.n]
	Ours(w, ours)
	b.accepted = 0
	for i := range ours {
		if ours[i].Length > 0 {
			b.accepted++
		}
	}
	c.Instructions += b.n
	c.Accepted += b.accepted
	for len(b.all) < len(others) {
		b.all = append(b.all, make([]Answer, cap(b.ours)))
	}
	for n, o := range others {
		theirs := b.all[n][:b.n]
		if err := o.Ask(w, theirs); err != nil {
			return err
		}
		for i := range theirs {
			c.Add(o.Name(), w[i], b.at[i], ours[i], theirs[i])
		}
	}
	if len(others) > 1 {
		c.among(others, b)
	}
	return nil
}
