package tracing_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/tracing"
)

// TestFilesUnderFire: many who define, delete, enable, read and wait, while
// guest code runs and instances come and go. Nothing hangs, and at the end
// nothing is left.
func TestFilesUnderFire(t *testing.T) {
	rounds := 30
	if testing.Short() {
		rounds = 10
	}
	g := newGuest(t, "6.1", 2, tracing.Options{BufferSize: 8192})
	var workers, waiters sync.WaitGroup
	again := func(fn func(i int)) {
		workers.Go(func() {
			for i := range rounds {
				fn(i)
			}
		})
	}
	pipe, err := g.OpenFile("trace_pipe", os.O_RDONLY)
	require.NoError(t, err)
	for range 2 {
		waiters.Go(func() {
			b := make([]byte, 100)
			for {
				if _, err := pipe.ReadAt(context.Background(), b, 0); err != nil {
					return
				}
			}
		})
	}
	for w := range 3 {
		again(func(i int) {
			name := fmt.Sprintf("e%d_%d", w, i%3)
			_ = g.Write("kprobe_events", "p:"+name+" leaf x=%di", true)
			_ = g.Write("events/kprobes/"+name+"/enable", "1", true)
			_ = g.Write("events/kprobes/"+name+"/trigger", "traceoff:1 if x == 3", true)
			_ = g.Write("events/kprobes/"+name+"/enable", "0", true)
			_ = g.Write("kprobe_events", "-:"+name, true)
		})
	}
	again(func(i int) { g.Do(func() { _, _ = g.l.Machine.Call("leaf", i%5) }) })
	again(func(int) { _ = g.Write("tracing_on", "1", true) })
	again(func(i int) {
		_ = g.Mkdir("instances/foo")
		_ = g.Write("instances/foo/events/enable", "1", true)
		_, _ = fs.ReadFile(g, "instances/foo/trace_pipe")
		_ = g.Rmdir("instances/foo")
	})
	again(func(int) {
		for _, f := range []string{"trace", "kprobe_events", "kprobe_profile", "kprobes/list", "set_event", "error_log"} {
			_, _ = fs.ReadFile(g, f)
		}
	})
	workers.Wait()
	require.NoError(t, pipe.Close())
	require.NoError(t, pipe.Close())
	waiters.Wait()
}
