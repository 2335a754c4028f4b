package bisect_test

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"kprobelab/kernels/bisect"
)

// levels are three series: 5.10.1 to 5.10.9, 6.1.1 to 6.1.9, 6.12.1 to 6.12.9.
func levels() (list []string) {
	for _, series := range []string{"5.10", "6.1", "6.12"} {
		for n := 1; n < 10; n++ {
			list = append(list, fmt.Sprintf("%s.%d-cloud-amd64", series, n))
		}
	}
	return list
}

var errNone = errors.New("no such package")

// asker answers "no" before a kernel and "yes" from it on; it fails for the kernels that cannot be had.
func asker(list []string, change string, absent ...string) func(context.Context, string) (string, error) {
	return func(_ context.Context, k string) (string, error) {
		switch {
		case slices.Contains(absent, k):
			return "", errNone
		case slices.Index(list, k) < slices.Index(list, change):
			return "no", nil
		}
		return "yes", nil
	}
}

// TestTheChangeIsFound: wherever it is, with a logarithm of questions.
func TestTheChangeIsFound(t *testing.T) {
	list := levels()
	for i := 1; i < len(list); i++ {
		r, err := bisect.Find(t.Context(), list, bisect.Series, asker(list, list[i]), nil)
		require.NoError(t, err)
		require.Equal(t, [4]string{list[i-1], list[i], "no", "yes"}, [4]string{r.Before, r.After, r.From, r.To})
		require.Equal(t, i != 9 && i != 18, r.Stable, list[i])
		require.LessOrEqual(t, len(r.Asked), 2+2+4)
		require.Equal(t, len(list), r.Of)
	}
}

// TestKernelsThatCannotBeHad: the change is found around them, and they are named if it may be theirs.
func TestKernelsThatCannotBeHad(t *testing.T) {
	list := levels()
	r, err := bisect.Find(t.Context(), list, bisect.Series, asker(list, list[12], list[0], list[11], list[12], list[26]), nil)
	require.NoError(t, err)
	require.Equal(t, [2]string{list[10], list[13]}, [2]string{r.Before, r.After})
	require.Equal(t, []bisect.Unasked{{Kernel: list[11], Reason: errNone.Error()}, {Kernel: list[12], Reason: errNone.Error()}}, r.Unasked)
	_, err = bisect.Find(t.Context(), list[:2], bisect.Series, asker(list, list[1], list[1]), nil)
	require.ErrorIs(t, err, bisect.ErrFew)
	require.ErrorIs(t, err, errNone)
	_, err = bisect.Find(t.Context(), nil, bisect.Series, asker(list, list[1]), nil)
	require.ErrorIs(t, err, bisect.ErrFew)
	_, err = bisect.Find(t.Context(), list[:5], bisect.Series, asker(list, list[6]), nil)
	require.ErrorIs(t, err, bisect.ErrSame)
	require.ErrorContains(t, err, ": no")
	ctx, stop := context.WithCancel(t.Context())
	asked := 0
	_, err = bisect.Find(ctx, list, bisect.Series, func(ctx context.Context, k string) (string, error) {
		if asked++; asked == 3 {
			stop()
			return "", ctx.Err()
		}
		return asker(list, list[5])(ctx, k)
	}, nil)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 3, asked)
}

// TestAnyAnswers: whatever kernels answer, the result is a pair of neighbours, as far as they can be had, with different answers, and
// no kernel is asked twice.
func TestAnyAnswers(t *testing.T) {
	list := levels()
	rapid.Check(t, func(t *rapid.T) {
		answers := rapid.SliceOfN(rapid.IntRange(0, 3), len(list), len(list)).Draw(t, "answers")
		asked := map[string]int{}
		r, err := bisect.Find(context.Background(), list, bisect.Series, func(_ context.Context, k string) (string, error) {
			asked[k]++
			if a := answers[slices.Index(list, k)]; a > 0 {
				return fmt.Sprint(a), nil
			}
			return "", errNone
		}, nil)
		for k, n := range asked {
			require.Equal(t, 1, n, k)
		}
		if err != nil {
			require.True(t, errors.Is(err, bisect.ErrSame) || errors.Is(err, bisect.ErrFew))
			return
		}
		i, j := slices.Index(list, r.Before), slices.Index(list, r.After)
		require.Less(t, i, j)
		require.NotEqual(t, answers[i], answers[j])
		require.Len(t, r.Unasked, j-i-1)
		if !slices.Contains(answers, 0) {
			require.LessOrEqual(t, len(r.Asked), 4+bits.Len(9)+1)
		}
	})
}

func TestSeriesOfReleases(t *testing.T) {
	for release, want := range map[string]string{"6.1.0-56-cloud-amd64": "6.1", "7.3.4+deb13-amd64": "7.3", "6.12": "6.12", "x": "x", "": ""} {
		require.Equal(t, want, bisect.Series(release))
	}
}
