package report

import (
	"encoding/json"
	"strconv"
	"strings"

	"kprobelab/decoder"
)

// ScanFormat is the format of rows.
type ScanFormat int

// The formats.
const (
	// ScanNone writes no rows: only the totals are wanted.
	ScanNone ScanFormat = iota
	// ScanTSV is a header, and a line for each row; booleans are 0 and 1.
	ScanTSV
	// ScanJSON is an object for each row, one a line.
	ScanJSON
)

// column is one column of a row, in TSV and JSON alike: an address, a text, a
// number or a boolean.
type column struct {
	name   string
	addr   func(*ScanRow) Addr
	text   func(*ScanRow) string
	number func(*ScanRow) int64
	flag   func(*ScanRow) bool
	// when says whether the scan has the column; nil means always.
	when func(*Scan) bool
}

// columns are all, in their order.
var columns = []column{
	{name: "address", addr: func(r *ScanRow) Addr { return r.Addr }},
	{name: "symbol", text: func(r *ScanRow) string { return r.Symbol }},
	{name: "offset", number: func(r *ScanRow) int64 { return int64(r.Offset) }},
	{name: "errno", number: func(r *ScanRow) int64 { return int64(r.Errno) }},
	{name: "ftrace", flag: func(r *ScanRow) bool { return r.Ftrace }},
	{name: "boostable", flag: func(r *ScanRow) bool { return r.Boostable }},
	{name: "emulated", flag: func(r *ScanRow) bool { return r.Emulated }},
	{name: "optimized", flag: func(r *ScanRow) bool { return r.Optimized }},
	{name: "reason", text: func(r *ScanRow) string { return r.Reason }},
	{name: "detail", text: func(r *ScanRow) string { return r.Detail }, when: func(s *Scan) bool { return s.Detail }},
	{name: "slot_addr", addr: func(r *ScanRow) Addr { return r.SlotAddr }, when: func(s *Scan) bool { return s.Slots }},
	{name: "slot", text: func(r *ScanRow) string { return r.Slot.String() }, when: func(s *Scan) bool { return s.Slots }},
	{name: "own", text: func(r *ScanRow) string { return r.Decided }, when: func(s *Scan) bool { return s.Own != nil }},
	{name: "hazard", text: func(r *ScanRow) string { return r.Hazard }},
	{name: "bare_errno", number: func(r *ScanRow) int64 { return int64(r.Bare.Errno) }, when: bare},
	{name: "bare_optimized", flag: func(r *ScanRow) bool { return r.Bare.Optimized }, when: bare},
	{name: "bare_reason", text: func(r *ScanRow) string { return r.Bare.Reason }, when: bare},
	{name: "insn_address", addr: func(r *ScanRow) Addr { return known(r.Bare.Addr) }, when: bare},
	{name: "insn", text: func(r *ScanRow) string { return Bytes(r.Bare.Insn).String() }, when: bare},
	{name: "insn_text", text: func(r *ScanRow) string { return decoder.Text(r.Bare.Insn, r.Bare.Addr) }, when: bare},
	{name: "bare_reading", text: func(r *ScanRow) string { return r.Bare.Read.String() }, when: bare},
	{name: "reading", text: func(r *ScanRow) string { return r.Bare.Right.String() }, when: bare},
	{name: "cause", text: func(r *ScanRow) string { return r.Bare.Cause }, when: bare},
}

func bare(s *Scan) bool { return s.Bare }

func (c *column) in(s *Scan) bool { return c.when == nil || c.when(s) }

func (f ScanFormat) header(s *Scan) string {
	if f != ScanTSV {
		return ""
	}
	var names []string
	for i := range columns {
		if columns[i].in(s) {
			names = append(names, columns[i].name)
		}
	}
	return strings.Join(names, "\t") + "\n"
}

// appendRow appends the row's line to b.
func (f ScanFormat) appendRow(b []byte, row *ScanRow, s *Scan) []byte {
	switch f {
	case ScanTSV:
		return append(row.appendTSV(b, s), '\n')
	case ScanJSON:
		return append(row.appendJSON(b, s), '\n')
	}
	return b
}

// appendTSV appends the columns, without the line's end.
func (row *ScanRow) appendTSV(b []byte, s *Scan) []byte {
	for i := range columns {
		c := &columns[i]
		if !c.in(s) {
			continue
		}
		if i > 0 {
			b = append(b, '\t')
		}
		switch {
		case c.addr != nil:
			b = c.addr(row).append(b)
		case c.text != nil:
			b = append(b, c.text(row)...)
		case c.number != nil:
			b = strconv.AppendInt(b, c.number(row), 10)
		case c.flag(row):
			b = append(b, '1')
		default:
			b = append(b, '0')
		}
	}
	return b
}

// appendJSON appends the columns as an object.
func (row *ScanRow) appendJSON(b []byte, s *Scan) []byte {
	for i := range columns {
		c := &columns[i]
		if !c.in(s) {
			continue
		}
		b = append(append(append(b, ',', '"'), c.name...), '"', ':')
		if i == 0 {
			b[len(b)-len(c.name)-4] = '{'
		}
		switch {
		case c.addr != nil:
			b = append(c.addr(row).append(append(b, '"')), '"')
		case c.text != nil:
			b = appendString(b, c.text(row))
		case c.number != nil:
			b = strconv.AppendInt(b, c.number(row), 10)
		default:
			b = strconv.AppendBool(b, c.flag(row))
		}
	}
	return append(b, '}')
}

// appendString appends a JSON string. Nearly all are plain, and the library
// would copy each of them twice.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			quoted, err := json.Marshal(s)
			if err != nil {
				panic("BUG: a string cannot be encoded: " + err.Error())
			}
			return append(b, quoted...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}
