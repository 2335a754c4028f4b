// Package compare compares instruction decoders: ours in its two views,
// x86asm, and others that run as child processes, over real code and over
// generated encodings.
//
// It must not know how any of them decodes, nor files' formats: it gets bytes, and gives each
// decoder the same questions.
package compare

import (
	"strconv"

	"kprobelab/decoder"
)

// Answer is a decoder's result for some bytes.
type Answer struct {
	// Length is 0 if the bytes are no instruction.
	Length int
	// Class is nil if the decoder gives none.
	Class *decoder.Class
	// Target is counted from the first byte; valid with HasTarget.
	HasTarget bool
	Target    int64
	// Text is mnemonic and operands, in GNU's or Intel's syntax; "" where the
	// decoder does not say.
	Text string
}

// String returns the answer in the form of the line protocol.
func (a Answer) String() string { return string(a.append(nil)) }

func (a Answer) append(b []byte) []byte {
	if a.Length == 0 {
		return append(b, "0 -"...)
	}
	b = append(strconv.AppendInt(b, int64(a.Length), 10), ' ')
	switch {
	case a.Class == nil:
		b = append(b, '?')
	case *a.Class == indirect:
		b = append(b, "indirect"...)
	default:
		b = append(b, a.Class.String()...)
	}
	if a.HasTarget {
		b = strconv.AppendInt(append(b, ' '), a.Target, 10)
	}
	if a.Text != "" {
		b = append(append(b, " ; "...), a.Text...)
	}
	return b
}

// Says makes an answer that names a class.
func Says(length int, class decoder.Class) Answer {
	return Answer{Length: length, Class: &classes[class]}
}

// Decoder is an instruction decoder that can be asked. FromFunc makes one of a Go function,
// StartChild of a program, and Open of a decoder that is known by name.
type Decoder interface {
	Name() string
	// Ask fills in answers, one for each of the questions, up to 15 bytes each.
	Ask(questions [][]byte, answers []Answer) error
	// Close ends a child process.
	Close() error
}

// classes lets answers point at a class without allocating.
var classes = func() (t [256]decoder.Class) {
	for i := range t {
		t[i] = decoder.Class(i)
	}
	return t
}()

// function is a Decoder that is a Go function.
type function struct {
	name   string
	decode func(b []byte) Answer
}

// FromFunc makes a Decoder of a function that decodes the instruction at the start
// of b, which has up to 15 bytes.
func FromFunc(name string, decode func(b []byte) Answer) Decoder { return function{name, decode} }

func (f function) Name() string { return f.name }
func (f function) Close() error { return nil }
func (f function) Ask(questions [][]byte, answers []Answer) error {
	for n, q := range questions {
		answers[n] = f.decode(q)
	}
	return nil
}

// Ours fills in the processor's view of package decoder.
func Ours(questions [][]byte, answers []Answer) {
	for n, q := range questions {
		answers[n] = Answer{}
		i, err := decoder.Decode(q)
		if err != nil {
			continue
		}
		answers[n] = Answer{Length: i.Length, Class: &classes[i.Class], HasTarget: i.HasTarget, Target: int64(i.Length) + i.Rel}
	}
}
