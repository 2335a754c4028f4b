package kprobestest_test

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/internal/integration/dumps/runs"
	"kprobelab/kprobestest"
)

// The cost of a fresh machine of an open dump, and of going back after a test that opens, reads and
// closes a file.
func BenchmarkBooted(b *testing.B) {
	img, err := kprobelab.OpenImage(runs.File(b, "6.1"), nil)
	require.NoError(b, err)
	b.Run("new", func(b *testing.B) {
		for b.Loop() {
			l, err := kprobelab.New(img, nil)
			require.NoError(b, err)
			l.Close()
		}
	})
	b.Run("restore", func(b *testing.B) {
		l, err := kprobelab.New(img, nil)
		require.NoError(b, err)
		defer l.Close()
		s, err := l.Machine.Snapshot()
		require.NoError(b, err)
		for b.Loop() {
			b.StopTimer()
			readFile(b, l)
			b.StartTimer()
			require.NoError(b, l.Machine.Restore(s))
		}
	})
}

// What a test pays for a fresh booted kernel, the leak check included.
func BenchmarkBootedTest(b *testing.B) {
	file := runs.File(b, "6.1")
	(&recorder{}).run(func(f testing.TB) { kprobestest.New(f, &kprobestest.Options{Image: file}) }) // opens the dump
	for b.Loop() {
		said := (&recorder{}).run(func(f testing.TB) {
			m := kprobestest.New(f, &kprobestest.Options{Image: file})
			b.StopTimer()
			readFile(b, m.Lab())
			b.StartTimer()
		})
		require.Empty(b, said)
	}
}

// Memory of many machines on one dump, each of which has opened, read and closed a file: the
// process's memory (RSS), and its share of it (PSS).
func BenchmarkBootedMemory(b *testing.B) {
	img, err := kprobelab.OpenImage(runs.File(b, "6.1"), nil)
	require.NoError(b, err)
	for _, n := range []int{1, 100} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				runtime.GC()
				rss, pss := memory(b)
				var list []*kprobelab.Lab
				for range n {
					l, err := kprobelab.New(img, nil)
					require.NoError(b, err)
					list = append(list, l)
					readFile(b, l)
				}
				moreRSS, morePSS := memory(b)
				for _, l := range list {
					l.Close()
				}
				b.ReportMetric(float64(moreRSS-rss)/1024, "RSS-MiB")
				b.ReportMetric(float64(morePSS-pss)/1024, "PSS-MiB")
			}
		})
	}
}

// memory is the process's resident memory in KiB.
func memory(b *testing.B) (rss, pss int) {
	text, err := os.ReadFile("/proc/self/smaps_rollup")
	require.NoError(b, err)
	for line := range strings.Lines(string(text)) {
		fmt.Sscanf(line, "Rss: %d", &rss)
		fmt.Sscanf(line, "Pss: %d", &pss)
	}
	return rss, pss
}

func readFile(t testing.TB, lab *kprobelab.Lab) {
	l, err := lab.Booted()
	require.NoError(t, err)
	fd, err := l.SystemCall("openat", -100, "/etc/hostname", 0)
	require.NoError(t, err)
	require.Positive(t, fd)
	text := make([]byte, 32)
	n, err := l.SystemCall("read", fd, text, len(text))
	require.NoError(t, err)
	require.Equal(t, "kprobelab\n", string(text[:n]))
	_, err = l.SystemCall("close", fd)
	require.NoError(t, err)
}
