package bpftrace

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/script"
)

// Rule: a bar's label is its interval: of one value by itself while all are so narrow, in units of 1024 where the
// interval is as wide, and without an end where it has none (bpftrace(8), hist and lhist).
func TestIntervalsOfBuckets(t *testing.T) {
	powers, four := script.Histogram{Kind: script.Powers}, script.Histogram{Kind: script.Powers, Bits: 2}
	linear := func(start, stop, interval int64) script.Histogram {
		return script.Histogram{Kind: script.Linear, StopIsAbove: true, Start: start, Stop: stop, Interval: interval}
	}
	for _, c := range []struct {
		h          script.Histogram
		n          int
		text, json string
	}{
		{powers, 0, "(..., 0)", `"max": -1, `},
		{powers, 1, "[0]", `"min": 0, "max": 0, `},
		{powers, 2, "[1]", `"min": 1, "max": 1, `},
		{powers, 3, "[2, 4)", `"min": 2, "max": 3, `},
		{powers, 11, "[512, 1K)", `"min": 512, "max": 1023, `},
		{powers, 12, "[1K, 2K)", `"min": 1024, "max": 2047, `},
		{powers, 64, "[4E, 8E)", `"min": 4611686018427387904, "max": 9223372036854775807, `},
		{four, 8, "[7]", `"min": 7, "max": 7, `},
		{four, 9, "[8, 10)", `"min": 8, "max": 9, `},
		{four, 44, "[3584, 4K)", `"min": 3584, "max": 4095, `},
		{four, 45, "[4K, 5K)", `"min": 4096, "max": 5119, `},
		{linear(0, 100, 10), 0, "(..., 0)", `"max": -1, `},
		{linear(0, 100, 10), 1, "[0, 10)", `"min": 0, "max": 9, `},
		{linear(0, 100, 10), 11, "[100, ...)", `"min": 100, `},
		{linear(0, 10, 3), 4, "[10, ...)", `"min": 10, `},
		{linear(5, 8, 1), 1, "[5, 6)", `"min": 5, "max": 5, `},
		{linear(0, 1<<21, 1024), 2, "[1K, 2K)", `"min": 1024, "max": 2047, `},
		{linear(0, 1<<21, 1024), 1024, "[1023K, 1M)", `"min": 1047552, "max": 1048575, `},
		{linear(0, 5000, 1000), 2, "[1000, 2000)", `"min": 1000, "max": 1999, `},
	} {
		v := bucket(&c.h, c.n)
		require.Equal(t, c.text, v.String())
		require.Equal(t, c.json, v.json())
	}
}
