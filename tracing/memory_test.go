package tracing_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/errno"
	"kprobelab/internal/bounded"
	"kprobelab/tracing"
)

// TestMemoryIsBounded: everything that takes memory is ENOMEM in the end, and freed memory can be
// taken again.
func TestMemoryIsBounded(t *testing.T) {
	const limit = 16 << 20
	g := newGuest(t, "6.1", 2, tracing.Options{Memory: limit})
	until := func(step func(i int) error) (n int) {
		for ; n < limit/1024; n++ {
			if err := step(n); err != nil {
				require.ErrorIs(t, err, errno.ENOMEM)
				return n
			}
		}
		t.Fatal("it has no end")
		return n
	}
	instances := func() int { return until(func(i int) error { return g.Mkdir(fmt.Sprintf("instances/i%d", i)) }) }
	remove := func(n int) {
		for i := range n {
			require.NoError(t, g.Rmdir(fmt.Sprintf("instances/i%d", i)))
		}
	}
	n := instances()
	require.Positive(t, n)
	remove(n)

	size := func(kb int) error { return g.Write("buffer_size_kb", fmt.Sprint(kb), true) }
	most := until(func(i int) error { return size(1000 * (i + 1)) })
	require.ErrorIs(t, size(1<<20), errno.ENOMEM)
	require.Equal(t, 0, instances())
	require.ErrorIs(t, g.Write("snapshot", "1", true), errno.ENOMEM)
	require.ErrorIs(t, g.Write("per_cpu/cpu1/buffer_size_kb", "10000", true), errno.ENOMEM)
	require.NoError(t, size(2000))
	for range 20 {
		require.NoError(t, g.Write("snapshot", "1", true))
		require.NoError(t, size(1000*most/3))
		require.NoError(t, size(2000))
		require.NoError(t, g.Write("snapshot", "0", true))
	}

	require.NoError(t, g.Mkdir("instances/x"))
	define := func(i int) error {
		return g.Write("kprobe_events", fmt.Sprintf("p:e%d gcd", i), true)
	}
	events := until(define)
	require.NoError(t, g.Write("kprobe_events", "", false))
	require.Equal(t, events, until(define))
	require.NoError(t, g.Write("kprobe_events", "", false))
	require.NoError(t, g.Rmdir("instances/x"))

	var open []tracing.Handle
	until(func(int) error {
		h, err := g.OpenFile("README", os.O_RDONLY)
		require.NoError(t, err)
		open = append(open, h)
		_, err = h.ReadAt(context.Background(), make([]byte, 10), 0)
		return err
	})
	for _, h := range open {
		require.NoError(t, h.Close())
	}
	require.NoError(t, size(1410))
	require.Equal(t, n, instances())
	remove(n)
}

// TestMemoryUnlessTold: without an option it is the bound, whoever asks for it.
func TestMemoryUnlessTold(t *testing.T) {
	g := newGuest(t, "6.1", 2, tracing.Options{})
	kb := func(bytes int) string { return fmt.Sprint(bytes >> 10) }
	require.NoError(t, g.Write("buffer_size_kb", kb(64<<20), true))
	require.ErrorIs(t, g.Write("buffer_size_kb", kb(bounded.TracingMemory/2), true), errno.ENOMEM, "two processors have that much each")
	require.ErrorIs(t, g.Write("per_cpu/cpu1/buffer_size_kb", kb(bounded.TracingMemory), true), errno.ENOMEM)
	require.ErrorIs(t, g.Write("buffer_size_kb", "9223372036854775", true), errno.ENOMEM)
	require.NoError(t, g.Write("buffer_size_kb", "4", true))
}

// TestPipeDoesNotWait: a reader with O_NONBLOCK gets EAGAIN where another waits.
func TestPipeDoesNotWait(t *testing.T) {
	g := newGuest(t, "6.1", 1, tracing.Options{})
	ctx := tracing.NonBlocking(context.Background())
	for _, name := range []string{"trace_pipe", "per_cpu/cpu0/trace_pipe", "per_cpu/cpu0/trace_pipe_raw"} {
		h, err := g.OpenFile(name, os.O_RDONLY)
		require.NoError(t, err)
		b := make([]byte, 4096)
		_, err = h.ReadAt(ctx, b, 0)
		require.ErrorIs(t, err, errno.EAGAIN, name)
		g.write("trace_marker", "hello")
		n, err := h.ReadAt(ctx, b, 0)
		require.NoError(t, err)
		require.Positive(t, n)
		require.NoError(t, h.Close())
	}
}
