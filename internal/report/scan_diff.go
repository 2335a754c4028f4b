package report

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"kprobelab/errno"
)

// ScanFile holds a scan that was written as JSON lines, by function.
type ScanFile struct {
	// Name is its name in messages.
	Name string
	// Rows counts its rows.
	Rows int

	functions map[functionKey]*scanned
	// keys are in the file's order.
	keys []functionKey
}

// functionKey names a function across kernels: several of one name are told
// apart by their order.
type functionKey struct {
	name string
	nth  int
}

// scanned are the rows of one function.
type scanned struct {
	rows      []offsetAnswer
	optimized int
}

// offsetAnswer is a row without its address.
type offsetAnswer struct {
	offset uint64
	ScanAnswer
}

// ScanAnswer is a scan's answer for a point, without the place.
type ScanAnswer struct {
	Errno     int    `json:"errno"`
	Ftrace    bool   `json:"ftrace"`
	Boostable bool   `json:"boostable"`
	Emulated  bool   `json:"emulated"`
	Optimized bool   `json:"optimized"`
	Reason    string `json:"reason"`
}

// String is the answer for people, such as "int3, NOT_BOOSTABLE (emulated)".
func (a ScanAnswer) String() string {
	if a.Errno != 0 {
		return errno.Errno(-a.Errno).Name() + " " + a.Reason
	}
	s := "int3, " + a.Reason
	switch {
	case a.Ftrace:
		return "ftrace"
	case a.Optimized:
		s = "optimized"
	}
	switch {
	case a.Boostable:
		s += " (boosted)"
	case a.Emulated:
		s += " (emulated)"
	}
	return s
}

// ErrScanFile: a file is no JSON lines of a scan.
var ErrScanFile = errors.New("not what scan --json writes")

// ReadScan reads a scan's JSON lines, plain or gzip. An error names the line; it is
// ErrScanFile if the line is no scan's.
func ReadScan(name string, r io.Reader) (*ScanFile, error) {
	l := newScanReader(name)
	f := l.f
	if err := eachLine(r, l.add); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if f.Rows == 0 {
		return nil, fmt.Errorf("%s: %w: it has no rows", name, ErrScanFile)
	}
	return f.sorted(), nil
}

// sorted has the rows of each function by their offsets.
func (f *ScanFile) sorted() *ScanFile {
	for _, fn := range f.functions {
		slices.SortStableFunc(fn.rows, func(a, b offsetAnswer) int { return cmp.Compare(a.offset, b.offset) })
	}
	return f
}

// scanReader reads a ScanFile.
type scanReader struct {
	f *ScanFile
	// starts are the addresses of the functions of a name, in the file's order.
	starts map[string][]uint64
	// reasons keeps one copy of each.
	reasons map[string]string
}

func newScanReader(name string) *scanReader {
	f := &ScanFile{Name: name, functions: map[functionKey]*scanned{}}
	return &scanReader{f: f, starts: map[string][]uint64{}, reasons: map[string]string{}}
}

func (l *scanReader) add(line []byte) error {
	row := struct {
		Addr   *Addr   `json:"address"`
		Symbol *string `json:"symbol"`
		Offset uint64  `json:"offset"`
		ScanAnswer
	}{}
	if err := json.Unmarshal(line, &row); err != nil || row.Addr == nil || row.Symbol == nil {
		return ErrScanFile
	}
	l.row(uint64(row.Addr.Addr), *row.Symbol, row.Offset, row.ScanAnswer)
	return nil
}

// row adds what is said of a point.
func (l *scanReader) row(addr uint64, symbol string, offset uint64, says ScanAnswer) {
	if symbol == "" {
		offset = addr // an address without symbol stands for itself
	}
	fn := l.function(l.key(symbol, addr, offset))
	if says.Optimized {
		fn.optimized++
	}
	says.Reason = l.reason(says.Reason)
	fn.rows = append(fn.rows, offsetAnswer{offset, says})
	l.f.Rows++
}

func (l *scanReader) key(symbol string, addr, offset uint64) functionKey {
	if symbol == "" || addr == 0 {
		return functionKey{symbol, 0}
	}
	starts := l.starts[symbol]
	i := slices.Index(starts, addr-offset)
	if i < 0 {
		i = len(starts)
		l.starts[symbol] = append(starts, addr-offset)
	}
	return functionKey{symbol, i}
}

func (l *scanReader) function(k functionKey) *scanned {
	fn := l.f.functions[k]
	if fn == nil {
		fn = &scanned{}
		l.f.functions[k] = fn
		l.f.keys = append(l.f.keys, k)
	}
	return fn
}

// reason is the rule's id alone: the addresses of a name that has several say
// nothing across kernels.
func (l *scanReader) reason(text string) string {
	id, _, _ := strings.Cut(text, ";")
	if one, ok := l.reasons[id]; ok {
		return one
	}
	l.reasons[id] = strings.Clone(id)
	return id
}
