package libcheck

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/kprobes"
	"kprobelab/optimizer"
	"kprobelab/x86"
)

// At the optimizable boundaries of the real functions, a probed call has the same result as the
// unprobed one: while the probe waits for its optimization, through the jump, while the jump waits
// to be undone, and after. The handlers run as often as the instruction, and the text is restored
// to the byte. One boundary in several is tried; with KPROBELAB_SOAK every one.
func TestOptimizedAtEveryBoundary(t *testing.T) {
	stride := 40
	if os.Getenv("KPROBELAB_SOAK") != "" {
		stride = 1
	} else if testing.Short() {
		stride = 400
	}
	for _, c := range []struct{ kernel, folder string }{
		{"5.10", "oracle510"}, {"6.1", "oracle"}, {"6.12", "oracle612"},
	} {
		t.Run(c.kernel, func(t *testing.T) {
			if testing.Short() && c.kernel != "6.1" {
				t.Skip("short: one kernel stands for all")
			}
			l := newLab(t, c.folder, "")
			require.NoError(t, l.Kprobes.InitOptprobes())
			a, err := newArena(l.Machine, l.Image)
			require.NoError(t, err)
			o := &optRun{l: l, a: a, stride: stride}
			for _, f := range All() {
				if present(l, &f) {
					o.function(t, f)
				}
			}
			t.Logf("%d functions, %d optimized of %d optimizable, %d probed runs, %d hits", o.functions, o.probes, o.met, o.runs, o.hits)
			require.Positive(t, o.hits)
			require.NoError(t, l.Kprobes.Err())
		})
	}
}

type optRun struct {
	l           *kprobelab.Lab
	a           *arena
	stride, met int
	tally
}

func (o *optRun) function(t *testing.T, f Func) {
	sym := o.l.Image.Lookup(f.Name)[0]
	scan := optimizer.NewScanner(o.l.Image, o.l.Image.Profile())
	var at []x86.Addr
	for _, b := range boundaries(o.l, sym.Addr, sym.Size) {
		if scan.Decide(b).OK {
			if o.met++; o.met%o.stride == 0 {
				at = append(at, b)
			}
		}
	}
	if len(at) == 0 {
		return
	}
	text := make([]byte, sym.Size)
	require.NoError(t, o.l.Machine.ReadMem(sym.Addr, text))
	runs := unprobedRuns(t, o.l, o.a, f, sym.Addr)
	o.functions++
	for _, b := range at {
		o.place(t, fmt.Sprintf("%s+%#x", f.Name, b.Sub(sym.Addr)), sym.Addr, b, runs)
	}
	restored := make([]byte, sym.Size)
	require.NoError(t, o.l.Machine.ReadMem(sym.Addr, restored))
	require.Equal(t, text, restored, "the text is restored to the byte")
}

// place takes one probe through its life.
func (o *optRun) place(t *testing.T, name string, fn, at x86.Addr, runs []run) {
	hits := 0
	p := &kprobes.Kprobe{Addr: at, PreHandler: func(*kprobes.Kprobe, *x86.PtRegs) int { hits++; return 0 }}
	if o.l.Kprobes.RegisterKprobe(p) != nil {
		o.refused++
		return
	}
	if at = p.Addr; p.OnFtrace() {
		o.l.Kprobes.UnregisterKprobe(p) // moved past an ENDBR
		return
	}
	o.probes++
	all := func(stage string, fires bool) {
		for i := range runs {
			r := &runs[i]
			hits = 0
			memory, err := changes(o.l, func() error { return again(o.l, o.a, fn, r, true) })
			require.NoError(t, err, "%s %s, call %d", name, stage, i)
			// The detour buffer builds its frame on the probed stack.
			dead := deadStack(x86.Addr(r.regs.SP))
			require.Equal(t, without(dead, r.memory), without(dead, memory), "%s %s, call %d", name, stage, i)
			want := 0
			if fires {
				want = r.counts.insns[at]
			}
			require.Equal(t, want, hits, "hits of %s %s, call %d", name, stage, i)
			o.runs++
			o.hits += hits
		}
	}
	require.Equal(t, "optimizing", o.l.Kprobes.Queue(at), name)
	all("waiting", true)
	require.NoError(t, o.l.Settle())
	require.True(t, o.l.Kprobes.Find(at).Optimized() && o.l.Kprobes.Queue(at) == "", name)
	all("optimized", true)
	o.l.Kprobes.UnregisterKprobe(p)
	require.Equal(t, "unoptimizing", o.l.Kprobes.Queue(at), name)
	all("waiting to be undone", false)
	require.NoError(t, o.l.Settle())
	require.Nil(t, o.l.Kprobes.Find(at), name)
	all("undone", false)
	require.Zero(t, p.Nmissed, name)
}
