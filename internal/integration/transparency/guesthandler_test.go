package transparency

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/kprobes"
	"kprobelab/machine"
	"kprobelab/x86"
)

// twins are two machines that make the same calls: one unprobed, one whose probes
// have handlers in guest code. A hit may take a path that an earlier hit prepared
// in memory, so memory is not restored between calls. It has to be the same in
// both at the end.
type twins struct {
	t              *testing.T
	plain, probed  *bench
	pre, post      x86.Addr
	since          [2]*machine.Snapshot
	mark           x86.Addr
	places, calls  int
	hits, crossing uint64
}

func newTwins(t *testing.T, k *kernel) *twins {
	w := &twins{t: t, plain: k.open(t, without), probed: k.open(t, without)}
	for i, b := range []*bench{w.plain, w.probed} {
		t.Cleanup(func() { _ = b.Lab.Close() })
		require.NoError(t, b.clearFirst())
		var err error
		w.pre, err = b.Machine.AllocExec(machine.PageSize, "handlers")
		require.NoError(t, err)
		w.post = w.pre + 16
		// incq 48(%rdi); xor %eax,%eax; ret, and as a post handler
		count := []byte{0x48, 0xff, 0x47, kprobes.RecordOwn, 0x31, 0xc0, 0xc3}
		require.NoError(t, b.Machine.PokeText(w.pre, count))
		require.NoError(t, b.Machine.PokeText(w.post, count))
		w.mark, err = b.Machine.Alloc(machine.PageSize)
		require.NoError(t, err)
		w.since[i], err = b.Machine.Snapshot()
		require.NoError(t, err)
	}
	return w
}

// call makes a call on both, and compares the results.
func (w *twins) call(f *function, args []any, where string) {
	var out [2]outcome
	for i, b := range []*bench{w.plain, w.probed} {
		_, err := b.Machine.CallAddr(b.clear)
		require.NoError(w.t, err)
		require.NoError(w.t, b.place(args))
		_, callErr := b.Machine.CallAddr(f.addr, b.words...)
		out[i] = outcome{regs: b.Machine.Regs(), stopped: stopOf(callErr), console: string(b.Machine.Console())}
		if callErr != nil {
			out[i].regs.Flags &^= arithmetic
		}
	}
	w.calls++
	require.Empty(w.t, out[1].difference(&out[0], x86.Range{}), "%s, called with %v", where, args)
	require.NoError(w.t, w.probed.Kprobes.ClearErr(), where)
}

// memory compares all that the calls wrote, except the stack and the memory of
// the kprobes subsystem.
func (w *twins) memory(f *function) {
	sp := x86.Addr(w.plain.Machine.Regs().SP)
	own := []x86.Range{
		{Start: sp - machine.ThreadSize, End: sp},
		{Start: w.mark, End: w.mark + 16<<20},
		{Start: x86.Addr(w.plain.Image.Profile().ModuleBase), End: ^x86.Addr(0)},
		{Start: w.probed.Machine.GSBase(0) + w.probed.Machine.LocalOffset(), End: w.probed.Machine.GSBase(0) + w.probed.Machine.LocalOffset() + machine.PageSize},
	}
	var out [2]outcome
	for i, b := range []*bench{w.plain, w.probed} {
		require.NoError(w.t, out[i].collect(b.Machine, w.since[i]))
		kept := out[i].pages[:0]
		for _, p := range out[i].pages {
			mine := false
			for _, r := range own {
				mine = mine || r.Contains(p.at)
			}
			if !mine {
				kept = append(kept, p)
			}
		}
		out[i].pages = kept
	}
	require.Empty(w.t, memoryDifference(out[1].pages, out[0].pages, x86.Range{}), f.name)
}

// Handlers in guest code leave the program as it is, by every way of a hit.
func TestGuestHandlersAreTransparent(t *testing.T) {
	for _, k := range kernels {
		if k.again {
			continue
		}
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			w := newTwins(t, &k)
			every := 5
			if soaking() {
				every = 1
			} else if testing.Short() {
				every = 17
			}
			for n, f := range w.plain.all(t) {
				if f.leftOut() == "" && n%every == 0 {
					w.function(&f)
				}
			}
			t.Logf("%d places, %d calls, %d hits, %d calls into Go", w.places, w.calls, w.hits, w.crossing)
			require.Positive(t, w.hits)
		})
	}
}

func (w *twins) function(f *function) {
	b := w.probed
	for n, at := range b.boundaries(f.addr, f.size, &b.Image.Profile().Decoder) {
		p := &kprobes.Kprobe{Addr: at, PreCode: w.pre}
		if n%2 == 1 {
			p.PostCode = w.post
		}
		if b.Kprobes.RegisterKprobe(p) != nil {
			continue
		}
		w.places++
		before := b.Machine.Crossings()
		for i := range 3 {
			w.call(f, f.gen(newGen(uint64(i))), fmt.Sprintf("%s+%#x", f.name, at.Sub(f.addr)))
		}
		w.crossing += b.Machine.Crossings() - before
		var own [8]byte
		require.NoError(w.t, b.Machine.ReadMem(p.Record+kprobes.RecordOwn, own[:]))
		w.hits += uint64(own[0]) | uint64(own[1])<<8 | uint64(own[2])<<16
		b.Kprobes.UnregisterKprobe(p)
	}
	w.memory(f)
}
