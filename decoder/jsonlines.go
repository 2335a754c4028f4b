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
const MaxLine = 1 << 20

// ErrLine: a line is longer than MaxLine.
var ErrLine = fmt.Errorf("a line has more than %d bytes", MaxLine)

// batchBytes is how much is decoded at once; a part of it goes to each processor.
const batchBytes = 1 << 18

// JSONLines reads the bytes of an instruction a line, and writes an object for each, as
// AppendJSON makes it. Each instruction stands at that address. An empty line has no
// object. What was read is answered before more is waited for, so a caller may ask line
// by line.
func JSONLines(r io.Reader, w io.Writer, at x86.Addr, d *profile.Decoder) (Lines, error) {
	return Processor{}.JSONLines(r, w, at, d)
}

// JSONLines is as the function of that name, on that processor.
func (p Processor) JSONLines(r io.Reader, w io.Writer, at x86.Addr, d *profile.Decoder) (Lines, error) {
	in := bufio.NewReaderSize(r, MaxLine)
	var total Lines
	a := answers{p: p, at: at, d: d, parts: make([][]byte, runtime.GOMAXPROCS(0)), counts: make([]Lines, runtime.GOMAXPROCS(0))}
	for batch := make([]byte, 0, batchBytes); ; batch = batch[:0] {
		err := fill(in, &batch)
		for _, part := range a.answer(batch, &total) {
			if len(part) == 0 {
				continue
			}
			if _, err := w.Write(part); err != nil {
				return total, err
			}
		}
		switch err {
		case nil:
		case io.EOF:
			return total, nil
		default:
			return total, err
		}
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

// answers keeps what a batch needs for the next one.
type answers struct {
	p      Processor
	at     x86.Addr
	d      *profile.Decoder
	parts  [][]byte
	counts []Lines
}

// answer answers whole lines, on all processors; the parts are in order.
func (a *answers) answer(batch []byte, total *Lines) [][]byte {
	workers := len(a.parts)
	if len(batch) < 1<<12 {
		workers = 1
	}
	clear(a.counts)
	var wait sync.WaitGroup
	for n := range workers {
		part := batch
		if n < workers-1 {
			cut := len(batch) / (workers - n)
			if end := bytes.IndexByte(batch[cut:], '\n'); end >= 0 {
				cut += end + 1
			} else {
				cut = len(batch)
			}
			part, batch = batch[:cut], batch[cut:]
		}
		work := func() { a.parts[n] = a.counts[n].answer(a.p, a.parts[n][:0], part, a.at, a.d) }
		if n == workers-1 {
			work()
		} else {
			wait.Go(work)
		}
	}
	wait.Wait()
	for _, c := range a.counts {
		total.NoBytes += c.NoBytes
		total.NoInstruction += c.NoInstruction
	}
	return a.parts[:workers]
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
