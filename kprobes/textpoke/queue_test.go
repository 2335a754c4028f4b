package textpoke

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A batch takes a step for all addresses before the next.
func TestBatch(t *testing.T) {
	m := &text{}
	p := New(m)
	require.NoError(t, p.Queue(jump(0)))
	require.NoError(t, p.Queue(jump(8)))
	require.Empty(t, m.log)
	require.NoError(t, p.Finish())
	require.Equal(t, "0:cc 8:cc sync0 sync1 1:01020304 9:01020304 sync0 sync1 0:e9 8:e9 sync0 sync1", strings.Join(m.log, " "))
	require.NoError(t, p.Finish(), "an empty queue is done")
	require.NoError(t, p.Queue(jump(8)))
	require.NoError(t, p.Queue(jump(0)))
	require.Len(t, p.queue, 1, "what is out of order is preceded by a flush")
}

// A single change among queued ones.
func TestSingleWhileOthersWait(t *testing.T) {
	for name, c := range map[string]struct {
		array Array
		want  string
	}{
		"array_of_its_own": {Array{}, "0:cc"},
		"flushed_first":    {Array{Shared: true}, "8:cc"},
		"appended":         {Array{Shared: true, Appended: true}, "8:cc 0:cc"},
	} {
		t.Run(name, func(t *testing.T) {
			m := &text{}
			p := New(m)
			require.NoError(t, p.Queue(jump(8)))
			r, err := p.StartSingle(Batch, jump(0), c.array)
			require.NoError(t, err)
			require.NoError(t, r.All())
			require.Equal(t, c.want, strings.Split(strings.Join(m.log, " "), " sync")[0])
			require.NoError(t, p.Finish())
			require.Equal(t, m.b[0], m.b[8])
		})
	}
}
