// Package view shows instructions to a person, each with its bytes by field and the reading of the
// kernel's decoder, or as objects of JSON.
//
// It must not know where the bytes come from.
package view

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"kprobelab/decoder"
	"kprobelab/internal/colour"
	"kprobelab/profile"
	"kprobelab/x86"
)

// View prints instructions, one after another.
type View struct {
	// Style colours the text for a person; JSON writes objects instead.
	Style colour.Style
	JSON  bool
	// Kernel selects the decoder of the kernel's view, Processor the processor of the other view.
	Kernel    *profile.Decoder
	Processor decoder.Processor
	// At is the address of the next instruction.
	At x86.Addr

	w *bufio.Writer
}

// New makes a view that writes to w. Flush writes its buffered output.
func New(w io.Writer, v View) *View {
	v.w = bufio.NewWriter(w)
	return &v
}

// Flush writes the buffered output.
func (v *View) Flush() error { return v.w.Flush() }

// Lines shows one instruction a line of hex, each at the same address. A line that is no
// instruction is an answer, too; bad counts such lines. The error is decoder.ErrLine for a line
// that is too long.
func (v *View) Lines(r io.Reader) (bad decoder.Lines, err error) {
	if v.JSON {
		return v.Processor.JSONLines(r, flusher{v.w}, v.At, v.Kernel)
	}
	return v.linesForPeople(r)
}

// flusher writes every piece at once.
type flusher struct{ w *bufio.Writer }

func (f flusher) Write(b []byte) (int, error) {
	n, err := f.w.Write(b)
	return n, errors.Join(err, f.w.Flush())
}

func (v *View) linesForPeople(r io.Reader) (bad decoder.Lines, err error) {
	in := bufio.NewReaderSize(r, decoder.MaxLine)
	at := v.At
	for {
		line, err := in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			return bad, decoder.ErrLine
		}
		if text := strings.TrimSpace(string(line)); text != "" {
			v.line(text, &bad)
			v.At = at
		}
		if in.Buffered() == 0 { // a caller that asks line by line waits for the answer
			v.w.Flush()
		}
		if err == io.EOF {
			return bad, nil
		}
		if err != nil {
			return bad, err
		}
	}
}

func (v *View) line(text string, bad *decoder.Lines) {
	b, err := decoder.ParseHex(text)
	if err != nil {
		bad.NoBytes++
		fmt.Fprintf(v.w, "%s: %v\n", v.Style.Red("error"), err)
		return
	}
	if _, ok := v.one(b); !ok {
		bad.NoInstruction++
	}
}

// All shows the instructions of b to its end and returns how many bytes belong to none.
func (v *View) All(b []byte) (bad int) {
	for len(b) > 0 {
		n, ok := v.one(b)
		if !ok {
			bad += n
		}
		b = b[n:]
	}
	return bad
}

// one prints the instruction at the start of b and returns its length; it returns 1 and false if
// there is none.
func (v *View) one(b []byte) (int, bool) {
	b = b[:min(len(b), decoder.MaxInsnSize)]
	var n int
	if v.JSON {
		var object []byte
		object, n = v.Processor.AppendJSON(nil, b, v.At, v.Kernel)
		v.w.Write(object)
	} else {
		i, err := v.Processor.Decode(b)
		k, kerr := decoder.DecodeKernel(b, v.Kernel)
		n = i.Length
		v.people(b, &i, err, &k, kerr)
	}
	v.At = v.At.Add(int64(max(1, n)))
	return max(1, n), n > 0
}
