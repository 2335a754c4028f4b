package report

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"kprobelab/errno"
	"kprobelab/kprobes/probepoint"
	"kprobelab/kprobes/rule"
	"kprobelab/x86"

	"kprobelab/internal/bounded"
	"kprobelab/internal/place"
)

// ScanPoint is one point of a list.
type ScanPoint struct {
	// Text is a symbol or an address, with +OFFSET or not.
	Text string
	// SlotAddr is the address of its slot, 0 if the list does not say.
	SlotAddr x86.Addr
}

// ReadPoints reads a list of points, plain or gzip: the first column of each
// line. Empty lines, comments (#) and a header whose first column is "addr"
// or "address" are left out. If the header (which may be a comment) has a column
// "slot_addr", that is read too. The error is the reader's, or says which line is too long.
func ReadPoints(r io.Reader) ([]ScanPoint, error) {
	var l pointList
	err := eachLine(r, func(line []byte) error {
		l.add(string(line))
		return nil
	})
	return l.points, err
}

// eachLine calls f for each line of a file, plain or gzip, until f returns an
// error. It puts the line's number before that error.
func eachLine(r io.Reader, f func(line []byte) error) error {
	b := bufio.NewReader(r)
	if magic, _ := b.Peek(2); string(magic) == "\x1f\x8b" {
		z, err := gzip.NewReader(b)
		if err != nil {
			return err
		}
		b = bufio.NewReader(z)
	}
	lines := bufio.NewScanner(bounded.Reader(b, bounded.ListFile))
	lines.Buffer(nil, bounded.ListLine)
	n := 1
	for ; lines.Scan(); n++ {
		if err := f(lines.Bytes()); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("line %d is longer than %d bytes", n, bounded.ListLine)
	}
	return lines.Err()
}

// pointList is a list that is being read.
type pointList struct {
	points []ScanPoint
	// slot is the number of the column slot_addr, 0 if there is none.
	slot int
	// addresses says that the first column has addresses, for it has a header that says so.
	addresses bool
}

func (l *pointList) add(line string) {
	f := strings.Fields(line)
	switch {
	case len(f) == 0:
	case len(l.points) == 0 && len(f) > 1 && isHeader(f[0]):
		l.addresses, l.slot = true, max(0, slices.Index(strings.Split(line, "\t"), "slot_addr"))
	case f[0][0] != '#':
		if l.addresses && strings.Trim(f[0], "0123456789abcdefABCDEF") == "" {
			f[0] = "0x" + f[0]
		}
		l.points = append(l.points, ScanPoint{f[0], l.slotAddr(line)})
	}
}

func isHeader(first string) bool {
	first = strings.TrimPrefix(first, "#")
	return first == "addr" || first == "address"
}

// slotAddr returns the line's slot address, 0 if the column is empty.
func (l *pointList) slotAddr(line string) x86.Addr {
	if l.slot == 0 {
		return 0
	}
	columns := strings.Split(line, "\t")
	if l.slot >= len(columns) {
		return 0
	}
	v, _ := strconv.ParseUint(strings.TrimPrefix(columns[l.slot], "0x"), 16, 64)
	return x86.Addr(v)
}

// point answers one point.
func (s *scanner) point(p ScanPoint) ScanRow {
	r, err := s.parse(p.Text)
	if err != nil {
		return ScanRow{
			Symbol: printable(p.Text), Errno: -int(errno.EINVAL),
			Reason: rule.Line.String(), Rule: rule.Line, Detail: err.Error(),
		}
	}
	if p.SlotAddr == 0 {
		p.SlotAddr = s.SlotAddr
	}
	row := s.row(r, p.SlotAddr, nil)
	row.Symbol, row.Detail = printable(row.Symbol), printable(row.Detail)
	return row
}

// requestOf reads a place.
func requestOf(text string) (probepoint.Request, error) {
	at, err := place.Parse(text)
	return probepoint.Request{Symbol: at.Symbol, Addr: at.Addr, Offset: at.Offset}, err
}

// parse reads a place, for which an address in a program may be the file's own, as nm and objdump print it.
func (s *Scan) parse(text string) (probepoint.Request, error) {
	r, err := requestOf(text)
	if err == nil && r.Symbol == "" && uint64(r.Addr) < s.Bias {
		r.Addr = r.Addr.Add(int64(s.Bias))
	}
	return r, err
}

// printable keeps text from the input from steering a terminal.
func printable(text string) string {
	for _, r := range text {
		if !strconv.IsPrint(r) || r == utf8.RuneError {
			q := strconv.QuoteToASCII(text)
			return q[1 : len(q)-1]
		}
	}
	return text
}
