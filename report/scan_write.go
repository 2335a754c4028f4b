package report

import (
	"encoding/json"
	"strconv"
)

// ScanFormat is how rows are written.
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

// scanHeader names the columns, as the tags of ScanRow do.
const scanHeader = "addr\tsymbol\toffset\terrno\tftrace\tboostable\temulated\treason\tdetail\n"

func (f ScanFormat) header() string {
	if f == ScanTSV {
		return scanHeader
	}
	return ""
}

// appendRow appends the row's line to b.
func (f ScanFormat) appendRow(b []byte, row *ScanRow) []byte {
	switch f {
	case ScanTSV:
		return row.appendTSV(b)
	case ScanJSON:
		line, err := json.Marshal(row)
		if err != nil {
			panic("BUG: a scan's row cannot be encoded: " + err.Error())
		}
		return append(append(b, line...), '\n')
	}
	return b
}

func (row *ScanRow) appendTSV(b []byte) []byte {
	b = append(append(b, row.Addr...), '\t')
	b = append(append(b, row.Symbol...), '\t')
	b = append(strconv.AppendUint(b, row.Offset, 10), '\t')
	b = append(strconv.AppendInt(b, int64(row.Errno), 10), '\t')
	for _, v := range []bool{row.Ftrace, row.Boostable, row.Emulated} {
		digit := byte('0')
		if v {
			digit = '1'
		}
		b = append(b, digit, '\t')
	}
	b = append(append(b, row.Reason...), '\t')
	return append(append(b, row.Detail...), '\n')
}
