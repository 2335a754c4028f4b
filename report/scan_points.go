package report

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"kprobelab/errno"
	"kprobelab/probepoint"
	"kprobelab/x86"
)

// maxLine is the longest line of a list of points, in bytes.
const maxLine = 1 << 20

// ReadPoints reads a list of points, plain or gzip: a symbol or an address,
// with +OFFSET or not, in the first column of each line. Empty lines, comments
// (#) and a header whose first column is "addr" are left out. The error is the
// reader's, or says which line is too long.
func ReadPoints(r io.Reader) ([]string, error) {
	b := bufio.NewReader(r)
	if magic, _ := b.Peek(2); string(magic) == "\x1f\x8b" {
		z, err := gzip.NewReader(b)
		if err != nil {
			return nil, err
		}
		b = bufio.NewReader(z)
	}
	lines := bufio.NewScanner(b)
	lines.Buffer(nil, maxLine)
	var points []string
	n := 0
	for ; lines.Scan(); n++ {
		f := strings.Fields(lines.Text())
		header := n == 0 && len(f) > 1 && f[0] == "addr"
		if len(f) > 0 && f[0][0] != '#' && !header {
			points = append(points, f[0])
		}
	}
	err := lines.Err()
	if errors.Is(err, bufio.ErrTooLong) {
		err = fmt.Errorf("line %d is longer than %d bytes", n+1, maxLine)
	}
	return points, err
}

// point answers one line.
func (s *Scan) point(line string) ScanRow {
	r, err := s.parse(line)
	if err != nil {
		return ScanRow{
			Symbol: printable(line), Errno: -int(errno.EINVAL),
			Reason: string(RuleLine), Detail: err.Error(),
		}
	}
	row := s.row(r, nil)
	row.Symbol, row.Detail = printable(row.Symbol), printable(row.Detail)
	return row
}

// parse reads SYM[+OFF] or ADDR[+OFF]. An address is hexadecimal, with 0x or
// without; a word that could be either is a symbol if there is one.
func (s *Scan) parse(line string) (r probepoint.Request, err error) {
	place, off, has := strings.Cut(line, "+")
	if has {
		if r.Offset, err = parseOffset(off); err != nil {
			return r, err
		}
	}
	digits, prefixed := strings.CutPrefix(place, "0x")
	switch addr, err := strconv.ParseUint(digits, 16, 64); {
	case place == "":
		return r, errors.New("a symbol or an address is missing")
	case err == nil && (prefixed || len(s.View.Lookup(place)) == 0):
		r.Addr = x86.Addr(addr)
	case err != nil && (prefixed || errors.Is(err, strconv.ErrRange)):
		return r, fmt.Errorf("%q is not an address of 64 bits", place)
	default:
		r.Symbol = place
	}
	return r, nil
}

// parseOffset reads a decimal offset, or a hexadecimal one with 0x. The
// kernel's has 32 bits.
func parseOffset(text string) (uint32, error) {
	digits, base := text, 10
	if d, ok := strings.CutPrefix(text, "0x"); ok {
		digits, base = d, 16
	}
	v, err := strconv.ParseUint(digits, base, 32)
	if err != nil {
		return 0, fmt.Errorf("the offset %q is not a number of 32 bits", text)
	}
	return uint32(v), nil
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
