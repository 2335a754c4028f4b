package selfcheck

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/integration/written"
	"kprobelab/shard"
)

// Rule: the shards' results together are those of one run: counts, kinds, and the examples with their bytes.
func TestShardsOfAComparison(t *testing.T) {
	img := written.Image(t, map[string]string{"can_probe": "31 c0 c3", "find_bug": "b8 01 00 00 00 c3", "helper": "90 66 90 0f 0b 90 c3"})
	points := Draw(img, 4*pieceSize+5, 1)
	form := Form{Name: "written", Heading: "head"}
	one, err := Check(img, points, 0, nil)
	require.NoError(t, err)
	require.Positive(t, one.Differ())
	for n := 1; n <= 7; n++ {
		var names []string
		for i := 1; i <= n; i++ {
			var b bytes.Buffer
			part := shard.Part{I: i, N: n}
			w, err := shard.Begin(&b, "v1", []string{"selfcheck"}, part, Items(points), form)
			require.NoError(t, err)
			done := int64(0)
			require.NoError(t, CheckShard(w, part, img, points, 0, func(at, _ int64) { done = at }))
			require.LessOrEqual(t, done, int64(len(points)))
			names = append(names, filepath.Join(t.TempDir(), fmt.Sprint(i)))
			require.NoError(t, os.WriteFile(names[i-1], b.Bytes(), 0o600))
		}
		r, err := shard.Open("v1", names)
		require.NoError(t, err)
		all, err := Merge(r)
		r.Close()
		require.NoError(t, err)
		for _, json := range []bool{false, true} {
			form.JSON = json
			var want, got bytes.Buffer
			code, err := form.Show(&want, one)
			require.Equal(t, 1, code)
			code, again := form.Show(&got, all)
			require.Equal(t, 1, code)
			require.Equal(t, err, again)
			require.Equal(t, want.String(), got.String())
		}
	}
}
