package event

import (
	"encoding/binary"

	"kprobelab/profile"
)

// Kind is the format of a field's bytes.
type Kind int

// The kinds.
const (
	// KindPlain is one number of Size bytes.
	KindPlain Kind = iota
	// KindArray is Len numbers, of Size/Len bytes each.
	KindArray
	// KindString is a __data_loc: 4 bytes with the offset and length of the text.
	KindString
	// KindStringArray is Len __data_locs.
	KindStringArray
)

// Field is one field of a record (struct ftrace_event_field).
type Field struct {
	// Name is the field's name.
	Name string
	// Type is the declared type: "u64", "u8[4]", "__data_loc char[]".
	Type string
	// Offset and Size are in bytes, Offset from the record's start.
	Offset, Size int
	Signed       bool
	Kind         Kind
	// Len is the number of elements of an array, 0 for other fields.
	Len int
}

// Width is the size in bytes of the field's number, or of each in an array.
func (f *Field) Width() int {
	if f.Len > 0 {
		return f.Size / f.Len
	}
	return f.Size
}

// Number is element i of the field in rec (0 for a plain field), extended to
// 64 bits by its sign. rec must reach to the field's end.
func (f *Field) Number(rec []byte, i int) uint64 {
	w := f.Width()
	return Number(rec[f.Offset+i*w:], w, f.Signed)
}

// Number reads a number of 1, 2, 4 or 8 bytes, extended to 64 bits by its sign.
func Number(b []byte, width int, signed bool) uint64 {
	switch width {
	case 1:
		if signed {
			return uint64(int64(int8(b[0])))
		}
		return uint64(b[0])
	case 2:
		v := binary.LittleEndian.Uint16(b)
		if signed {
			return uint64(int64(int16(v)))
		}
		return uint64(v)
	case 4:
		v := binary.LittleEndian.Uint32(b)
		if signed {
			return uint64(int64(int32(v)))
		}
		return uint64(v)
	}
	return binary.LittleEndian.Uint64(b)
}

// Text returns string i of a KindString (i is 0) or KindStringArray field in rec, without its NUL.
// It is part of rec. False means that the string could not be fetched, which prints as "(fault)",
// or that it lies outside rec.
func (f *Field) Text(rec []byte, i int) ([]byte, bool) {
	loc := binary.LittleEndian.Uint32(rec[f.Offset+4*i:])
	at, n := int(loc&0xffff), int(loc>>16)
	if n == 0 || at+n > len(rec) {
		return nil, false
	}
	b := rec[at : at+n]
	for j, c := range b {
		if c == 0 {
			return b[:j], true
		}
	}
	return b, true
}

// Loc is the value of a __data_loc field: n bytes, NUL included, at offset at.
func Loc(at, n int) uint32 { return uint32(n)<<16 | uint32(at)&0xffff }

// CommonSize is the size in bytes of the fields that every record begins with.
const CommonSize = 8

// Offsets of the common fields.
const (
	OffType         = 0
	OffFlags        = 2
	OffPreemptCount = 3
	OffPID          = 4
)

// Common are the fields that every record begins with (struct trace_entry).
func Common() []Field {
	return []Field{
		{Name: "common_type", Type: "unsigned short", Offset: OffType, Size: 2},
		{Name: "common_flags", Type: "unsigned char", Offset: OffFlags, Size: 1},
		{Name: "common_preempt_count", Type: "unsigned char", Offset: OffPreemptCount, Size: 1},
		{Name: "common_pid", Type: "int", Offset: OffPID, Size: 4, Signed: true},
	}
}

// Bits of common_flags (enum trace_flag_type).
const (
	FlagIRQsOff          = 0x01
	FlagIRQsNotSupported = 0x02
	FlagLazyResched      = profile.TraceLazyResched // where profile.Tracing has LazyResched
	FlagNeedResched      = profile.TraceNeedResched
	FlagHardIRQ          = 0x08
	FlagSoftIRQ          = 0x10
	FlagPreemptResched   = 0x20
	FlagNMI              = 0x40
	FlagBHOff            = 0x80
)
