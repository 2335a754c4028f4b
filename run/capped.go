package run

import (
	"errors"
	"fmt"
	"slices"
)

// ErrOutput: a program of a booted kernel has written more than the bound on the output, and is ended.
var ErrOutput = errors.New("the output has reached --max-output")

// pieceSize bounds the bytes of a program that are printed before the bound is looked at again. Control characters may make
// them longer.
const pieceSize = 4 << 10

// Capped gives a sink what guest code can make endless, hits, steps and lines of the log, until printed says that most bytes
// are printed. All other events still come, and at the end how much is missing. A program of a booted kernel that writes more, or
// its workload, gets an ErrOutput.
func Capped(to Sink, most uint64, printed func() uint64) Sink {
	_, records := to.(*JSON)
	return &capped{to: to, most: most, printed: printed, whole: records}
}

type capped struct {
	to      Sink
	printed func() uint64
	most    uint64
	omitted uint64
	// whole is whether the output of a program stays in one piece.
	whole bool
}

// full reports whether an event is left out, and counts it.
func (o *capped) full() bool {
	if o.printed() < o.most {
		return false
	}
	o.omitted++
	return true
}

// Put implements Sink.
func (o *capped) Put(e Event) error {
	switch e := e.(type) {
	case Logged:
		if o.full() {
			return o.end(e.From == workload)
		}
	case Hit, Returned, Accessed, Step:
		if o.full() {
			return nil
		}
	case Wrote:
		if e.All {
			return o.all(e)
		}
		return o.wrote(e)
	case Done:
		o.missing()
	}
	return o.to.Put(e)
}

// end returns the error for a program that wrote what is left out; nil for other events.
func (o *capped) end(program bool) error {
	if !program {
		return nil
	}
	return fmt.Errorf("%w %d, and the program had not ended", ErrOutput, o.most)
}

func (o *capped) wrote(e Wrote) error {
	size := pieceSize
	if o.whole {
		size = max(len(e.Data), 1)
	}
	for piece := range slices.Chunk(e.Data, size) {
		if o.full() {
			return o.end(true)
		}
		if err := o.to.Put(Wrote{FD: e.FD, Data: piece}); err != nil {
			return err
		}
	}
	return nil
}

// all shows what a program wrote, and then says how many bytes are left out.
func (o *capped) all(e Wrote) error {
	left := e
	if o.whole {
		left.Data = nil
		if err := o.to.Put(e); err != nil {
			return err
		}
	}
	for len(left.Data) > 0 && o.printed() < o.most {
		n := min(len(left.Data), pieceSize)
		if err := o.to.Put(Wrote{FD: e.FD, Data: left.Data[:n], All: true}); err != nil {
			break
		}
		left.Data = left.Data[n:]
	}
	if n := len(left.Data) + e.Lost; n > 0 {
		return o.to.Put(Logged{"kernel", fmt.Sprintf("%d bytes more were written, and are not shown (--max-output)", n)})
	}
	return nil
}

// missing says how many events are left out.
func (o *capped) missing() {
	if o.omitted > 0 {
		_ = o.to.Put(Logged{"kprobelab", fmt.Sprintf("%d events more are not printed: the output has reached --max-output %d", o.omitted, o.most)})
	}
}
