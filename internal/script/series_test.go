package script

import (
	"cmp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A series keeps what a map from intervals to all of their values says, as far as its ring goes back.
func TestSeriesKeepTheLastIntervals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := Histogram{Kind: Series, Interval: rapid.Int64Range(1, 50).Draw(t, "interval"), Stop: rapid.Int64Range(1, 9).Draw(t, "intervals"),
			Keeps: rapid.SampledFrom([]Extractor{Count, Sum, Min, Max, Avg}).Draw(t, "keeps")}
		s := stat{buckets: make([]int64, h.Buckets())}
		all, now := map[uint64][]int64{}, uint64(0)
		for range rapid.IntRange(1, 60).Draw(t, "values") {
			now += rapid.Uint64Range(0, 120).Draw(t, "passes")
			v := rapid.Int64Range(-1000, 1000).Draw(t, "value")
			s.addAt(&h, v, now)
			start := now - now%uint64(h.Interval)
			all[start] = append(all[start], v)
		}
		latest := now - now%uint64(h.Interval)
		var want []Moment
		for start, values := range all {
			if (latest-start)/uint64(h.Interval) < uint64(h.Stop) {
				want = append(want, Moment{start, kept(h.Keeps, values)})
			}
		}
		got := slices.DeleteFunc(h.Moments(s.buckets), func(m Moment) bool { return (latest-m.Start)/uint64(h.Interval) >= uint64(h.Stop) })
		for _, list := range [][]Moment{want, got} {
			slices.SortFunc(list, func(a, b Moment) int { return cmp.Compare(a.Start, b.Start) })
		}
		require.Equal(t, want, got)
	})
}

func kept(k Extractor, values []int64) (v int64) {
	switch k {
	case Min:
		return slices.Min(values)
	case Max:
		return slices.Max(values)
	case Count:
		return values[len(values)-1]
	}
	for _, one := range values {
		v += one
	}
	if k == Avg {
		v /= int64(len(values))
	}
	return v
}
