package script

import "math/bits"

// Histogram says which buckets an aggregate keeps.
type Histogram struct {
	Kind HistogramKind
	// Start, Stop and Interval are for Linear. StopIsAbove: as in bpftrace, Stop has no bucket of its own.
	Start, Stop, Interval int64
	StopIsAbove           bool
	// Shift is the number of bits by which mean and variance are scaled.
	Shift int
	// Bits is for Powers.
	Bits int
	// Unsigned means that the values are unsigned.
	Unsigned bool
	// Keeps is for Series: the Sum, Min, Max or Avg of an interval's values, or with Count the last of them.
	Keeps Extractor
}

// HistogramKind is the kind of a histogram.
type HistogramKind uint8

const (
	NoHistogram HistogramKind = iota
	Linear
	Logarithmic
	// Powers has one bucket for negative values, and 1<<Bits buckets for each power of 2. The first
	// buckets have one value each.
	Powers
	// Series has the last Stop intervals of time, each of Interval nanoseconds: see Moments.
	Series
)

// MaxBuckets is the number of buckets that a linear histogram may have between Start and Stop.
// The buckets for lower and for higher values are not counted.
const MaxBuckets = 128

const (
	logBuckets = 128
	logZero    = 64
)

// Buckets returns the number of buckets. Those for values below and above a linear histogram are counted.
func (h *Histogram) Buckets() int {
	switch h.Kind {
	case Linear:
		n := int((h.Stop-h.Start)/h.Interval) + 3
		if h.StopIsAbove {
			n--
		}
		return n
	case Logarithmic:
		return logBuckets
	case Powers:
		return (65-h.Bits)<<h.Bits + 1
	case Series:
		return int(h.Stop) * seriesSize
	}
	return 0
}

// Value returns the number by which bucket n is printed: its value that is nearest to 0. It has no
// meaning for the bucket of values below a linear histogram.
func (h *Histogram) Value(n int) int64 {
	switch {
	case h.Kind == Linear:
		return h.Start + int64(n-1)*h.Interval
	case h.Kind == Powers && n <= 1<<h.Bits:
		return int64(n - 1)
	case h.Kind == Powers:
		n--
		return int64(1<<h.Bits+n&(1<<h.Bits-1)) << (n>>h.Bits - 1)
	case n == logZero:
		return 0
	case n < logZero:
		return -1 << 63 >> n
	}
	return 1 << (n - logZero - 1)
}

// bucket returns the index of the bucket that counts v.
func (h *Histogram) bucket(v int64) int {
	last := h.Buckets() - 1
	if h.Kind == Linear {
		if v < h.Start {
			return 0
		}
		// The difference may not fit into 63 bits, but it is not negative.
		return int(min(uint64(v-h.Start)/uint64(h.Interval)+1, uint64(last)))
	}
	if h.Kind == Powers {
		switch {
		case v < 0:
			return 0
		case v < 1<<h.Bits:
			return int(v) + 1
		}
		power := bits.Len64(uint64(v)) - 1 - h.Bits
		return (power+1)<<h.Bits + int(uint64(v)>>power&(1<<h.Bits-1)) + 1
	}
	switch {
	case v == 0:
		return logZero
	case v < 0:
		return max(logZero-bits.Len64(uint64(-v)), 0)
	}
	return min(logZero+bits.Len64(uint64(v)), last)
}

// Filled returns the indexes of the first and the last bucket that are not empty (-1 if all are empty), and the
// largest count.
func Filled(counts []int64) (low, high int, most int64) {
	low, high = -1, -1
	for i, n := range counts {
		if n > 0 {
			if low < 0 {
				low = i
			}
			high = i
		}
		most = max(most, n)
	}
	return low, high, most
}

// histogramWidth is the number of characters that a bar may have.
const histogramWidth = 50

// elided is the number of empty buckets that are printed next to one with a count. Empty buckets
// farther away are left out.
const elided = 2

func width(v int64) int {
	n := 1
	if v < 0 {
		n++
	}
	for v /= 10; v != 0; v /= 10 {
		n++
	}
	return n
}

// shown returns the indexes of the first and the last bucket to print, and the largest count.
func (h *Histogram) shown(counts []int64) (low, high int, most int64) {
	low, high, most = Filled(counts)
	high = max(high, 0)
	last := len(counts) - 1
	for range elided {
		if low > 0 && (h.Kind == Linear || low != logZero) {
			low--
		}
		if high < last {
			high++
		}
	}
	low = max(low, 0)
	if h.Kind == Linear {
		if low == 0 && counts[0] == 0 {
			low++
		}
		if high == last && counts[last] == 0 {
			high--
		}
	}
	return low, high, most
}

// print writes a histogram.
func (h *Histogram) print(o *out, counts []int64) {
	low, high, most := h.shown(counts)
	last := len(counts) - 1
	scale := int64(1)
	if most > histogramWidth {
		scale = (most + histogramWidth - 1) / histogramWidth
	}
	countRoom, room := width(most), 0
	if h.Kind == Linear {
		under, over := 0, 0
		if low == 0 {
			under = 1
		}
		if high == last {
			over = 1
		}
		room = max(width(h.Start)+under, width(h.Start+h.Interval*int64(high))+over)
	} else {
		room = max(width(h.Value(high)), width(h.Value(low)))
	}
	room = max(room, len("value"))
	o.repeat(' ', room-len("value"))
	o.string("value |")
	o.repeat('-', histogramWidth)
	o.string(" count\n")
	skipped := false
	for i := low; i <= high; i++ {
		empty := true
		for _, n := range counts[max(low, i-elided) : min(high, i+elided)+1] {
			empty = empty && n == 0
		}
		if empty {
			skipped = true
			continue
		}
		if skipped {
			o.repeat(' ', room)
			o.string(" ~\n")
			skipped = false
		}
		prefix, v := "", h.Value(i)
		if h.Kind == Linear && i == 0 {
			prefix, v = "<", h.Start
		} else if h.Kind == Linear && i == last {
			prefix, v = ">", h.Start+int64(i-2)*h.Interval
		}
		o.repeat(' ', room-width(v)-len(prefix))
		o.string(prefix)
		o.int(v)
		o.string(" |")
		bar := int(counts[i] / scale)
		o.repeat('@', bar)
		o.repeat(' ', histogramWidth-bar+1+countRoom-width(counts[i]))
		o.int(counts[i])
		o.byte('\n')
	}
	o.byte('\n')
}
