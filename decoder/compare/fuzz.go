package compare

import (
	"math/rand/v2"
	"slices"
	"sync"

	"kprobelab/decoder"
)

// allForms are the forms of every row of every encoding.
var allForms = sync.OnceValue(func() (list [][]byte) {
	for _, e := range decoder.Encodings() {
		list = append(list, decoder.Forms(e)...)
	}
	return list
})

// Questions makes generated encodings: every other one is a form of a row, in an order that the
// seed shuffles, until each was made once. The others come from a Generator, or are forms with a
// few bytes changed.
type Questions struct {
	g     *Generator
	r     *rand.Rand
	order []int
	forms [][]byte
}

// NewQuestions makes the questions of a seed.
func NewQuestions(seed uint64) *Questions {
	r := rand.New(rand.NewPCG(seed, 0x636f6d70617265))
	forms := allForms()
	return &Questions{g: NewGenerator(seed), r: r, order: r.Perm(len(forms)), forms: forms}
}

// Next fills a window of decoder.MaxInsnSize bytes.
func (q *Questions) Next(w []byte) {
	switch n := len(q.order); {
	case n > 0 && q.r.IntN(2) == 0:
		copy(w, q.forms[q.order[n-1]])
		q.order = q.order[:n-1]
	case q.r.IntN(4) == 0:
		q.mutate(w)
	default:
		q.g.Next(w)
	}
}

// mutate is a form with another operand, or prefix, or a byte of another value.
func (q *Questions) mutate(w []byte) {
	b := slices.Clone(q.forms[q.r.IntN(len(q.forms))])
	i, err := decoder.Decode(b)
	if err != nil {
		panic("BUG: a form is no instruction")
	}
	for n := i.Length; n < len(b); n++ {
		b[n] = byte(q.r.Uint32())
	}
	switch q.r.IntN(4) {
	case 0: // another ModRM, and the fields that it brings
		if i.HasModRM {
			for n := int(i.ModRMOff); n < len(b); n++ {
				b[n] = byte(q.r.Uint32())
			}
		}
	case 1:
		b = slices.Insert(b, 0, prefixes[q.r.IntN(len(prefixes))])
	case 2: // the fields of VEX, EVEX, REX
		b[q.r.IntN(int(i.OpcodeOff)+1)] ^= 1 << q.r.IntN(8)
	default:
		b[q.r.IntN(i.Length)] = byte(q.r.Uint32())
	}
	copy(w, b)
}

// Fuzz compares the decoders with ours on count generated encodings, and returns their coverage.
// progress, unless it is nil, is called with the number of finished ones.
func Fuzz(others []Decoder, seed uint64, count int, c *Comparison, progress func(done, total int64)) (*Coverage, error) {
	if err := c.recognize(others); err != nil {
		return &Coverage{}, err
	}
	return fuzz(seed, count, func(b *questions) error { return b.ask(others, c) }, progress)
}

func fuzz(seed uint64, count int, ask func(b *questions) error, progress func(done, total int64)) (*Coverage, error) {
	q := NewQuestions(seed)
	b := newBatch(batch)
	cover := &Coverage{}
	for done := 0; done < count; {
		b.n = min(batch, count-done)
		for i := range b.n {
			q.Next(b.windows[i])
			cover.Add(b.windows[i])
		}
		if err := ask(b); err != nil {
			return cover, err
		}
		done += b.n
		report(progress, int64(done), int64(count))
	}
	return cover, nil
}

// FuzzEnumerated compares the decoders with ours on the strings that Enumerate visits.
func FuzzEnumerated(others []Decoder, c *Comparison, progress func(done, total int64)) (*Coverage, error) {
	if err := c.recognize(others); err != nil {
		return &Coverage{}, err
	}
	return enumerated(func(b *questions) error { return b.ask(others, c) }, progress)
}

func enumerated(ask func(b *questions) error, progress func(done, total int64)) (cover *Coverage, err error) {
	total := int64(0)
	Enumerate(func([]byte) { total++ })
	cover, done := &Coverage{}, int64(0)
	b := newBatch(batch)
	send := func() {
		if err == nil && b.n > 0 {
			err = ask(b)
			done += int64(b.n)
			report(progress, done, total)
		}
		b.n = 0
	}
	Enumerate(func(w []byte) {
		copy(b.windows[b.n], w)
		cover.Add(w)
		if b.n++; b.n == batch {
			send()
		}
	})
	send()
	return cover, err
}

func report(progress func(done, total int64), done, total int64) {
	if progress != nil {
		progress(done, total)
	}
}
