package session

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/internal/integration/oracle"
	"kprobelab/kimage"
	"kprobelab/kprobes"
	"kprobelab/x86"
)

// BenchmarkRegister100k plants 100,000 probes on the instructions of a real kernel, in
// its text on the real machine, and removes them again; the time is per probe.
func BenchmarkRegister100k(b *testing.B) {
	const n = 100_000
	img, err := kimage.Open(oracle.Image(b, "oracle"), nil)
	require.NoError(b, err)
	lab, err := kprobelab.New(img, nil)
	require.NoError(b, err)
	b.Cleanup(func() { _ = lab.Close() })
	l := New(lab)
	ps := l.probesOnFunctions(b, n)
	b.ReportAllocs()
	b.ResetTimer()
	for b.Loop() {
		for _, p := range ps {
			p.Flags = 0
			if err := l.Kprobes.RegisterKprobe(p); err != nil {
				b.Fatal(err)
			}
		}
		l.Kprobes.UnregisterKprobes(ps)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/probe")
	require.Zero(b, l.Kprobes.Registered())
}

// probesOnFunctions is a probe on the first instructions of each function that
// can be probed, until there are n.
func (l *Session) probesOnFunctions(b *testing.B, n int) (ps []*kprobes.Kprobe) {
	for off := x86.Addr(0); off < 32; off++ {
		for _, s := range l.Image.Symbols() {
			at := s.Addr + off
			if uint64(off) >= s.Size || l.Kprobes.Find(at) != nil || !l.Image.InText(at) {
				continue
			}
			p := &kprobes.Kprobe{Addr: at, PreHandler: func(*kprobes.Kprobe, *x86.PtRegs) int { return 0 }}
			if l.Kprobes.RegisterKprobe(p) != nil {
				continue
			}
			if ps = append(ps, p); len(ps) == n {
				l.Kprobes.UnregisterKprobes(ps)
				return ps
			}
		}
	}
	b.Fatalf("%d places only", len(ps))
	return nil
}
