package libcheck

import (
	"time"
	"unicode/utf16"
)

// hz is the timer frequency of Debian's kernels.
const hz = 250

// timeFuncs are kernel/time and lib of drivers/rtc.
var timeFuncs = []Func{
	{"mktime64", func(g *Gen) Call {
		t := g.moment()
		return call(t.Year(), int(t.Month()), t.Day(), t.Hour(), t.Minute(), t.Second()).gives(I64(t.Unix()))
	}},
	{"time64_to_tm", func(g *Gen) Call {
		t, offset := g.moment(), g.IntN(86400)-43200
		shown := t.Add(time.Duration(offset) * time.Second)
		tm := tmWords(shown)
		long := le.AppendUint32(le.AppendUint32(nil, 0), 0)
		le.PutUint64(long, uint64(shown.Year()-1900))
		// struct tm: five ints, four bytes of padding, long year, two ints
		out := append(append(tm[:20:20], 0, 0, 0, 0), long...)
		out = append(out, tm[24:32]...)
		return call(t.Unix(), offset, zeroed(out))
	}},
	{"rtc_time64_to_tm", func(g *Gen) Call {
		t := g.moment()
		out := append(tmWords(t), 0, 0, 0, 0)       // nine ints, the last tm_isdst
		le.PutUint32(out[28:], uint32(t.YearDay())) // this tm_yday counts from 1
		return call(t.Unix(), changed(g.Bytes(36), out))
	}},
	{"rtc_month_days", func(g *Gen) Call {
		month, year := g.IntN(12), 1900+g.IntN(300)
		days := time.Date(year, time.Month(month+2), 0, 0, 0, 0, 0, time.UTC).Day()
		return call(month, year).gives(I32(days))
	}},
	{"rtc_year_days", func(g *Gen) Call {
		day, month, year := 1+g.IntN(28), g.IntN(12), 1900+g.IntN(300)
		want := time.Date(year, time.Month(month+1), day, 0, 0, 0, 0, time.UTC).YearDay() - 1
		return call(day, month, year).gives(I32(want))
	}},
	ofNumber("nsecs_to_jiffies64", func(v uint64) Want { return U64(v / (1_000_000_000 / hz)) }),
	ofNumber("nsecs_to_jiffies", func(v uint64) Want { return U64(v / (1_000_000_000 / hz)) }),
	ofNumber("jiffies_to_msecs", func(v uint64) Want { return U32(uint32(v * (1000 / hz))) }),
	ofNumber("jiffies_to_usecs", func(v uint64) Want { return U32(uint32(v * (1_000_000 / hz))) }),
	ofNumber("jiffies64_to_nsecs", func(v uint64) Want { return U64(v * (1_000_000_000 / hz)) }),
	{"__msecs_to_jiffies", func(g *Gen) Call {
		v := g.Uint32() >> (1 + g.IntN(31))
		return call(v).gives(U64((uint64(v) + 1000/hz - 1) / (1000 / hz)))
	}},
	{"__usecs_to_jiffies", func(g *Gen) Call {
		v := g.Uint32() >> (1 + g.IntN(31))
		const each = 1_000_000 / hz
		return call(v).gives(U64((uint64(v) + each - 1) / each))
	}},
}

// moment is a second between 1970 and 2100.
func (g *Gen) moment() time.Time { return time.Unix(g.Int64N(4102444800), 0).UTC() }

// tmWords is sec, min, hour, mday, mon, year, wday, yday as 32-bit words.
func tmWords(t time.Time) (b []byte) {
	for _, v := range []int{
		t.Second(), t.Minute(), t.Hour(), t.Day(), int(t.Month()) - 1, t.Year() - 1900, int(t.Weekday()), t.YearDay() - 1,
	} {
		b = le.AppendUint32(b, uint32(v))
	}
	return b
}

// unicodeFuncs are lib/ucs2_string.c and fs/nls/nls_base.c.
var unicodeFuncs = []Func{
	{"ucs2_strlen", func(g *Gen) Call {
		s := g.runes()
		return call(ucs2(s)).gives(U64(len(s)))
	}},
	{"ucs2_strnlen", func(g *Gen) Call {
		s, max := g.runes(), g.IntN(16)
		return call(ucs2(s), max).gives(U64(min(len(s), max)))
	}},
	{"ucs2_strsize", func(g *Gen) Call {
		s := g.runes()
		return call(ucs2(s), 1000).gives(U64(2 * len(s)))
	}},
	{"ucs2_utf8size", func(g *Gen) Call {
		s := g.runes()
		return call(ucs2(s)).gives(U64(len(string(s))))
	}},
	{"ucs2_as_utf8", func(g *Gen) Call {
		s := g.runes()
		return call(out(cstr(string(s)), 64), ucs2(s), 64).gives(U64(len(string(s))))
	}},
	{"utf8_to_utf32", func(g *Gen) Call {
		r := g.runes()[0]
		s := string(r)
		return call(padded([]byte(s), 8), len(s), zeroed(le.AppendUint32(nil, uint32(r)))).gives(I32(len(s)))
	}},
	{"utf32_to_utf8", func(g *Gen) Call {
		r := g.runes()[0]
		s := string(r)
		return call(r, out([]byte(s), 8), 8).gives(I32(len(s)))
	}},
}

// runes are one to twelve characters of the basic plane, none a surrogate.
func (g *Gen) runes() []rune {
	s := make([]rune, 1+g.IntN(12))
	for i := range s {
		s[i] = rune(1 + g.IntN([]int{0x7e, 0x7fe, 0xd700}[g.IntN(3)]))
	}
	return s
}

func ucs2(s []rune) (b []byte) {
	for _, u := range append(utf16.Encode(s), 0) {
		b = le.AppendUint16(b, u)
	}
	return b
}
