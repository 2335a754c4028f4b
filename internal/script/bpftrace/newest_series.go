package bpftrace

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
	"time"

	"kprobelab/internal/script"
)

// keeps maps the words for the fourth argument of tseries() to the value of an interval.
var keeps = map[string]script.Extractor{"avg": script.Avg, "max": script.Max, "min": script.Min, "sum": script.Sum}

// mostIntervals is the number of intervals from which on the tool refuses a series.
const mostIntervals = 1000000

// series checks tseries(n, interval_ns, num_intervals, aggregation).
func (c *checker) series(n *node) *Type {
	t := &Type{Kind: Tseries, Size: 8, Signed: true}
	for _, k := range n.kids {
		c.expr(k)
	}
	switch c.config["unstable_tseries"] {
	case "error":
		c.error(n.at, "tseries feature is not enabled by default. To enable this unstable feature, set the config flag to enable. unstable_tseries=enable")
		return t
	case "", "warn":
		c.warnUnstable("tseries")
	}
	if !n.forMap {
		c.error(n.at, "tseries() must be assigned directly to a map")
		return t
	}
	if !c.count(n, 3, 4) || !c.arg(n, 0, Integer, false) {
		return t
	}
	for i, name := range []string{"interval_ns", "num_intervals"} {
		k := n.kids[i+1]
		v, ok := c.number(k)
		switch {
		case k.typ.kind() != Integer || !ok || v < 0:
			c.error(n.at, "tseries: invalid %s value (must be non-negative literal)", name)
			return t
		case v == 0:
			c.error(n.at, "tseries() %s must be >= 1 (0 provided)", name)
			return t
		case i == 1 && v >= mostIntervals:
			c.error(n.at, "tseries() num_intervals must be < %d (%d provided)", mostIntervals, v)
			return t
		}
	}
	if len(n.kids) == 4 && c.arg(n, 3, String, true) {
		if _, ok := keeps[n.kids[3].text]; !ok {
			c.error(n.at, "tseries() expects one of the following aggregation functions: avg, max, min, sum (\"%s\" provided)", n.kids[3].text)
		}
	}
	return t
}

// warnUnstable warns once of a feature that the script's config has not enabled.
func (c *checker) warnUnstable(feature string) {
	text := fmt.Sprintf("Script is using an unstable feature: %s. To prevent this warning you must explicitly enable it in the config e.g. unstable_%s=enable", feature, feature)
	if c.final && !slices.ContainsFunc(c.problems.warnings, func(p *Problem) bool { return p.Message == text }) {
		c.problems.warnings = append(c.problems.warnings, &Problem{Warning: true, Message: text, free: true})
	}
}

// seriesOf returns the intervals of a call of tseries() that has been checked.
func (c *checker) seriesOf(n *node) script.Histogram {
	h := script.Histogram{Kind: script.Series}
	h.Interval, _ = c.number(n.kids[1])
	h.Stop, _ = c.number(n.kids[2])
	if len(n.kids) == 4 {
		h.Keeps = keeps[n.kids[3].text]
	}
	return h
}

// latest is the beginning of the last interval in which an element of a map has a value.
func (m *mapInfo) latest(list []script.Entry) (ns uint64) {
	if m.val.Kind != Tseries {
		return 0
	}
	for _, e := range list {
		for _, one := range m.array.Histogram.Moments(e.Stats.Buckets) {
			ns = max(ns, one.Start)
		}
	}
	return ns
}

// series draws the intervals of an element up to latest, at most as many as the series has. Time goes down, values go to the
// right.
func (s *Script) series(h *script.Histogram, buckets []int64, latest uint64) string {
	every := uint64(h.Interval)
	list := slices.DeleteFunc(h.Moments(buckets), func(m script.Moment) bool { return (latest-m.Start)/every >= uint64(h.Stop) })
	slices.SortFunc(list, func(a, b script.Moment) int { return cmp.Compare(a.Start, b.Start) })
	switch {
	case s.json:
		return seriesJSON(list)
	case len(list) == 0:
		return "<no data>\n"
	}
	clock := seriesClocks[0]
	if list[0].Start != latest {
		clock = clockOf(every)
	}
	scale := newScale(list)
	var b strings.Builder
	blank := strings.Repeat(" ", len(clock.layout)+1)
	b.WriteString(blank + scale.bounds() + "\n" + clock.head + strings.Repeat(" ", len(blank)-len(clock.head)) + frame('|') + "\n")
	for at := list[0].Start; at <= latest; at += every {
		b.WriteString(wallClock(at, clock.layout) + " ")
		if len(list) == 0 || list[0].Start != at {
			b.WriteString(scale.row(nil) + " -\n")
			continue
		}
		fmt.Fprintf(&b, "%s %d\n", scale.row(&list[0].Value), list[0].Value)
		list = list[1:]
	}
	b.WriteString(blank + frame('v') + "\n" + blank + scale.bounds() + "\n")
	return b.String()
}

// seriesClock is a form in which moments are printed, for intervals of least nanoseconds and more.
type seriesClock struct {
	least        uint64
	head, layout string
}

// seriesClocks begin with the finest. It is that of a single interval, too. The tool counts the bytes of the head, not its letters.
var seriesClocks = []seriesClock{
	{1, "hh:mm:ss.ns", "15:04:05.000000000"},
	{1e3, "hh:mm:ss.\u03bcs", "15:04:05.000000"},
	{1e6, "hh:mm:ss.ms", "15:04:05.000"},
	{1e9, "hh:mm:ss", "15:04:05"},
}

// clockOf is the coarsest form that tells the intervals apart.
func clockOf(every uint64) seriesClock {
	c := seriesClocks[0]
	for _, next := range seriesClocks {
		if every >= next.least {
			c = next
		}
	}
	return c
}

func wallClock(ns uint64, layout string) string {
	return time.Unix(int64(ns/1e9), int64(ns%1e9)).UTC().Format(layout)
}

// seriesColumns is the number of columns between the two ends of the drawing, which stand in columns of their own.
const seriesColumns = 51

// frame is the drawing without values, between two ends.
func frame(end byte) string {
	return string(end) + strings.Repeat("_", seriesColumns) + string(end)
}

// seriesScale is the range of the values drawn, from the left end to the right one.
type seriesScale struct{ low, high int64 }

// newScale takes the range of the values. One value alone stands in the middle.
func newScale(list []script.Moment) seriesScale {
	s := seriesScale{list[0].Value, list[0].Value}
	for _, m := range list {
		s.low, s.high = min(s.low, m.Value), max(s.high, m.Value)
	}
	if s.low == s.high {
		if s.low > math.MinInt64 {
			s.low--
		}
		if s.high < math.MaxInt64 {
			s.high++
		}
	}
	return s
}

// column is the part of n columns at which a value is.
func (s seriesScale) column(v int64, n uint64) int {
	high, low := bits.Mul64(uint64(v)-uint64(s.low), n)
	at, _ := bits.Div64(high, low, uint64(s.high)-uint64(s.low))
	return int(at)
}

func (s seriesScale) bounds() string {
	low, high := fmt.Sprint(s.low), fmt.Sprint(s.high)
	return low + strings.Repeat(" ", seriesColumns+2-len(low)-len(high)) + high
}

// row draws an interval: where its value is, if it has one, and where 0 is.
func (s seriesScale) row(v *int64) string {
	b := []byte("|" + strings.Repeat(" ", seriesColumns) + "|")
	if s.low < 0 && s.high > 0 {
		if zero := s.column(0, seriesColumns+2); zero > 0 && zero <= seriesColumns {
			b[zero] = '.'
		}
	}
	if v != nil {
		b[s.column(*v, seriesColumns+1)] = '*'
	}
	return string(b)
}

// seriesJSON lists the intervals that have a value.
func seriesJSON(list []script.Moment) string {
	var items []string
	for _, m := range list {
		items = append(items, fmt.Sprintf(`{"interval_start":"%s","value":%d}`, wallClock(m.Start, "2006-01-02 15:04:05.000000000"), m.Value))
	}
	return "[" + strings.Join(items, ",") + "]"
}
