package decoder

import "testing"

// BenchmarkText decodes and writes kernel instructions, a line each.
func BenchmarkText(b *testing.B) {
	windows := kernelText(b)[:1_000_000]
	out := make([]byte, 0, 128)
	n := 0
	for b.Loop() {
		for _, w := range windows {
			if i, err := Decode(w); err == nil {
				out = i.AppendText(out[:0], 0x1000)
				n++
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/line")
}
