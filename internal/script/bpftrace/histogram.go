package bpftrace

import (
	"fmt"
	"slices"
	"strings"

	"kprobelab/internal/script"
)

// barWidth is how wide the longest bar is.
const barWidth = 52

func bar(b *strings.Builder, label string, n, shown, most int64) {
	width := int(float32(n) / float32(most) * barWidth)
	fmt.Fprintf(b, "%-16s%8d |%-52s|\n", label, shown, strings.Repeat("@", width))
}

// ends are the first and the last bucket with something in it, and the largest count.
func ends(counts []int64) (low, high int, most int64) {
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

// start is where a bucket of powers begins, and power which power of 2 its width is.
func start(i, bits int) (from uint64, power int) {
	n := 1 << bits
	power = i>>bits - 1
	return uint64(n+i&(n-1)) << max(power, 0), power
}

// label is where a bucket begins, in words.
func label(i, bits int) string {
	n, power := 1<<bits, i>>bits-1
	decade := power / 10
	text := fmt.Sprint((1 << (power - 10*decade)) * (n + i&(n-1)))
	if decade > 0 {
		text += "KMGTPE"[decade-1 : decade]
	}
	return text
}

// powers is a histogram of powers of 2.
func (s *Script) powers(h *script.Histogram, counts []int64, div int64) string {
	low, high, most := ends(counts)
	if low < 0 {
		if s.json {
			return "[]"
		}
		return ""
	}
	var b strings.Builder
	single := 2 << h.Bits // the buckets up to it have one value each
	if s.json {
		b.WriteByte('[')
	}
	for i := low; i <= high; i++ {
		if s.json {
			if i > low {
				b.WriteString(", ")
			}
			switch {
			case i == 0:
				b.WriteString(`{"max": -1, `)
			case i <= single:
				fmt.Fprintf(&b, `{"min": %d, "max": %d, `, i-1, i-1)
			default:
				from, _ := start(i-1, h.Bits)
				to, _ := start(i, h.Bits)
				fmt.Fprintf(&b, `{"min": %d, "max": %d, `, int64(from), int64(to-1))
			}
			fmt.Fprintf(&b, `"count": %d}`, counts[i]/div)
			continue
		}
		var name string
		switch {
		case i == 0:
			name = "(..., 0)"
		case i <= single:
			name = fmt.Sprintf("[%d]", i-1)
		default:
			name = "[" + label(i-1, h.Bits) + ", " + label(i, h.Bits) + ")"
		}
		bar(&b, name, counts[i], counts[i]/div, most)
	}
	if s.json {
		b.WriteByte(']')
	}
	return b.String()
}

// linearLabel is a bound of a linear histogram.
func linearLabel(n, step int64) string {
	switch {
	case step%1024 != 0 || n == 0:
	case n%(1<<20) == 0:
		return fmt.Sprintf("%dM", n>>20)
	case n%1024 == 0:
		return fmt.Sprintf("%dK", n>>10)
	}
	return fmt.Sprint(n)
}

// linear is a histogram of steps of the same width.
func (s *Script) linear(h *script.Histogram, all []int64) string {
	if len(all) == 0 {
		return ""
	}
	// The core has a bucket of its own for what is one step above; here it is too high.
	steps := int((h.Stop - h.Start) / h.Interval)
	counts := slices.Clone(all[:steps+2])
	for _, n := range all[steps+2:] {
		counts[steps+1] += n
	}
	low, high, most := ends(counts)
	if low < 0 {
		if s.json {
			return "[]"
		}
		return ""
	}
	var b strings.Builder
	if s.json {
		b.WriteByte('[')
	}
	for i := low; i <= high; i++ {
		from := h.Start + int64(i-1)*h.Interval
		to := from + h.Interval
		if s.json {
			if i > low {
				b.WriteString(", ")
			}
			switch i {
			case 0:
				fmt.Fprintf(&b, `{"max": %d, `, h.Start-1)
			case steps + 1:
				fmt.Fprintf(&b, `{"min": %d, `, h.Stop)
			default:
				fmt.Fprintf(&b, `{"min": %d, "max": %d, `, from, to-1)
			}
			fmt.Fprintf(&b, `"count": %d}`, counts[i])
			continue
		}
		var name string
		switch i {
		case 0:
			name = "(..., " + linearLabel(h.Start, h.Interval) + ")"
		case steps + 1:
			name = "[" + linearLabel(h.Stop, h.Interval) + ", ...)"
		default:
			name = "[" + linearLabel(from, h.Interval) + ", " + linearLabel(to, h.Interval) + ")"
		}
		bar(&b, name, counts[i], counts[i], most)
	}
	if s.json {
		b.WriteByte(']')
	}
	return b.String()
}
