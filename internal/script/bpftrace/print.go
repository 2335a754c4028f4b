package bpftrace

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kprobelab/internal/script"
)

// mapInfo is a map with what its bytes mean.
type mapInfo struct {
	array    *script.Array
	name     string
	key, val *Type
}

// single reports whether the map has one element, always: a count() without a key, which the tool keeps in an
// array of the kernel's.
func (m *mapInfo) single() bool { return m.val.Kind == Count && m.key.Kind == None }

// jsonText is a text as JSON has it between quotes.
func jsonText(s string) string {
	var b strings.Builder
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		case c == '\t':
			b.WriteString(`\t`)
		case c < 0x20:
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

func jsonMessage(dst []byte, kind string, text []byte) []byte {
	return fmt.Appendf(dst, "{\"type\": \"%s\", \"data\": \"%s\"}\n", kind, jsonText(string(text)))
}

// message prints a text of the tool's own kinds.
func (s *Script) message(t *script.Thread, kind, text string, line bool) {
	if s.json {
		t.Print(jsonMessage(nil, kind, []byte(text)))
		return
	}
	if line {
		text += "\n"
	}
	t.Print([]byte(text))
}

// Attaching returns the line that bpftrace prints before it attaches the probes.
func (s *Script) Attaching() string {
	n := s.Attached
	switch {
	case s.newest && !s.json && n == 1:
		return "Attached 1 probe\n"
	case s.newest && !s.json && n > 0:
		return fmt.Sprintf("Attached %d probes\n", n)
	case n == 0:
		return "No probes to attach\n"
	case s.json:
		return fmt.Sprintf("{\"type\": \"attached_probes\", \"data\": {\"probes\": %d}}\n", n)
	case n == 1:
		return "Attaching 1 probe...\n"
	}
	return fmt.Sprintf("Attaching %d probes...\n", n)
}

// Quietly reports whether the number of probes goes to standard error.
func (s *Script) Quietly() bool { return s.newest && !s.json }

// printed is a value by itself.
func (s *Script) printed(name string, element bool, v string) string {
	if s.json {
		return `{"type": "value", "data": ` + v + "}\n"
	}
	return v + "\n"
}

// PrintMaps prints all maps, as at the end of a script.
func (s *Script) PrintMaps(t *script.Thread) {
	if s.noMaps {
		s.PrintNoMaps(t)
		return
	}
	t.Print([]byte("\n\n"))
	list := slices.Clone(s.maps)
	slices.SortFunc(list, func(a, b *mapInfo) int { return strings.Compare(a.name, b.name) })
	for _, m := range list {
		s.printMap(t, m, 0, 0)
	}
	t.Flush()
}

// PrintNoMaps ends the output without the maps.
func (s *Script) PrintNoMaps(t *script.Thread) {
	t.Print([]byte("\n\n"))
	t.Flush()
}

// printMap prints a map: the largest values at the end, top of them, divided by div.
func (s *Script) printMap(t *script.Thread, m *mapInfo, top, div int64) {
	list := t.Entries(m.array)
	if len(list) == 0 && s.newest {
		return
	}
	m.sort(list)
	latest := m.latest(list)
	if div == 0 {
		div = 1
	}
	if top > 0 && int64(len(list)) > top && m.val.Kind != Stats && m.val.Kind != Tseries {
		list = list[int64(len(list))-top:]
	}
	var b strings.Builder
	if s.json {
		s.jsonMap(&b, t, m, list, div, latest)
	} else {
		for i, e := range list {
			if i > 0 && !m.val.isStack() && m.val.Kind != Ksym && m.val.Kind != Usym && m.val.Kind != Inet {
				b.WriteByte('\n')
			}
			b.WriteString(m.name)
			if m.key.Kind != None {
				b.WriteString("[" + s.keyText(t, m, e.Key) + "]")
			}
			b.WriteByte(':')
			if m.val.Kind >= Hist {
				b.WriteByte('\n')
			} else {
				b.WriteByte(' ')
			}
			b.WriteString(s.entry(t, m, e, div, latest))
		}
		b.WriteByte('\n')
		if !s.newest && (m.val.kind() == Avg || m.val.Kind == Stats) {
			b.WriteByte('\n')
		}
	}
	t.Print([]byte(b.String()))
}

func (s *Script) jsonMap(b *strings.Builder, t *script.Thread, m *mapInfo, list []script.Entry, div int64, latest uint64) {
	if len(list) == 0 {
		return
	}
	kind := "map"
	switch m.val.Kind {
	case Hist, Lhist:
		kind = "hist"
	case Tseries:
		kind = "tseries"
	case Avg, Stats:
		kind = "stats"
	}
	fmt.Fprintf(b, `{"type": "%s", "data": {"%s": `, kind, jsonText(m.name))
	if m.key.Kind != None {
		b.WriteByte('{')
	}
	for i, e := range list {
		if i > 0 {
			b.WriteString(", ")
		}
		if m.key.Kind != None {
			// A key that is a string has been made fit for JSON before, as bpftrace does it.
			b.WriteString(`"` + jsonText(s.keyText(t, m, e.Key)) + `": `)
		}
		b.WriteString(s.entry(t, m, e, div, latest))
	}
	if m.key.Kind != None {
		b.WriteByte('}')
	}
	b.WriteString("}}\n")
}

// keyText is a key between the brackets.
func (s *Script) keyText(t *script.Thread, m *mapInfo, key []byte) string {
	n, text := script.Unpack(key, []script.Type{m.key.core()}, 0)
	return s.render(t, m.key, n, text, true, 1)
}

// entry is the value of an element. A series ends with the interval latest.
func (s *Script) entry(t *script.Thread, m *mapInfo, e script.Entry, div int64, latest uint64) string {
	st := e.Stats
	avg := int64(0)
	if st.Count > 0 {
		avg = st.Sum / st.Count
	}
	switch m.val.Kind {
	case Min:
		return s.plain(t, m.val, st.Min, nil, div)
	case Max:
		return s.plain(t, m.val, st.Max, nil, div)
	case Avg:
		return strconv.FormatInt(avg/div, 10)
	case Stats:
		if s.json {
			return fmt.Sprintf(`{"count": %d, "average": %d, "total": %d}`, st.Count, avg/div, st.Sum)
		}
		if s.newest {
			return fmt.Sprintf("{ .count = %d, .average = %d, .total = %d }", st.Count, avg/div, st.Sum)
		}
		return fmt.Sprintf("count %d, average %d, total %d", st.Count, avg/div, st.Sum)
	case Hist:
		return s.histogram(&m.array.Histogram, st.Buckets, div)
	case Lhist:
		return s.histogram(&m.array.Histogram, st.Buckets, 1)
	case Tseries:
		return s.series(&m.array.Histogram, st.Buckets, latest)
	}
	return s.render(t, m.val, e.Int, e.Text, false, div)
}

// sort puts the elements into the order in which they are printed.
func (m *mapInfo) sort(list []script.Entry) {
	order := func(a, b int64, signed bool) int {
		switch {
		case a == b:
			return 0
		case signed && a < b || !signed && uint64(a) < uint64(b):
			return -1
		}
		return 1
	}
	total := func(e script.Entry) (n int64) {
		for _, b := range e.Stats.Buckets {
			n += b
		}
		return n
	}
	avg := func(e script.Entry) int64 {
		if e.Stats.Count == 0 {
			return 0
		}
		return e.Stats.Sum / e.Stats.Count
	}
	slices.SortStableFunc(list, func(a, b script.Entry) int {
		switch m.val.Kind {
		case Count, Sum, Integer:
			return order(a.Int, b.Int, m.val.Signed)
		case Min:
			return order(a.Stats.Min, b.Stats.Min, false)
		case Max:
			return order(a.Stats.Max, b.Stats.Max, false)
		case Avg, Stats:
			return order(avg(a), avg(b), true)
		case Hist, Lhist:
			if c := order(total(a), total(b), true); c != 0 {
				return c
			}
			return bytes.Compare(a.Key, b.Key)
		}
		return m.compareKeys(a.Key, b.Key)
	})
}

// compareKeys is the order by keys: numbers as unsigned ones.
func (m *mapInfo) compareKeys(a, b []byte) int {
	fields, layout := []*Type{m.key}, []script.Type{m.key.core()}
	if m.key.Kind == TupleKind {
		_, a = script.Unpack(a, layout, 0)
		_, b = script.Unpack(b, layout, 0)
		fields, layout = m.key.Fields, m.key.layout()
	}
	for i, f := range fields {
		x, s := script.Unpack(a, layout, i)
		y, t := script.Unpack(b, layout, i)
		switch f.Kind {
		case Integer:
			if x != y {
				if uint64(x) < uint64(y) {
					return -1
				}
				return 1
			}
		case String:
			if c := bytes.Compare(s, t); c != 0 {
				return c
			}
		}
	}
	return 0
}
