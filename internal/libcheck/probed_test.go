//go:build cgo && linux && amd64

package libcheck

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/decoder"
	"kprobelab/internal/lab"
	"kprobelab/kprobes"
	"kprobelab/x86"
)

// callsEach is how many generated calls each probe is tried with:
// $KPROBELAB_CALLS, by default few enough for an everyday run.
func callsEach() int {
	if n, err := strconv.Atoi(os.Getenv("KPROBELAB_CALLS")); err == nil && n > 0 {
		return n
	}
	return 2
}

// run is a generated call with what it did unprobed.
type run struct {
	call   Call
	counts map[x86.Addr]int
	regs   x86.PtRegs
}

// At every boundary of every function that the kernel accepts, a probed call
// does what the unprobed one does: the same result, memory and registers; the
// handlers run as often as the instruction; and the text is restored.
func TestProbedAtEveryBoundary(t *testing.T) {
	l := newLab(t, "oracle")
	a, err := newArena(l.Machine, l.Image)
	require.NoError(t, err)
	var total tally
	for _, f := range All() {
		if !present(l, &f) {
			continue
		}
		t.Run(f.Name, func(t *testing.T) { probed(t, l, a, f, &total) })
	}
	t.Logf("%s", &total)
	require.GreaterOrEqual(t, total.functions, 100)
	require.Positive(t, total.hits)
}

// tally is what was done.
type tally struct{ functions, probes, refused, runs, hits int }

func (c *tally) String() string {
	return fmt.Sprintf("%d functions, %d probes accepted and %d boundaries refused, %d probed runs, %d hits",
		c.functions, c.probes, c.refused, c.runs, c.hits)
}

func probed(t *testing.T, l *lab.Lab, a *arena, f Func, total *tally) {
	sym := l.Image.Lookup(f.Name)[0]
	text := make([]byte, sym.Size)
	require.NoError(t, l.Machine.ReadMem(sym.Addr, text))
	runs := unprobedRuns(t, l, a, f, sym.Addr)
	total.functions++
	for _, at := range boundaries(l, sym.Addr, sym.Size) {
		pre, post := 0, 0
		p := &kprobes.Kprobe{
			Addr:        at,
			PreHandler:  func(*kprobes.Kprobe, *x86.PtRegs) int { pre++; return 0 },
			PostHandler: func(*kprobes.Kprobe, *x86.PtRegs, uint64) { post++ },
		}
		if err := l.Kprobes.RegisterKprobe(p); err != nil {
			total.refused++
			continue
		}
		total.probes++
		for i := range runs {
			r := &runs[i]
			pre, post = 0, 0
			require.NoError(t, again(l, a, sym.Addr, r), "probe at %s+%#x, call %d", f.Name, at.Sub(sym.Addr), i)
			require.Equal(t, r.counts[at], pre, "pre handlers at %s+%#x, call %d", f.Name, at.Sub(sym.Addr), i)
			require.Equal(t, pre, post, "post handlers at %s+%#x, call %d", f.Name, at.Sub(sym.Addr), i)
			total.runs++
			total.hits += pre
		}
		l.Kprobes.UnregisterKprobe(p)
		require.Zero(t, p.Nmissed)
	}
	restored := make([]byte, sym.Size)
	require.NoError(t, l.Machine.ReadMem(sym.Addr, restored))
	require.Equal(t, text, restored, "the text is restored to the byte")
}

// unprobedRuns makes the calls without a probe: once at full speed, which
// gives the registers, and once stepped, which counts the instructions.
func unprobedRuns(t *testing.T, l *lab.Lab, a *arena, f Func, addr x86.Addr) []run {
	runs := make([]run, callsEach())
	for i := range runs {
		r := &runs[i]
		r.call = f.Gen(NewGen(uint64(i) + 1000))
		args, want, err := a.place(&r.call)
		require.NoError(t, err)
		ret, err := l.Machine.CallAddr(addr, args...)
		require.NoError(t, err)
		require.NoError(t, a.check(&r.call, ret, want))
		r.regs = l.Machine.Regs()

		args, want, err = a.place(&r.call)
		require.NoError(t, err)
		r.counts, ret, err = stepped(l, addr, args)
		require.NoError(t, err)
		require.NoError(t, a.check(&r.call, ret, want))
	}
	return runs
}

// again repeats a run and compares it with the first time.
func again(l *lab.Lab, a *arena, addr x86.Addr, r *run) error {
	args, want, err := a.place(&r.call)
	if err != nil {
		return err
	}
	ret, err := l.Machine.CallAddr(addr, args...)
	if err != nil {
		return err
	}
	if err := l.Kprobes.ClearErr(); err != nil {
		return err
	}
	if err := a.check(&r.call, ret, want); err != nil {
		return err
	}
	if regs := l.Machine.Regs(); regs != r.regs {
		return fmt.Errorf("registers differ:\n have %+v\n want %+v", regs, r.regs)
	}
	return nil
}

// boundaries are the starts of the function's instructions.
func boundaries(l *lab.Lab, start x86.Addr, size uint64) (at []x86.Addr) {
	d := &l.Image.Profile().Decoder
	for off := uint64(0); off < size; {
		var b [decoder.MaxInsnSize]byte
		n := l.Image.CodeAt(start+x86.Addr(off), b[:])
		k, err := decoder.DecodeKernel(b[:n], d)
		if err != nil {
			return at
		}
		at = append(at, start+x86.Addr(off))
		off += uint64(k.Length)
	}
	return at
}
