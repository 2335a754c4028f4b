package optimized

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/kimage"
	"kprobelab/kprobes"
	"kprobelab/optimizer"
	"kprobelab/x86"
)

// tally counts the work that was done.
type tally struct{ functions, places, runs, hits, timed int }

// At every optimizable boundary of the guest kernel: the same results and
// memory as unprobed, while the probe waits in the queue, while it is a jump,
// while it waits to be undone, and after; the handler sees the same registers by
// int3 and by jump; and the text is restored to the byte.
func TestOptimizedIsTransparent(t *testing.T) {
	// Of so many places one is tried.
	for kernel, stride := range map[string]int{"4.4": 1, "5.10": 31, "6.1": 7, "6.12": 31} {
		switch {
		case os.Getenv("KPROBELAB_SOAK") != "":
			stride = 1
		case testing.Short():
			stride *= 16
		}
		t.Run(kernel, func(t *testing.T) {
			b := newBench(t, kernel)
			b.stride = stride
			var n tally
			for _, s := range b.Image.Symbols() {
				if b.Image.InText(s.Addr) && s.Size > 0 && s.Module == "" {
					b.function(s, &n)
				}
			}
			t.Logf("%d functions, %d optimizable places, %d runs, %d hits; %d calls depend on the clock and are left out",
				n.functions, n.places, n.runs, n.hits, n.timed)
			require.Positive(t, n.hits)
			require.NoError(t, b.Kprobes.Err())
		})
	}
}

// base is a call unprobed.
type base struct {
	args []uint64
	outcome
}

func (b *bench) function(s kimage.Symbol, n *tally) {
	var places []x86.Addr
	switch s.Name {
	case "fault_stack_overflow": // the detour buffer's frame is on the stack too: it ends earlier
		return
	case "form_mov_to_dr7": // the machine refuses the instruction
		return
	}
	// 6.12 relies on its compiler to make no jump tables; the guest kernel has
	// one, and jumps from it into the middle of a region.
	c := *b.Image.Profile()
	c.Optimize.IndirectJumps = true
	scan := optimizer.NewScanner(b.Image, &c)
	for at := s.Addr; at < s.Addr.Add(int64(s.Size)); at++ {
		if scan.Decide(at).OK && b.accepted(at) {
			if b.met++; b.met%b.stride == 0 {
				places = append(places, at)
			}
		}
	}
	if len(places) == 0 {
		return
	}
	calls := b.unprobed(s.Addr, n)
	text := make([]byte, s.Size)
	require.NoError(b.t, b.Machine.ReadMem(s.Addr, text))
	n.functions++
	for _, at := range places {
		n.places++
		b.place(s, at, calls, n)
	}
	now := make([]byte, s.Size)
	require.NoError(b.t, b.Machine.ReadMem(s.Addr, now))
	require.True(b.t, slices.Equal(text, now), "%s: the text is not restored", s.Name)
}

// accepted: a probe may be there at all.
func (b *bench) accepted(at x86.Addr) bool {
	p := &kprobes.Kprobe{Addr: at, Flags: kprobes.FlagDisabled}
	if b.Kprobes.RegisterKprobe(p) != nil {
		return false
	}
	b.Kprobes.UnregisterKprobe(p)
	return true
}

// longest is the most instructions of a call.
const longest = 2000

func (b *bench) unprobed(at x86.Addr, n *tally) (calls []base) {
	count := 2
	if os.Getenv("KPROBELAB_SOAK") != "" {
		count = 3
	}
	for seed := uint64(0); len(calls) < count && seed < 20; seed++ {
		c := base{args: b.args(rand.New(rand.NewPCG(seed, uint64(at))))}
		begun := b.Machine.Instructions()
		c.outcome = b.run(at, c.args)
		if b.Machine.Instructions()-begun > longest {
			continue // and with a probe a hundred times as long
		}
		if late := b.late(at, c.args); b.differs(&late, &c.outcome) != "" {
			n.timed++ // a probe takes time
			continue
		}
		calls = append(calls, c)
	}
	return calls
}

// place takes one probe through its life, with all calls at each stage.
func (b *bench) place(s kimage.Symbol, at x86.Addr, calls []base, n *tally) {
	var seen []x86.PtRegs
	p := &kprobes.Kprobe{Addr: at, PreHandler: func(_ *kprobes.Kprobe, regs *x86.PtRegs) int {
		r := *regs
		if !b.Image.Profile().Optimize.SSWord {
			r.SS = 0 // lies beyond the frame
		}
		seen = append(seen, r)
		return 0
	}}
	all := func(stage string) []x86.PtRegs {
		seen = nil
		for i := range calls {
			c := &calls[i]
			have := b.run(s.Addr, c.args)
			n.runs++
			if d := b.differs(&have, &c.outcome); d != "" {
				b.t.Fatalf("%s+%#x %s, called with %#x: %s", s.Name, at.Sub(s.Addr), stage, c.args, d)
			}
		}
		n.hits += len(seen)
		return seen
	}
	name := fmt.Sprintf("%s+%#x", s.Name, at.Sub(s.Addr))
	require.NoError(b.t, b.Kprobes.RegisterKprobe(p), name)
	require.Equal(b.t, "optimizing", b.Kprobes.Queue(at), name)
	byInt3 := all("waiting")
	require.NoError(b.t, b.Settle())
	require.Equal(b.t, byte(0xe9), b.first(at), name)
	byJump := all("optimized")
	require.Equal(b.t, len(byInt3), len(byJump), name)
	for i := range byInt3 {
		// The trap's own frame has interrupts as the program had them.
		require.Equal(b.t, byInt3[i], byJump[i], "%s: hit %d", name, i)
	}
	b.Kprobes.UnregisterKprobe(p)
	require.Equal(b.t, byte(0xe9), b.first(at), name)
	require.Empty(b.t, all("waiting to be undone"), name)
	require.NoError(b.t, b.Settle())
	require.Nil(b.t, b.Kprobes.Find(at), name)
	require.Empty(b.t, all("undone"), name)
	require.Zero(b.t, p.Nmissed, name)
}

func (b *bench) first(at x86.Addr) byte {
	var c [1]byte
	require.NoError(b.t, b.Machine.ReadMem(at, c[:]))
	return c[0]
}
