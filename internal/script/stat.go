package script

import "strconv"

// stat is an aggregate's state.
type stat struct {
	count, sum, min, max int64
	// mean and m2 are scaled by the histogram's shift (Welford's algorithm).
	mean, m2, variance int64
	shift              int
	buckets            []int64
}

func (s *stat) reset() {
	clear(s.buckets)
	*s = stat{buckets: s.buckets}
}

func (s *stat) add(h *Histogram, v int64) {
	s.count++
	s.shift = h.Shift
	scaled := v << s.shift
	if s.count == 1 {
		s.sum, s.min, s.max, s.mean = v, v, v, scaled
	} else {
		s.sum += v
		if h.Unsigned {
			s.min, s.max = int64(min(uint64(s.min), uint64(v))), int64(max(uint64(s.max), uint64(v)))
		} else {
			s.min, s.max = min(s.min, v), max(s.max, v)
		}
		delta := int64(int32(scaled - s.mean)) // as wide as stap's
		s.mean += delta / s.count
		s.m2 += delta * (scaled - s.mean)
		s.variance = s.m2 / (s.count - 1)
	}
	if len(s.buckets) > 0 {
		s.buckets[h.bucket(v)]++
	}
}

func (o *out) int(v int64) {
	var room [20]byte
	o.text(strconv.AppendInt(room[:0], v, 10))
}
