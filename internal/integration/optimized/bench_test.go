package optimized

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/machine"
	"kprobelab/x86"
)

// guest is the guest kernel under a release's rules, with the optimizer.
func guest(t testing.TB, kernel string, o kprobelab.Options) *kprobelab.Lab {
	o.Profile, o.Optimize = kernel, true
	l, err := kprobelab.Open("", &o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() }) // without a leak check: the tests write functions of their own into the text
	return l
}

// outcome is the state after a call.
type outcome struct {
	regs    x86.PtRegs
	stopped string
	console string
	pages   []page
}

type page struct {
	at      x86.Addr
	content []byte
}

// bench makes calls that all begin with the same memory.
type bench struct {
	*kprobelab.Lab
	t       testing.TB
	scratch x86.Addr
	// One optimizable place in every stride is tried; met counts those seen.
	stride, met int
}

// scratchSize is the size of each of the buffers that arguments may point to.
const scratchSize = 512

func newBench(t testing.TB, kernel string) *bench {
	l := guest(t, kernel, kprobelab.Options{Budget: 400_000})
	at, err := l.Machine.Alloc(6 * scratchSize)
	require.NoError(t, err)
	b := make([]byte, 6*scratchSize)
	for i := range b {
		b[i] = "abcAB 019%d\x00\x00"[i%13]
	}
	require.NoError(t, l.Machine.WriteMem(at, b))
	return &bench{Lab: l, t: t, scratch: at}
}

// args are six words: buffers, small numbers, numbers of any size.
func (b *bench) args(rng *rand.Rand) []uint64 {
	words := make([]uint64, 6)
	for i := range words {
		switch rng.IntN(3) {
		case 0:
			words[i] = uint64(b.scratch) + uint64(i*scratchSize)
		case 1:
			words[i] = rng.Uint64N(12)
		default:
			words[i] = rng.Uint64() >> rng.IntN(64)
		}
	}
	return words
}

// run makes a call, and puts all memory back.
func (b *bench) run(at x86.Addr, args []uint64) (o outcome) {
	m := b.Machine
	before, err := m.Snapshot()
	require.NoError(b.t, err)
	_, err = m.CallAddr(at, args...)
	o.regs, o.console, o.stopped = m.Regs(), string(m.Console()), b.stop(err)
	for _, r := range m.Dirty(before) {
		for p := r.Start; p < r.End; p += machine.PageSize {
			content := make([]byte, machine.PageSize)
			require.NoError(b.t, m.ReadMem(p, content))
			o.pages = append(o.pages, page{p, content})
		}
	}
	require.NoError(b.t, m.Restore(before))
	m.Discard(before)
	return o
}

// stop describes the end of a call, without addresses: as in a real kernel, a fault of a copied
// instruction is reported at the copy.
func (b *bench) stop(err error) string {
	var f *machine.Fault
	if errors.As(err, &f) {
		return fmt.Sprintf("vector %d access %v at %v", f.Vector, f.Access, f.Addr)
	}
	if errors.Is(err, machine.ErrBudget) {
		return "never ends"
	}
	return fmt.Sprint(err)
}

// differs describes the first difference of two outcomes, "" for none. What lies below
// the call's stack pointer is dead: the detour buffer builds its frame there.
func (b *bench) differs(have, want *outcome) string {
	if have.stopped != want.stopped || have.console != want.console {
		return fmt.Sprintf("ended %q with %q on the console, not %q with %q", have.stopped, have.console, want.stopped, want.console)
	}
	h, w := have.regs, want.regs
	if want.stopped != "<nil>" {
		h.IP, w.IP = 0, 0
	}
	if h != w {
		return fmt.Sprintf("registers %+v, not %+v", h, w)
	}
	return memoryDiffers(have.pages, want.pages, b.Machine.Tasks()[0].Stack())
}

func memoryDiffers(have, want []page, dead x86.Range) string {
	content := map[x86.Addr][2][]byte{}
	for _, p := range have {
		content[p.at] = [2][]byte{p.content, nil}
	}
	for _, p := range want {
		content[p.at] = [2][]byte{content[p.at][0], p.content}
	}
	for at, c := range content {
		if !dead.Contains(at) && !bytes.Equal(c[0], c[1]) {
			return fmt.Sprintf("memory at %v", at)
		}
	}
	return ""
}

// late delays a call by the clock, to see whether it depends on it.
func (b *bench) late(at x86.Addr, args []uint64) outcome {
	_, err := b.Machine.Call("spin", 100)
	require.NoError(b.t, err)
	return b.run(at, args)
}
