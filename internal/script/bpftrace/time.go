package bpftrace

import (
	"bytes"
	"fmt"
	"strings"
	"time"
)

// timeRoom is the maximum size in bytes of the text of time(), with the NUL; a longer text is not printed.
const timeRoom = 64

// noTime is the tool's message for a time whose text is empty or too long.
const noTime = "strftime returned 0"

// microseconds puts those of a time into a format of strftime(), whose %f they are; time() has no %f.
func microseconds(format string, ns uint64) string {
	return strings.ReplaceAll(format, "%f", fmt.Sprintf("%06d", ns%1e9/1000))
}

// layouts are the conversions of strftime(3) that are texts of Go's, and what they are made of.
var layouts = map[byte]string{
	'a': "Mon", 'A': "Monday", 'b': "Jan", 'B': "January", 'c': "Mon Jan _2 15:04:05 2006", 'D': "01/02/06", 'F': "2006-01-02", 'h': "Jan",
	'p': "PM", 'P': "pm", 'r': "03:04:05 PM", 'R': "15:04", 'T': "15:04:05", 'x': "01/02/06", 'X': "15:04:05", 'Z': "MST",
}

// numbers holds the conversions that give a number: its width, the padding before it, and its value.
var numbers = map[byte]struct {
	width int
	pad   byte
	of    func(t time.Time) int
}{
	'C': {2, '0', func(t time.Time) int { return t.Year() / 100 }},
	'd': {2, '0', time.Time.Day},
	'e': {2, ' ', time.Time.Day},
	'g': {2, '0', func(t time.Time) int { return isoYear(t) % 100 }},
	'G': {0, '0', isoYear},
	'H': {2, '0', time.Time.Hour},
	'I': {2, '0', func(t time.Time) int { return (t.Hour()+11)%12 + 1 }},
	'j': {3, '0', time.Time.YearDay},
	'k': {2, ' ', time.Time.Hour},
	'l': {2, ' ', func(t time.Time) int { return (t.Hour()+11)%12 + 1 }},
	'm': {2, '0', func(t time.Time) int { return int(t.Month()) }},
	'M': {2, '0', time.Time.Minute},
	's': {0, '0', func(t time.Time) int { return int(t.Unix()) }},
	'S': {2, '0', time.Time.Second},
	'u': {1, '0', func(t time.Time) int { return (int(t.Weekday())+6)%7 + 1 }},
	'U': {2, '0', func(t time.Time) int { return (t.YearDay() + 6 - int(t.Weekday())) / 7 }},
	'V': {2, '0', func(t time.Time) int { _, week := t.ISOWeek(); return week }},
	'w': {1, '0', func(t time.Time) int { return int(t.Weekday()) }},
	'W': {2, '0', func(t time.Time) int { return (t.YearDay() + 6 - (int(t.Weekday())+6)%7) / 7 }},
	'y': {2, '0', func(t time.Time) int { return t.Year() % 100 }},
	'Y': {0, '0', time.Time.Year},
	'z': {4, '0', func(time.Time) int { return 0 }},
}

func isoYear(t time.Time) int { year, _ := t.ISOWeek(); return year }

// strftime writes a time in UTC, from nanoseconds since 1970, as glibc does.
func strftime(format string, ns uint64, dst []byte) []byte {
	t := time.Unix(int64(ns/1e9), int64(ns%1e9)).UTC()
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			dst = append(dst, format[i])
			continue
		}
		from := i
		pad, upper, other, width := byte(0), false, false, 0
		for i++; i < len(format) && strings.IndexByte("_-0^#", format[i]) >= 0; i++ {
			switch format[i] {
			case '^':
				upper = true
			case '#':
				other = true
			default:
				pad = format[i]
			}
		}
		for ; i < len(format) && format[i] >= '0' && format[i] <= '9'; i++ {
			width = min(10*width+int(format[i]-'0'), timeRoom)
		}
		if i < len(format) && (format[i] == 'E' || format[i] == 'O') {
			i++ // of other calendars and digits, which the C locale does not have
		}
		if i == len(format) {
			return append(dst, padded([]byte(format[from:]), pad, width)...)
		}
		text, ok := converted(t, format[i], pad, width)
		if !ok {
			// The conversion is printed as it is, and what comes after it.
			dst = append(dst, padded([]byte(format[from:i+1]), pad, width)...)
			continue
		}
		switch {
		case other && strings.IndexByte(lowered, format[i]) >= 0:
			text = bytes.ToLower(text)
		case upper, other && strings.IndexByte(raised, format[i]) >= 0:
			text = bytes.ToUpper(text)
		}
		dst = append(dst, text...)
	}
	return dst
}

// converted is one conversion; pad and width are its own, 0 where it has none.
func converted(t time.Time, c, pad byte, width int) (text []byte, ok bool) {
	if c == 'z' { // the sign is padded by itself
		text, _ = numbered(t, c, pad, width)
		return append(padded([]byte("+"), pad, width), text...), true
	}
	l, ok := layouts[c]
	if ok {
		text = t.AppendFormat(nil, l)
	} else if text, ok = signs[c]; !ok {
		return numbered(t, c, pad, width)
	}
	return padded(text, pad, width), true
}

// padded is a text with what comes before it.
func padded(text []byte, pad byte, width int) []byte {
	before := byte(' ')
	if pad == '0' {
		before = '0'
	}
	return append(bytes.Repeat([]byte{before}, max(width-len(text), 0)), text...)
}

// signs are the conversions that give the same at all times.
var signs = map[byte][]byte{'%': []byte("%"), 'n': []byte("\n"), 't': []byte("\t")}

// lowered are the conversions that # makes lower case; it makes raised upper case.
const (
	lowered = "pZ"
	raised  = "aAbBh"
)

// numbered is a conversion that gives a number.
func numbered(t time.Time, c, pad byte, width int) (text []byte, ok bool) {
	n, ok := numbers[c]
	if !ok {
		return nil, false
	}
	text = fmt.Append(nil, n.of(t))
	switch pad {
	case '-':
		n.pad, n.width = ' ', 0
	case '_':
		n.pad = ' '
	case '0':
		n.pad = '0'
	}
	return append(bytes.Repeat([]byte{n.pad}, max(max(n.width, width)-len(text), 0)), text...), true
}
