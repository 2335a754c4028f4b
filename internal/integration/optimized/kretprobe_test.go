package optimized

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/kprobes"
	"kprobelab/x86"
)

// A return probe whose entry is a jump tracks calls as one with an int3 does: the
// trampoline replaces the return address in the probed frame.
func TestKretprobeOverOptimizedEntry(t *testing.T) {
	for _, kernel := range []string{"5.10", "6.1", "6.12"} {
		t.Run(kernel, func(t *testing.T) {
			l := guest(t, kernel, kprobelab.Options{})
			sym := l.Image.Lookup(host)[0]
			code := append([]byte(nil), target...)
			for len(code) < int(sym.Size) {
				code = append(code, 0x90)
			}
			require.NoError(t, l.Machine.PokeText(sym.Addr, code))
			entries, returns := 0, 0
			rp := &kprobes.Kretprobe{
				KP:           kprobes.Kprobe{Addr: sym.Addr},
				EntryHandler: func(*kprobes.Instance, *x86.PtRegs) int { entries++; return 0 },
				Handler: func(i *kprobes.Instance, regs *x86.PtRegs) int {
					returns++
					require.EqualValues(t, 10, regs.AX)
					regs.AX = 77
					return 0
				},
			}
			require.NoError(t, l.Kprobes.RegisterKretprobe(rp))
			for n, settle := range []bool{false, true} {
				if settle {
					require.NoError(t, l.Settle())
				}
				ax, err := l.Machine.CallAddr(sym.Addr, 1)
				require.NoError(t, err)
				require.EqualValues(t, 77, ax)
				require.Equal(t, n+1, entries)
				require.Equal(t, n+1, returns)
			}
			require.Contains(t, l.Kprobes.List(), "  r  "+host+"+0x0    [OPTIMIZED]")
			l.Kprobes.UnregisterKretprobe(rp)
			require.NoError(t, l.Settle())
			ax, err := l.Machine.CallAddr(sym.Addr, 1)
			require.NoError(t, err)
			require.EqualValues(t, 10, ax)
			require.NoError(t, l.Kprobes.Err())
		})
	}
}

// BenchmarkOptimizedHit is a call with one kprobe in it that is a jump, to be
// compared with BenchmarkBareCall of internal/session.
func BenchmarkOptimizedHit(b *testing.B) {
	l := guest(b, "6.1", kprobelab.Options{})
	item, worker := l.Image.Lookup("work_item")[0], l.Image.Lookup("busy_worker")[0].Addr
	hits := 0
	p := &kprobes.Kprobe{PreHandler: func(*kprobes.Kprobe, *x86.PtRegs) int { hits++; return 0 }}
	for at := item.Addr + 5; ; at++ {
		require.Less(b, at, item.Addr.Add(int64(item.Size)), "no place in work_item can be optimized")
		p.Addr, p.Flags = at, 0
		if l.Kprobes.RegisterKprobe(p) != nil {
			continue
		}
		require.NoError(b, l.Settle())
		if l.Kprobes.Find(at).Optimized() {
			break
		}
		l.Kprobes.UnregisterKprobe(p)
	}
	const most = 100_000 // of one call, to stay within its budget
	b.ReportAllocs()
	b.ResetTimer()
	for left := b.N; left > 0; left -= most {
		if _, err := l.Machine.CallAddr(worker, uint64(min(left, most))); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	require.NoError(b, l.Kprobes.Err())
	require.Equal(b, b.N, hits)
	l.Kprobes.UnregisterKprobe(p)
}
