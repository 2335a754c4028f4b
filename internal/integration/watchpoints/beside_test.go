package watchpoints

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/internal/engine"
	"kprobelab/kprobes"
	"kprobelab/watch"
	"kprobelab/x86"
)

// BenchmarkBesideAKprobe is a call of strlen with one hit, of a kprobe's int3 and of watchpoints,
// in the guest kernel: the difference from a call without is the hit's cost.
func BenchmarkBesideAKprobe(b *testing.B) {
	const text = "last_pid" // one byte and a zero
	none := func(*watch.Watchpoint, *watch.Hit, *x86.PtRegs) {}
	for _, name := range engine.Names() {
		for _, c := range []struct {
			name string
			set  func(l *kprobelab.Lab) (hits func() uint64)
		}{
			{"none", func(*kprobelab.Lab) func() uint64 { return nil }},
			{"kprobe", func(l *kprobelab.Lab) func() uint64 {
				hits := uint64(0)
				_, err := l.Kprobe("strlen+0x5", func(*kprobes.Kprobe, *x86.PtRegs) int { hits++; return 0 }, func(*kprobes.Kprobe, *x86.PtRegs, uint64) {})
				require.NoError(b, err)
				return func() uint64 { return hits }
			}},
			{"execute", func(l *kprobelab.Lab) func() uint64 {
				w, err := l.Watch("strlen+0x5:x", none)
				require.NoError(b, err)
				return func() uint64 { return w.Hits }
			}},
			{"read", func(l *kprobelab.Lab) func() uint64 {
				w, err := l.Watch(text+":1:r", none)
				require.NoError(b, err)
				return func() uint64 { return w.Hits }
			}},
		} {
			b.Run(name+"/"+c.name, func(b *testing.B) {
				l, err := kprobelab.Open("", &kprobelab.Options{Engine: name})
				require.NoError(b, err)
				defer l.Close()
				hits := c.set(l)
				fn, at := l.Image.Lookup("strlen")[0].Addr, uint64(l.Image.Lookup(text)[0].Addr)
				b.ReportAllocs()
				calls := uint64(0)
				for b.Loop() {
					if _, err := l.Machine.CallAddr(fn, at); err != nil {
						b.Fatal(err)
					}
					calls++
				}
				if hits != nil {
					require.Equal(b, calls, hits())
				}
			})
		}
	}
}
