package tracing_test

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/machine"
	"kprobelab/tracing"
)

// TestManyHits: an event with four arguments, hit on two CPUs. Every hit is in
// the buffer, or was overwritten and counted; memory does not grow with the
// hits. KPROBELAB_SOAK=1 makes it a million.
func TestManyHits(t *testing.T) {
	hits := uint64(20_000)
	switch {
	case testing.Short():
		hits = 4_000
	case os.Getenv("KPROBELAB_SOAK") != "":
		hits = 1_000_000
	}
	const size = 64 << 10
	g := newGuest(t, "6.1", 2, tracing.Options{BufferSize: size})
	g.define("p:e work_item a=%di b=%si:s32 c=$comm d=$stack0")
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for cpu, name := range []string{"one", "two"} {
		task, err := g.l.Machine.Go(name, machine.Invoke("busy_worker", hits/2))
		require.NoError(t, err)
		require.NoError(t, task.Pin(cpu))
	}
	require.NoError(t, g.l.Machine.Run())
	runtime.GC()
	runtime.ReadMemStats(&after)
	require.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(4<<20))

	head, _, _ := strings.Cut(g.read("trace"), "   #P:2")
	var in, written, lost uint64
	_, counts, ok := strings.Cut(head, "entries-written: ")
	require.True(t, ok)
	scan(t, counts, "%d/%d", &in, &written)
	require.Equal(t, hits, written)
	require.Contains(t, g.read("kprobe_profile"), " "+itoa(hits)+"               0\n")
	require.Len(t, g.lines(), int(in)+1, "one line tells where the second CPU's records begin")
	require.Greater(t, in, uint64(size/80))

	// The reader gets the number of all lost records.
	n := uint64(0)
	for line := range strings.Lines(g.read("trace_pipe")) {
		if strings.HasPrefix(line, "CPU:") {
			var cpu, more uint64
			scan(t, line, "CPU:%d [LOST %d EVENTS]", &cpu, &more)
			lost += more
			continue
		}
		n++
	}
	require.Equal(t, in, n)
	require.Equal(t, hits-in, lost)
}

func scan(t *testing.T, text, format string, to ...any) {
	_, err := fmt.Sscanf(text, format, to...)
	require.NoError(t, err, text)
}

func itoa(n uint64) string { return strconv.FormatUint(n, 10) }

// BenchmarkEvent is a call of a probed function, and the record of its event.
func BenchmarkEvent(b *testing.B) {
	for name, def := range map[string]string{
		"none":        "",
		"no_args":     "p:e work_item",
		"four_args":   "p:e work_item a=%di b=%si:s32 c=$comm d=$stack0",
		"int3":        "p:e work_item+5",
		"return":      "r:e work_item $retval",
		"string":      "p:e work_item s=@linux_banner:string",
		"filtered":    "p:e work_item a=%di",
		"tracing_off": "p:e work_item a=%di",
	} {
		b.Run(name, func(b *testing.B) {
			g := newGuest(b, "6.1", 1, tracing.Options{})
			if def != "" {
				g.define(def)
			}
			switch name {
			case "filtered":
				g.write("events/kprobes/e/filter", "a == 12345678")
			case "tracing_off":
				g.write("tracing_on", "0")
			}
			worker := g.l.Image.Lookup("busy_worker")[0].Addr
			call := func(n int) {
				if _, err := g.l.Machine.CallAddr(worker, uint64(n)); err != nil {
					b.Fatal(err)
				}
			}
			call(10)
			b.ReportAllocs()
			b.ResetTimer()
			for left := b.N; left > 0; left -= 100_000 {
				call(min(left, 100_000))
			}
		})
	}
}

// TestHitsDoNotAllocate checks the allocations that the benchmark measures.
func TestHitsDoNotAllocate(t *testing.T) {
	g := newGuest(t, "6.1", 1, tracing.Options{})
	g.define("p:e work_item a=%di b=%si:s32 c=$comm d=$stack0 s=@linux_banner:string", "r:r work_item $retval")
	worker := g.l.Image.Lookup("busy_worker")[0].Addr
	run := func(n uint64) float64 {
		return testing.AllocsPerRun(3, func() {
			_, err := g.l.Machine.CallAddr(worker, n)
			require.NoError(t, err)
		})
	}
	few, many := run(10), run(1010)
	require.Less(t, many-few, 5.0, "for 1000 hits of two events")
}
