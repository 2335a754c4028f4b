package libcheck

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/decoder"
	"kprobelab/kprobes"
	"kprobelab/x86"
)

// callsEach returns the number of generated calls of each probe: $KPROBELAB_CALLS, by default few
// enough for an everyday run.
func callsEach() int {
	if n, err := strconv.Atoi(os.Getenv("KPROBELAB_CALLS")); err == nil && n > 0 {
		return n
	}
	return 3
}

// run is a generated call with its unprobed result.
type run struct {
	call   Call
	counts counts
	regs   x86.PtRegs
	memory []page
}

// page is a stretch of memory that a call changed, with its content afterwards.
type page struct {
	at      x86.Range
	content []byte
}

// At every boundary of every function that the kernel accepts, a probed call has the same result,
// memory and registers as the unprobed one; the handlers run as often as the instruction; and the
// text is restored. A short run takes one boundary in twelve.
func TestProbedAtEveryBoundary(t *testing.T) {
	for _, c := range []struct {
		name, kernel, behave string
		post                 bool
	}{
		{"6.1_int3_stepping", "oracle", "", true},
		{"6.1_without_post_handler", "oracle", "", false},
		{"5.10_boosted", "oracle510", "", false},
		{"5.10_with_post_handler", "oracle510", "", true},
		{"6.12", "oracle612", "", true},
		{"5.8_trap_flag_stepping", "oracle", "5.8", true},
		{"5.8_trap_flag_boosted", "oracle", "5.8", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, c.kernel, c.behave)
			a, err := newArena(l.Machine, l.Image)
			require.NoError(t, err)
			var total tally
			for _, f := range All() {
				if !present(l, &f) {
					continue
				}
				t.Run(f.Name, func(t *testing.T) { probed(t, l, a, f, c.post, &total) })
			}
			t.Logf("%s", &total)
			require.GreaterOrEqual(t, total.functions, 100)
			require.Positive(t, total.hits)
		})
	}
}

// tally counts the work that was done.
type tally struct{ functions, probes, refused, runs, hits int }

func (c *tally) String() string {
	return fmt.Sprintf("%d functions, %d probes accepted and %d boundaries refused, %d probed runs, %d hits",
		c.functions, c.probes, c.refused, c.runs, c.hits)
}

func probed(t *testing.T, l *kprobelab.Lab, a *arena, f Func, withPost bool, total *tally) {
	sym := l.Image.Lookup(f.Name)[0]
	text := make([]byte, sym.Size)
	require.NoError(t, l.Machine.ReadMem(sym.Addr, text))
	runs := unprobedRuns(t, l, a, f, sym.Addr)
	total.functions++
	for i, at := range boundaries(l, sym.Addr, sym.Size) {
		if testing.Short() && (i+total.functions)%12 != 0 {
			continue
		}
		pre, post := 0, 0
		p := &kprobes.Kprobe{
			Addr:       at,
			PreHandler: func(*kprobes.Kprobe, *x86.PtRegs) int { pre++; return 0 },
		}
		if withPost {
			p.PostHandler = func(*kprobes.Kprobe, *x86.PtRegs, uint64) { post++ }
		}
		if err := l.Kprobes.RegisterKprobe(p); err != nil {
			total.refused++
			continue
		}
		total.probes++
		copied, _ := p.Slot()
		boosted := copied.Boosted && !withPost
		everyRound := l.Image.Profile().Step.TrapFlag && !boosted
		for i := range runs {
			r := &runs[i]
			pre, post = 0, 0
			memory, err := changes(l, func() error { return again(l, a, sym.Addr, r, true) })
			require.NoError(t, err, "probe at %s+%#x, call %d", f.Name, at.Sub(sym.Addr), i)
			want := r.memory
			if p.OnFtrace() {
				dead := deadStack(x86.Addr(r.regs.SP))
				want, memory = without(dead, want), without(dead, memory)
			}
			require.Equal(t, want, memory, "all memory that the call changed: probe at %s+%#x, call %d", f.Name, at.Sub(sym.Addr), i)
			require.Equal(t, r.counts.hits(at, everyRound), pre, "pre handlers at %s+%#x, call %d", f.Name, at.Sub(sym.Addr), i)
			if !withPost {
				post = pre
			}
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

// hits returns the number of hits of a probe at the address. With the trap flag, the stepped copy
// of a repeated string instruction comes back to the probe after every round.
func (c *counts) hits(at x86.Addr, everyRound bool) int {
	if everyRound {
		return c.rounds[at]
	}
	return c.insns[at]
}

// unprobedRuns makes the calls without a probe: once at full speed, which
// gives memory and registers, and once stepped, which counts the instructions.
// Every run begins with the same memory.
func unprobedRuns(t *testing.T, l *kprobelab.Lab, a *arena, f Func, addr x86.Addr) []run {
	runs := make([]run, callsEach())
	for i := range runs {
		r := &runs[i]
		r.call = f.Gen(NewGen(uint64(i) + 1000))
		var err error
		r.memory, err = changes(l, func() error { return again(l, a, addr, r, false) })
		require.NoError(t, err)
		r.regs = l.Machine.Regs()
		_, err = changes(l, func() error { return r.step(l, a, addr) })
		require.NoError(t, err)
	}
	return runs
}

// step makes the run under the stepper.
func (r *run) step(l *kprobelab.Lab, a *arena, addr x86.Addr) error {
	args, want, err := a.place(&r.call)
	if err != nil {
		return err
	}
	var ret uint64
	if r.counts, ret, err = stepped(l, addr, args); err != nil {
		return err
	}
	return a.check(&r.call, ret, want)
}

// changes makes a run, collects all memory of the machine that it changed,
// stacks and per-CPU areas too, and puts it back.
func changes(l *kprobelab.Lab, do func() error) ([]page, error) {
	before, err := l.Machine.Snapshot()
	if err != nil {
		return nil, err
	}
	if err := do(); err != nil {
		return nil, err
	}
	var pages []page
	for _, r := range l.Machine.Dirty(before) {
		p := page{at: r, content: make([]byte, r.Len())}
		if err := l.Machine.ReadMem(r.Start, p.content); err != nil {
			return nil, err
		}
		pages = append(pages, p)
	}
	return pages, l.Machine.Restore(before)
}

// deadStack returns the memory below the stack pointer after a call. The kernel keeps nothing there
// (-mno-red-zone), and the function tracer's trampoline builds its frame on the probed function's
// stack.
func deadStack(sp x86.Addr) x86.Range {
	return x86.Range{Start: sp.Add(-x86.ThreadSize), End: sp}
}

// without returns a copy of the pages with zeros in a range.
func without(r x86.Range, pages []page) []page {
	pages = slices.Clone(pages)
	for i, p := range pages {
		from, to := max(r.Start, p.at.Start), min(r.End, p.at.End)
		if from < to {
			pages[i].content = slices.Clone(p.content)
			clear(pages[i].content[from.Sub(p.at.Start):to.Sub(p.at.Start)])
		}
	}
	return pages
}

// again repeats a run and compares its result and the memory it was given;
// and its registers where they are known already.
func again(l *kprobelab.Lab, a *arena, addr x86.Addr, r *run, regs bool) error {
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
	if have := l.Machine.Regs(); regs && have != r.regs {
		return fmt.Errorf("registers differ:\n have %+v\n want %+v", have, r.regs)
	}
	return nil
}

// boundaries are the starts of the function's instructions.
func boundaries(l *kprobelab.Lab, start x86.Addr, size uint64) (at []x86.Addr) {
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
