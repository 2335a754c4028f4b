package bpftrace

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	"kprobelab/internal/script"
)

// barWidth is the width of a bar in characters; the bar of the fullest bucket has all of them.
const barWidth = 52

func bar(b *strings.Builder, label string, n, shown, most int64) {
	width := int(float32(n) / float32(most) * barWidth)
	fmt.Fprintf(b, "%-16s%8d |%-52s|\n", label, shown, strings.Repeat("@", width))
}

// powersLabel prints a bound of a histogram of powers of 2. Its unit is the largest of 1, K, M and so on that is not
// wider than the bucket.
func powersLabel(h *script.Histogram, v int64) string {
	decade := max(bits.Len64(uint64(v))-1-h.Bits, 0) / 10
	text := strconv.FormatUint(uint64(v)>>(10*decade), 10)
	if decade > 0 {
		text += "KMGTPE"[decade-1 : decade]
	}
	return text
}

// linearLabel prints a bound of a linear histogram.
func linearLabel(h *script.Histogram, n int64) string {
	switch {
	case h.Interval%1024 != 0 || n == 0:
	case n%(1<<20) == 0:
		return fmt.Sprintf("%dM", n>>20)
	case n%1024 == 0:
		return fmt.Sprintf("%dK", n>>10)
	}
	return strconv.FormatInt(n, 10)
}

// interval is the interval of a bucket's values: from is the least value, to the first value above the bucket.
// hasFrom and hasTo are false if the bucket is open at that end.
type interval struct {
	from, to       int64
	hasFrom, hasTo bool
	// single: a linear bucket of one value is written as the value, as 0.27 does.
	single    bool
	histogram *script.Histogram
}

func bucket(h *script.Histogram, i int) interval {
	v := interval{from: h.Value(i), to: h.Value(i + 1), hasFrom: i > 0, hasTo: true, histogram: h}
	if h.Kind == script.Linear && i == h.Buckets()-1 {
		v.from, v.hasTo = h.Stop, false
	}
	return v
}

// String returns the interval as it stands before a bar.
func (v interval) String() string {
	label := powersLabel
	switch {
	case v.histogram.Kind == script.Linear && !(v.single && v.hasFrom && v.hasTo && v.to-v.from == 1):
		label = linearLabel
	case v.hasFrom && v.to-v.from == 1:
		return fmt.Sprintf("[%d]", v.from)
	}
	from, to := "(...", "...)"
	if v.hasFrom {
		from = "[" + label(v.histogram, v.from)
	}
	if v.hasTo {
		to = label(v.histogram, v.to) + ")"
	}
	return from + ", " + to
}

// json returns the interval as members of a JSON object.
func (v interval) json() (text string) {
	if v.hasFrom {
		text = fmt.Sprintf(`"min": %d, `, v.from)
	}
	if v.hasTo {
		text += fmt.Sprintf(`"max": %d, `, v.to-1)
	}
	return text
}

// histogram draws buckets.
func (s *Script) histogram(h *script.Histogram, counts []int64, div int64) string {
	low, high, most := script.Filled(counts)
	var b strings.Builder
	var objects []string
	for i := max(low, 0); i <= high; i++ {
		v, n := bucket(h, i), counts[i]/div
		v.single = s.newest
		if s.json {
			objects = append(objects, fmt.Sprintf(`{%s"count": %d}`, v.json(), n))
			continue
		}
		bar(&b, v.String(), counts[i], n, most)
	}
	if s.json {
		return "[" + strings.Join(objects, ", ") + "]"
	}
	return b.String()
}
