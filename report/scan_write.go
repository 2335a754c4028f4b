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

// scanHeader names the columns, as the tags of ScanRow do; slotHeader the two
// that Scan.Slots adds.
const (
	scanHeader = "address\tsymbol\toffset\terrno\tftrace\tboostable\temulated\treason\tdetail"
	slotHeader = "\tslot_addr\tslot"
)

func (f ScanFormat) header(slots bool) string {
	switch {
	case f != ScanTSV:
		return ""
	case slots:
		return scanHeader + slotHeader + "\n"
	}
	return scanHeader + "\n"
}

// withSlot is a row with the columns that Scan.Slots adds.
type withSlot struct {
	*ScanRow
	SlotAddr string `json:"slot_addr"`
	Slot     string `json:"slot"`
}

// appendRow appends the row's line to b.
func (f ScanFormat) appendRow(b []byte, row *ScanRow, slots bool) []byte {
	switch {
	case f == ScanTSV && slots:
		return append(row.appendTSV(b), "\t"+row.SlotAddr+"\t"+row.Slot+"\n"...)
	case f == ScanTSV:
		return append(row.appendTSV(b), '\n')
	case f == ScanJSON && slots:
		return appendJSON(b, withSlot{row, row.SlotAddr, row.Slot})
	case f == ScanJSON:
		return appendJSON(b, row)
	}
	return b
}

func appendJSON(b []byte, row any) []byte {
	line, err := json.Marshal(row)
	if err != nil {
		panic("BUG: a scan's row cannot be encoded: " + err.Error())
	}
	return append(append(b, line...), '\n')
}

// appendTSV appends the columns, without the line's end.
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
	return append(b, row.Detail...)
}
