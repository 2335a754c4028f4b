package bpftrace

import (
	"fmt"
	"time"
)

// layouts are the conversions of strftime(3) that are one of Go's.
var layouts = map[byte]string{
	'a': "Mon", 'A': "Monday", 'b': "Jan", 'B': "January", 'c': "Mon Jan _2 15:04:05 2006", 'd': "02", 'D': "01/02/06", 'e': "_2",
	'F': "2006-01-02", 'h': "Jan", 'H': "15", 'I': "03", 'j': "002", 'm': "01", 'M': "04", 'p': "PM", 'r': "03:04:05 PM", 'R': "15:04",
	'S': "05", 'T': "15:04:05", 'x': "01/02/06", 'X': "15:04:05", 'y': "06", 'Y': "2006", 'z': "-0700", 'Z': "MST",
}

// strftime writes a time in UTC, from nanoseconds since 1970. %f are microseconds.
func strftime(format string, ns uint64, dst []byte) []byte {
	t := time.Unix(int64(ns/1e9), int64(ns%1e9)).UTC()
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			dst = append(dst, format[i])
			continue
		}
		i++
		_, week := t.ISOWeek()
		switch c := format[i]; c {
		case '%':
			dst = append(dst, '%')
		case 'n':
			dst = append(dst, '\n')
		case 't':
			dst = append(dst, '\t')
		case 'f':
			dst = fmt.Appendf(dst, "%06d", t.Nanosecond()/1000)
		case 's':
			dst = fmt.Append(dst, t.Unix())
		case 'C':
			dst = fmt.Appendf(dst, "%02d", t.Year()/100)
		case 'u':
			dst = fmt.Append(dst, (int(t.Weekday())+6)%7+1)
		case 'w':
			dst = fmt.Append(dst, int(t.Weekday()))
		case 'V':
			dst = fmt.Appendf(dst, "%02d", week)
		case 'k':
			dst = fmt.Appendf(dst, "%2d", t.Hour())
		case 'l':
			dst = fmt.Appendf(dst, "%2d", (t.Hour()+11)%12+1)
		default:
			if l, ok := layouts[c]; ok {
				dst = t.AppendFormat(dst, l)
			} else {
				dst = append(dst, '%', c)
			}
		}
	}
	return dst
}
