package script

// A series' buckets are a ring of intervals. Each has three numbers: the number of the interval, counted from the epoch and
// plus 1, so that 0 is none; the value; and the number of values, for the mean.
const (
	seriesAt = iota
	seriesValue
	seriesCount
	seriesSize
)

// Moment is an interval of a series.
type Moment struct {
	// Start is its beginning, in nanoseconds since 1970.
	Start uint64
	Value int64
}

// addAt adds a value of a moment, in nanoseconds since 1970, to a series.
func (s *stat) addAt(h *Histogram, v int64, ns uint64) {
	at := int64(ns/uint64(h.Interval)) + 1
	b := s.buckets[int(at%h.Stop)*seriesSize:][:seriesSize:seriesSize]
	if b[seriesAt] != at {
		b[seriesAt], b[seriesValue], b[seriesCount] = at, v, 1
		return
	}
	b[seriesCount]++
	switch h.Keeps {
	case Min:
		v = min(v, b[seriesValue])
	case Max:
		v = max(v, b[seriesValue])
	case Sum, Avg:
		v += b[seriesValue]
	}
	b[seriesValue] = v
}

// Moments returns the intervals of a series that have a value, in no order.
func (h *Histogram) Moments(buckets []int64) (list []Moment) {
	for ; len(buckets) >= seriesSize; buckets = buckets[seriesSize:] {
		if buckets[seriesAt] == 0 {
			continue
		}
		m := Moment{Start: uint64(buckets[seriesAt]-1) * uint64(h.Interval), Value: buckets[seriesValue]}
		if h.Keeps == Avg {
			m.Value /= buckets[seriesCount]
		}
		list = append(list, m)
	}
	return list
}
