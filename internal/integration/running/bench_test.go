package running

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/kprobes"
	"kprobelab/x86"
)

// BenchmarkOpenReadClose is three system calls, through the kernel's entry and out again, with a
// probe in each of three functions on their way. offset is the probe's place in the function: at
// the entry kernels with ftrace use ftrace.
func BenchmarkOpenReadClose(b *testing.B) {
	const read, open, closing = 0, 2, 3
	for _, c := range []struct {
		name     string
		probed   bool
		inside   bool // not at the function's entry
		optimize bool
	}{
		{name: "unprobed"},
		{name: "int3", probed: true, inside: true},
		{name: "optimized", probed: true, inside: true, optimize: true},
		{name: "ftrace", probed: true},
	} {
		b.Run(c.name, func(b *testing.B) {
			k := bootWith(b, "6.1", &kprobelab.Options{Optimize: true, Budget: budget})
			require.NoError(b, k.Kprobes.SetOptimization(c.optimize))
			path, err := k.Machine.AllocUser(128)
			require.NoError(b, err)
			require.NoError(b, k.Machine.WriteMem(path, []byte("/etc/hostname\x00")))
			hits := 0
			for _, f := range []string{"do_sys_openat2", "vfs_read", "filp_close"} {
				if c.probed {
					p := &kprobes.Kprobe{Addr: k.place(f, c.inside, c.optimize), PreHandler: func(*kprobes.Kprobe, *x86.PtRegs) int { hits++; return 0 }}
					require.NoError(b, k.Kprobes.RegisterKprobe(p), f)
				}
			}
			if c.optimize {
				require.NoError(b, k.Settle())
			}
			call := func(nr uint64, args ...uint64) int64 {
				v, err := k.Machine.SystemCall(nr, args...)
				require.NoError(b, err)
				return v
			}
			for b.Loop() {
				fd := call(open, uint64(path), 0)
				n := call(read, uint64(fd), uint64(path)+64, 64)
				if fd < 0 || n <= 0 || call(closing, uint64(fd)) != 0 {
					b.Fatal(fd, n)
				}
			}
			if c.probed {
				require.NotZero(b, hits)
				b.ReportMetric(float64(hits)/float64(b.N), "hits/op")
			}
		})
	}
}

// place returns the address in a function to probe: its entry, or the first boundary after it that
// can, or cannot, be optimized.
func (k *kernel) place(name string, inside, optimized bool) x86.Addr {
	f := k.Image.Lookup(name)[0]
	if !inside {
		return f.Addr
	}
	for _, at := range k.boundaries(f)[1:] {
		p := &kprobes.Kprobe{Addr: at, PreHandler: func(*kprobes.Kprobe, *x86.PtRegs) int { return 0 }}
		if k.Kprobes.RegisterKprobe(p) != nil {
			continue
		}
		ok := !optimized
		if optimized && k.Settle() == nil {
			ok = p.Optimized()
		}
		k.Kprobes.UnregisterKprobe(p)
		if ok {
			return at
		}
	}
	k.t.Fatal("no place in " + name)
	return 0
}
