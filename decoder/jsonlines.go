package decoder

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"kprobelab/internal/bounded"
	"kprobelab/profile"
	"kprobelab/x86"
)

// Lines counts lines that are no answers.
type Lines struct {
	// NoBytes are lines that hold no bytes in hex; NoInstruction hold bytes at whose
	// start is no instruction.
	NoBytes, NoInstruction int
}

// MaxLine is the longest line that JSONLines reads, in bytes.
const MaxLine = bounded.DecodeLine

// ErrLine: a line is longer than MaxLine.
var ErrLine = fmt.Errorf("a line has more than %d bytes", MaxLine)

// batchBytes bounds the bytes that a processor decodes at a time.
const batchBytes = 1 << 16

// JSONLines reads the bytes of an instruction a line, and writes an object for each, in
// AppendJSON's form. Each instruction is at that address. An empty line has no object. Lines that
// were read are answered while JSONLines waits for more, so a caller may write line by line. Lines
// are decoded on all processors, and answered in order.
func JSONLines(r io.Reader, w io.Writer, at x86.Addr, d *profile.Decoder) (Lines, error) {
	return Processor{}.JSONLines(r, w, at, d)
}

// JSONLines is as the function of that name, on that processor.
func (p Processor) JSONLines(r io.Reader, w io.Writer, at x86.Addr, d *profile.Decoder) (Lines, error) {
	workers := runtime.GOMAXPROCS(0)
	a := answers{w: w, toDo: make(chan *lineBatch, 4*workers), inOrder: make(chan *lineBatch, 4*workers), free: make(chan *lineBatch, 4*workers)}
	for range 4 * workers {
		a.free <- &lineBatch{done: make(chan struct{}, 1)}
	}
	var decoding sync.WaitGroup
	for range workers {
		decoding.Go(func() {
			for b := range a.toDo {
				b.out = b.counts.answer(p, b.out[:0], b.lines, at, d)
				b.done <- struct{}{}
			}
		})
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		a.write()
	}()
	err := a.read(bufio.NewReaderSize(r, MaxLine))
	close(a.toDo)
	close(a.inOrder)
	decoding.Wait()
	<-written
	if a.failed != nil {
		return a.total, a.failed
	}
	return a.total, err
}

// lineBatch is some whole lines and their answers.
type lineBatch struct {
	lines, out []byte
	counts     Lines
	done       chan struct{}
}

// answers are batches under way. A batch is read, goes to a decoder and, in order, to the
// writer, and is free again.
type answers struct {
	w                   io.Writer
	toDo, inOrder, free chan *lineBatch
	// total and failed are the writer's until it has ended; stop tells the reader that
	// it failed.
	total  Lines
	failed error
	stop   atomic.Bool
}

// read makes batches of the available input, until the input ends.
func (a *answers) read(in *bufio.Reader) error {
	for !a.stop.Load() {
		b := <-a.free
		b.lines = b.lines[:0]
		err := fill(in, &b.lines)
		a.toDo <- b
		a.inOrder <- b
		switch err {
		case nil:
		case io.EOF:
			return nil
		default:
			return err
		}
	}
	return nil
}

// write writes the answers in the order of the batches.
func (a *answers) write() {
	for b := range a.inOrder {
		<-b.done
		if a.failed == nil {
			a.total.NoBytes += b.counts.NoBytes
			a.total.NoInstruction += b.counts.NoInstruction
			if len(b.out) > 0 {
				_, a.failed = a.w.Write(b.out)
			}
			a.stop.Store(a.failed != nil)
		}
		b.counts = Lines{}
		a.free <- b
	}
}

// fill takes a line, and those after it that are there already.
func fill(in *bufio.Reader, batch *[]byte) error {
	for {
		line, err := in.ReadSlice('\n')
		*batch = append(*batch, line...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			return ErrLine
		case err == io.EOF:
			*batch = append(*batch, '\n')
			return err
		case err != nil:
			return err
		}
		if len(*batch) >= batchBytes {
			return nil
		}
		if rest, _ := in.Peek(in.Buffered()); bytes.IndexByte(rest, '\n') < 0 {
			return nil
		}
	}
}

// answer appends the answers of whole lines.
func (c *Lines) answer(p Processor, out, part []byte, at x86.Addr, d *profile.Decoder) []byte {
	var b [MaxInsnSize]byte
	for len(part) > 0 {
		end := bytes.IndexByte(part, '\n')
		if end < 0 {
			end = len(part) - 1
		}
		line := part[:end]
		part = part[end+1:]
		n, length := 0, 0
		var err error
		if len(line) > 2*len(b) {
			err = errNotPlain
		} else {
			n, err = hex.Decode(b[:], line)
		}
		code := b[:n]
		if err != nil || n == 0 {
			text := strings.TrimSpace(string(line))
			if text == "" {
				continue
			}
			if code, err = ParseHex(text); err != nil {
				c.NoBytes++
				out = AppendJSONError(out, text, at, err)
				continue
			}
		}
		if out, length = p.AppendJSON(out, code, at, d); length == 0 {
			c.NoInstruction++
		}
	}
	return out
}

var errNotPlain = errors.New("not plain")

// ParseHex reads bytes in hex, with or without blanks, commas, 0x and \x between them.
func ParseHex(s string) ([]byte, error) {
	plain := strings.NewReplacer(" ", "", "\t", "", ",", "", "0x", "", `\x`, "").Replace(s)
	b, err := hex.DecodeString(plain)
	if err != nil || len(b) == 0 {
		return nil, fmt.Errorf("%q is not bytes in hex, such as 48 89 e5", s)
	}
	return b, nil
}

// Wrong says how many lines are no instructions; nil without any.
func (n Lines) Wrong() error {
	if n.NoBytes+n.NoInstruction == 0 {
		return nil
	}
	hold := func(n int) string {
		if n == 1 {
			return "one line holds"
		}
		return fmt.Sprintf("%d lines hold", n)
	}
	return fmt.Errorf("%s no bytes in hex, %s no instruction", hold(n.NoBytes), hold(n.NoInstruction))
}
