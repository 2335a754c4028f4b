package session

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/kimage"
	"kprobelab/kprobes"
	"kprobelab/x86"
)

// bench has a guest whose busy_worker(n) calls work_item n times.
type bench struct {
	*Session
	worker, item x86.Addr
}

func newBench(b testing.TB) *bench {
	img, err := kimage.FromBytes("guest kernel", kprobelab.GuestELF(), nil)
	require.NoError(b, err)
	lab, err := kprobelab.New(img, nil)
	require.NoError(b, err)
	b.Cleanup(func() { _ = lab.Close() })
	l := New(lab)
	return &bench{l, img.Lookup("busy_worker")[0].Addr, img.Lookup("work_item")[0].Addr}
}

// rounds times b.N calls of work_item by guest code.
func (l *bench) rounds(b *testing.B) {
	const most = 100_000 // of one call, to stay within its budget
	b.ReportAllocs()
	b.ResetTimer()
	for left := b.N; left > 0; left -= most {
		if _, err := l.Machine.CallAddr(l.worker, uint64(min(left, most))); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	require.NoError(b, l.Kprobes.Err())
}

// kprobe plants a probe that counts, as a handler in Go does.
func (l *bench) kprobe(b *testing.B, at x86.Addr, post bool) *int {
	hits := new(int)
	p := &kprobes.Kprobe{Addr: at, PreHandler: func(*kprobes.Kprobe, *x86.PtRegs) int { *hits++; return 0 }}
	if post {
		p.PostHandler = func(*kprobes.Kprobe, *x86.PtRegs, uint64) {}
	}
	require.NoError(b, l.Kprobes.RegisterKprobe(p))
	return hits
}

// BenchmarkBareCall is a guest function called by guest code, without a probe.
func BenchmarkBareCall(b *testing.B) { newBench(b).rounds(b) }

// BenchmarkBareCallProbesElsewhere is the same with probes on other functions:
// the figure to compare with BenchmarkBareCall.
func BenchmarkBareCallProbesElsewhere(b *testing.B) {
	for _, n := range []int{1, 100} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			l := newBench(b)
			planted := 0
			for _, s := range l.Image.Symbols() {
				if planted == n {
					break
				}
				p := &kprobes.Kprobe{Addr: s.Addr, PreHandler: func(*kprobes.Kprobe, *x86.PtRegs) int { return 0 }}
				// The worker's code lies before it.
				if s.Addr > l.worker && l.Kprobes.RegisterKprobe(p) == nil {
					planted++
				}
			}
			require.Equal(b, n, planted)
			l.rounds(b)
		})
	}
}

// BenchmarkInt3Hit is a call with one kprobe in it: trap, pre handler, the copy
// in its slot, the trap after it, and with a post handler that too.
func BenchmarkInt3Hit(b *testing.B) {
	for _, post := range []bool{false, true} {
		b.Run(map[bool]string{false: "pre", true: "pre_post"}[post], func(b *testing.B) {
			l := newBench(b)
			hits := l.kprobe(b, l.item+fentrySize, post)
			l.rounds(b)
			require.Equal(b, b.N, *hits)
		})
	}
}

// fentrySize is the length of a function's fentry site.
const fentrySize = 5

// BenchmarkKretprobeHit is a call with a return probe: the probe at the
// entry, and the trampoline with the handler.
func BenchmarkKretprobeHit(b *testing.B) {
	l := newBench(b)
	hits := 0
	rp := &kprobes.Kretprobe{KP: kprobes.Kprobe{Addr: l.item}, Handler: func(*kprobes.Instance, *x86.PtRegs) int {
		hits++
		return 0
	}}
	require.NoError(b, l.Kprobes.RegisterKretprobe(rp))
	l.rounds(b)
	require.Equal(b, b.N, hits)
}
