package browser

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The figures of docs/measured/page.md: go test -v prints them.
func TestFigures(t *testing.T) {
	t.Run("size", func(t *testing.T) {
		f, err := os.Open(pageFile(t))
		require.NoError(t, err)
		defer f.Close()
		packed := &counter{}
		z, err := gzip.NewWriterLevel(packed, gzip.BestCompression)
		require.NoError(t, err)
		plain, err := io.Copy(z, f)
		require.NoError(t, err)
		require.NoError(t, z.Close())
		t.Logf("%.1f MB, %.1f MB compressed", float64(plain)/1e6, float64(packed.n)/1e6)
		require.Less(t, packed.n, int64(7e6))
	})
	t.Run("first_view", func(t *testing.T) {
		eachWay(t, func(t *testing.T, address string) {
			began := worked(t)
			ctx := tab(t, address)
			until(t, ctx, `!!document.body.dataset.shown`)
			t.Logf("painted after %.0f ms, answers shown after %.0f ms; with the browser's own start, of the processor %.1f s",
				eval[float64](t, ctx, `performance.getEntriesByName("first-contentful-paint")[0].startTime`),
				eval[float64](t, ctx, `Number(document.body.dataset.shown)`), (worked(t) - began).Seconds())
		})
	})
	t.Run("image", func(t *testing.T) {
		image := kernelImage(t)
		ctx := tab(t, page(t)+"#ask?source=image")
		until(t, ctx, `$("code").hidden && !!ask.open`)
		began, before := time.Now(), worked(t)
		choose(t, ctx, image)
		until(t, ctx, fmt.Sprintf(`ask.open.name === %q && $("status").textContent === "Ready"`, filepath.Base(image)))
		t.Logf("opened after %.1f s, of the processor %.1f s; the page has taken %d MB at most", time.Since(began).Seconds(), (worked(t) - before).Seconds(), took(t))
	})
	t.Run("steps", func(t *testing.T) {
		ctx := tab(t, page(t)+"#watch?probes=kprobe+gcd%2B0x5%0Akretprobe+fib%3A2&calls=gcd(1071,462);+fib(15)%0Afib(15)&release=6.1")
		until(t, ctx, `!!watch.machine.view`)
		eval[bool](t, ctx, `(watch.machine.by = "instruction", true)`)
		for _, after := range []int{2, 1000, 4900} {
			eval[bool](t, ctx, fmt.Sprintf(`watch.machine.ask({schedule: "mwa%db%d", sub: -1}).then(() => true)`, max(1, (after-2)/2), max(1, (after-2)/2)))
			t.Logf("after %d steps: forwards %s; back %s", after, times(t, ctx, `watch.machine.forward("b")`, 90), times(t, ctx, `watch.machine.back()`, 90))
		}
	})
	// Two CPUs in turn, as a reader steps them: by the protocol and by instructions.
	t.Run("two_cpus", func(t *testing.T) {
		ctx := tab(t, page(t)+"#watch?probes=kprobe+opt_yes&calls=opt_yes(1)%3B+opt_yes(3)%0Aopt_yes(2)%3B+fib(7)&release=6.1")
		until(t, ctx, `!!watch.machine.view`)
		for by, n := range map[string]int{"protocol": 24, "instruction": 120} {
			eval[bool](t, ctx, fmt.Sprintf(`(watch.machine.by = %q, watch.machine.begin().then(() => true))`, by))
			t.Logf("by %s: forwards %s", by, times(t, ctx, `watch.machine.forward()`, n))
			t.Logf("by %s: the page's own work, without the program: %s", by, eval[string](t, ctx, `works.sort((a, b) => a - b) && "median " + works[works.length >> 1].toFixed(1) + " ms, 99 % " + works[Math.floor(0.99 * (works.length - 1))].toFixed(1) + " ms"`))
		}
		most := took(t)
		t.Logf("the page has taken %d MB at most", most)
		require.Positive(t, most)
		require.Less(t, most, 300, "MB without a kernel's image")
	})
}

// times measures the time of an action in the page, until its picture is laid out, and
// the processor's time for it: on a busy machine the second counts.
func times(t *testing.T, ctx context.Context, what string, n int) string {
	t.Helper()
	before := worked(t)
	said := eval[string](t, ctx, fmt.Sprintf(`(async () => {
		const all = [];
		window.works = [];
		for (let i = 0; i < %d; i++) {
			const t = performance.now();
			await %s;
			document.body.getBoundingClientRect();
			all.push(performance.now() - t);
			works.push(watch.machine.work);
		}
		all.sort((a, b) => a - b);
		const at = (q) => all[Math.floor(q * (all.length - 1))].toFixed(1);
		return `+"`least ${at(0)} ms, median ${at(0.5)} ms, 95 %% ${at(0.95)} ms, 99 %% ${at(0.99)} ms, most ${at(1)} ms`"+`;
	})()`, n, what))
	return fmt.Sprintf("%s, of the processor %.0f ms", said, float64((worked(t)-before).Milliseconds())/float64(n))
}

// browsers are the processes that this test has started, with theirs: the fields of
// /proc/PID/stat after the name, from the third on (proc(5)).
func browsers(t *testing.T) map[int][]string {
	t.Helper()
	list, err := filepath.Glob("/proc/[0-9]*/stat")
	require.NoError(t, err)
	all := map[int][]string{}
	for _, name := range list {
		b, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		all[pid] = strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	}
	parent := func(pid int) int {
		if len(all[pid]) < 2 {
			return 0
		}
		n, _ := strconv.Atoi(all[pid][1])
		return n
	}
	ours := map[int][]string{}
	for pid, fields := range all {
		up := parent(pid)
		for up > 1 && up != os.Getpid() {
			up = parent(up)
		}
		if up > 1 {
			ours[pid] = fields
		}
	}
	return ours
}

// worked returns the processor time of the browsers so far.
func worked(t *testing.T) (all time.Duration) {
	t.Helper()
	const tick = 10 * time.Millisecond // USER_HZ
	for _, fields := range browsers(t) {
		for _, n := range []int{11, 12} { // utime, stime
			ticks, _ := strconv.Atoi(fields[n])
			all += time.Duration(ticks) * tick
		}
	}
	return all
}

// took returns the most memory that a page's process of the browsers has had, in MB: the page with its program, and
// what it shares with the browser's other processes.
func took(t *testing.T) (most int) {
	t.Helper()
	for pid := range browsers(t) {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // nothing, if it has ended
		if !bytes.Contains(line, []byte("--type=renderer")) {
			continue
		}
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		_, after, _ := strings.Cut(string(b), "VmHWM:")
		if fields := strings.Fields(after); len(fields) > 0 {
			kb, _ := strconv.Atoi(fields[0])
			most = max(most, kb/1000)
		}
	}
	return most
}

type counter struct{ n int64 }

func (c *counter) Write(b []byte) (int, error) {
	c.n += int64(len(b))
	return len(b), nil
}
