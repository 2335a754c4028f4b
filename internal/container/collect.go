package container

import (
	"bytes"
	"errors"
	"io"

	"kprobelab/internal/bounded"
)

// Limits on the unpacked size of a stream. A small file must not cost much memory or
// time: no format that is opened here shrinks to a hundredth of its size.
const (
	// maxRatio bounds the unpacked size of a stream, in multiples of its packed
	// size, once it is past thinFrom.
	maxRatio = bounded.UnpackRatio
	thinFrom = 64 << 20
)

var (
	errTooLarge  = errors.New("it unpacks to more than 1 GiB")
	errTooLong   = errors.New("it unpacks to more than 256 MiB")
	errTooPacked = errors.New("it unpacks to more than 100 times its size, which no kernel does")
)

// Read reads a stream to its end. If it has more than most bytes, the error is tooLong. size is a guess of its length,
// 0 for none.
func Read(r io.Reader, size, most int64, tooLong error) ([]byte, error) {
	c := collector{r: r, size: func([]byte) (int64, error) { return size, nil }, max: most, tooLong: tooLong}
	return c.collect()
}

// extent computes the least length of the file that begins with b, as far as b
// tells it; 0 if it does not. An error ends the reading.
type extent func(b []byte) (int64, error)

const (
	// collectHead is the number of bytes that are read before size is called.
	collectHead = 64 << 10
	// collectStep is the number of bytes that are read at once.
	collectStep = 1 << 20
)

// collector reads a stream into memory.
type collector struct {
	r io.Reader
	// size returns the length of the file in the stream, from the bytes so far.
	size extent
	// max is the most that is read, tooLong the error past it.
	max     int64
	tooLong error
	// packed, if not nil, returns the number of bytes of the packed file that were
	// read.
	packed func() int64
	p      *progress

	out []byte
	// read counts the bytes that were read, dropped ones too.
	read int64
}

// collect reads the stream as far as the file that it holds goes. The rest is
// read, too, for the checksum at the stream's end, and dropped.
func (c *collector) collect() ([]byte, error) {
	n := int64(collectHead)
	for {
		more, err := c.fill(n)
		if err != nil || !more {
			return c.out, err
		}
		if n, err = c.size(c.out); err != nil {
			return nil, err
		}
		switch {
		case n == 0:
			n = int64(2 * len(c.out))
		case n <= int64(len(c.out)):
			return c.out, c.drain()
		case c.p != nil:
			c.p.total = n
		}
	}
}

// fill reads until out has n bytes. There may be more.
func (c *collector) fill(n int64) (more bool, err error) {
	n = min(n, c.max+1) // the one byte too many tells the end from the limit
	if err := bounded.Room(n); err != nil {
		return false, err
	}
	// Memory that nothing is written to costs nothing, and n may be a lie.
	c.out = append(make([]byte, 0, n), c.out...)
	for int64(len(c.out)) < n {
		at := len(c.out)
		got, err := c.next(c.out[at:min(n, int64(at)+collectStep)])
		c.out = c.out[:at+got]
		if err == io.EOF {
			if len(c.out) < cap(c.out)/2 {
				c.out = bytes.Clone(c.out)
			}
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	return true, nil
}

func (c *collector) drain() error {
	b := make([]byte, collectHead)
	for {
		switch _, err := c.next(b); err {
		case nil:
		case io.EOF:
			return nil
		default:
			return err
		}
	}
}

// next reads some, and keeps the limits.
func (c *collector) next(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.read += int64(n)
	c.p.at(c.read)
	switch {
	case c.read > c.max:
		return n, c.tooLong
	case c.packed != nil && c.read > thinFrom && c.read/maxRatio > c.packed():
		return n, errTooPacked
	}
	return n, err
}

// progress reports how far a stage is.
type progress struct {
	report func(stage string, done, total int64)
	stage  string
	total  int64
	last   int64
}

// progressStep is the number of bytes between two reports.
const progressStep = 1 << 20

func (p *progress) at(done int64) {
	if p == nil || p.report == nil || done == p.last || done < p.last+progressStep && done != p.total {
		return
	}
	p.last = done
	p.report(p.stage, done, p.total)
}
