package running

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/decoder"
	"kprobelab/internal/integration/dumps"
	"kprobelab/kimage"
	"kprobelab/kprobes"
	"kprobelab/machine"
	"kprobelab/x86"
)

// work is a program whose way through the kernel is probed: files, directories,
// pipes, processes, memory, the network, time.
var work = []string{"/bin/busybox", "sh", "-c", "" +
	"mkdir /tmp/d; echo hello > /tmp/d/a; ln -s a /tmp/d/b; cat /tmp/d/b | tr a-z A-Z; ls -l /tmp/d | wc -l; " +
	"mv /tmp/d/a /tmp/d/c; rm -r /tmp/d; ping -c 1 -q 127.0.0.1 > /dev/null; sleep 0.01; cat /proc/self/comm; exit 7"}

// way is one way to plant the probes of a function.
type way struct {
	name string
	// timed: the run takes another time, however hits are counted.
	timed bool
	// plant puts probes at the places, and returns their number and a function that removes them.
	plant func(t *testing.T, k *kernel, f kimage.Symbol, at []x86.Addr) (int, func())
}

// frame is the room below a stack pointer that a return trampoline and ftrace's push
// pt_regs to (arch/x86/kernel/rethook.c, ftrace_64.S), with padding and return addresses.
const frame = 256

// pushed notes that a trampoline has pushed registers below the stack pointer.
func (k *kernel) pushed(regs *x86.PtRegs) {
	const word = 8
	for a := x86.Addr(regs.SP) - frame; a < x86.Addr(regs.SP); a += word { // it may be on two pages
		at, err := k.Machine.DirectMapped(a)
		require.NoError(k.t, err)
		k.frames[at] = true
	}
}

func (k *kernel) ways() []way {
	pre := func(p *kprobes.Kprobe, regs *x86.PtRegs) int {
		if _, ok := k.Image.SiteAt(kimage.SiteFtrace, p.Addr); ok {
			k.pushed(regs)
		}
		return 0
	}
	post := func(*kprobes.Kprobe, *x86.PtRegs, uint64) {}
	each := func(k *kernel, at []x86.Addr, probe func() *kprobes.Kprobe) (int, func()) {
		var list []*kprobes.Kprobe
		for _, a := range at {
			p := probe()
			p.Addr = a
			if k.Kprobes.RegisterKprobe(p) == nil {
				list = append(list, p)
			}
		}
		return len(list), func() {
			for _, p := range list {
				k.Kprobes.UnregisterKprobe(p)
			}
		}
	}
	return []way{
		{"int3", false, func(t *testing.T, k *kernel, _ kimage.Symbol, at []x86.Addr) (int, func()) {
			return each(k, at, func() *kprobes.Kprobe { return &kprobes.Kprobe{PreHandler: pre} })
		}},
		{"stepped", false, func(t *testing.T, k *kernel, _ kimage.Symbol, at []x86.Addr) (int, func()) {
			return each(k, at, func() *kprobes.Kprobe { return &kprobes.Kprobe{PreHandler: pre, PostHandler: post} })
		}},
		{"optimized", true, func(t *testing.T, k *kernel, _ kimage.Symbol, at []x86.Addr) (int, func()) {
			n, undo := each(k, at, func() *kprobes.Kprobe { return &kprobes.Kprobe{PreHandler: pre} })
			require.NoError(t, k.Settle())
			return n, undo
		}},
		{"two at a place", false, func(t *testing.T, k *kernel, _ kimage.Symbol, at []x86.Addr) (int, func()) {
			n, undo := each(k, at, func() *kprobes.Kprobe { return &kprobes.Kprobe{PreHandler: pre} })
			m, again := each(k, at, func() *kprobes.Kprobe { return &kprobes.Kprobe{PreHandler: pre, PostHandler: post} })
			return n + m, func() { again(); undo() }
		}},
		{"return", false, func(t *testing.T, k *kernel, f kimage.Symbol, _ []x86.Addr) (int, func()) {
			p := &kprobes.Kretprobe{
				KP: kprobes.Kprobe{Addr: f.Addr}, MaxActive: 64,
				Handler: func(_ *kprobes.Instance, regs *x86.PtRegs) int {
					k.pushed(regs)
					return 0
				},
			}
			if k.Kprobes.RegisterKretprobe(p) != nil {
				return 0, func() {}
			}
			return 1, func() { k.Kprobes.UnregisterKretprobe(p) }
		}},
	}
}

// reached returns functions that the program runs through, drawn from the kernel's functions by
// seed.
func (k *kernel) reached(seed uint64, want int) []kimage.Symbol {
	var all []kimage.Symbol
	for _, s := range k.Image.Symbols() {
		if s.Type == 't' || s.Type == 'T' {
			all = append(all, s)
		}
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	var found []kimage.Symbol
	const group = 1500
	for len(all) > 0 && len(found) < want {
		n := min(group, len(all))
		hit := map[x86.Addr]bool{}
		var list []*kprobes.Kprobe
		k.restore()
		for _, s := range all[:n] {
			p := &kprobes.Kprobe{Addr: s.Addr, PreHandler: func(*kprobes.Kprobe, *x86.PtRegs) int { hit[s.Addr] = true; return 0 }}
			if s.Size > 0 && k.Kprobes.RegisterKprobe(p) == nil {
				list = append(list, p)
			}
		}
		k.program(work...)
		for _, p := range list {
			k.Kprobes.UnregisterKprobe(p)
		}
		for _, s := range all[:n] {
			if hit[s.Addr] && len(found) < want {
				found = append(found, s)
			}
		}
		all = all[n:]
	}
	return found
}

// boundaries returns the addresses of the instructions of a function.
func (k *kernel) boundaries(f kimage.Symbol) (list []x86.Addr) {
	code := make([]byte, f.Size)
	require.NoError(k.t, k.Machine.ReadMem(f.Addr, code))
	for at := 0; at < len(code); {
		i, err := decoder.Decode(code[at:])
		if err != nil || i.Length == 0 {
			break
		}
		list = append(list, f.Addr.Add(int64(at)))
		at += i.Length
	}
	return list
}

// TestProbesChangeNothing probes functions that a program reaches, each at every boundary that is
// accepted, in five ways: its results and its output are the same. If it takes the same virtual
// time and each interrupt comes at the same instruction, all memory is the same, too, except for
// the frames that trampolines (of returns, and ftrace's at entries) push below the stack pointer.
// (An interrupt that comes while an instruction is stepped waits for one more: the kernel's random
// numbers depend on its ip, and much follows from them.) $KPROBELAB_FUNCTIONS is the number of
// functions, 2 by default, 1 with -short.
func TestProbesChangeNothing(t *testing.T) {
	few := "2"
	if testing.Short() {
		few = "1"
	}
	want, err := strconv.Atoi(cmp.Or(os.Getenv("KPROBELAB_FUNCTIONS"), few))
	require.NoError(t, err)
	for _, name := range dumps.Kernels {
		t.Run(name, func(t *testing.T) {
			k := bootWith(t, name, &kprobelab.Options{Optimize: true, Budget: budget, EveryInstruction: true, FreeHits: true})
			k.restore()
			base := k.program(work...)
			require.Equal(t, 7, base.code, base)
			interrupts, trail := k.Machine.Interrupts()
			require.NotZero(t, interrupts)
			calm := k.written()
			var probes, runs, moved, compared int
			for _, f := range k.reached(1, want) {
				for _, w := range k.ways() {
					// An int3 that waits for its jump goes on in the detour buffer.
					require.NoError(t, k.Kprobes.SetOptimization(w.timed))
					k.restore()
					from := k.Machine.Now()
					n, undo := w.plant(t, k, f, k.boundaries(f))
					if n == 0 {
						continue
					}
					// Freed slots are used again after a grace period, which is the
					// guest's: then the program begins later.
					late := k.Machine.Now() != from
					k.frames = map[x86.Addr]bool{}
					got := k.program(work...)
					undo()
					require.NoError(t, k.Kprobes.ClearErr())
					require.Equal(t, base, got, "%s %s", f.Name, w.name)
					runs, probes = runs+1, probes+n
					if w.timed || late {
						continue
					}
					if m, d := k.Machine.Interrupts(); m != interrupts || d != trail {
						moved++
						continue
					}
					compared++
					list := k.differences(calm)
					for _, d := range list[:min(len(list), 5)] {
						t.Errorf("%s, %s: memory differs on %d pages: %s", f.Name, w.name, len(list), d)
					}
				}
			}
			t.Logf("%d functions, %d probes, %d runs; in %d an interrupt came elsewhere; memory compared after %d; %d pages written", want, probes, runs, moved, compared, len(calm))
			require.NotZero(t, compared)
		})
	}
}

func union(a, b memory) []x86.Addr {
	var list []x86.Addr
	for p := range a {
		list = append(list, p)
	}
	for p := range b {
		if _, both := a[p]; !both {
			list = append(list, p)
		}
	}
	slices.Sort(list)
	return list
}

// differences are the pages that differ.
func (k *kernel) differences(calm memory) (list []string) {
	m := k.written()
	for _, a := range union(calm, m) {
		if bytes.Equal(calm[a], m[a]) {
			continue
		}
		have, want := m[a], calm[a]
		if have == nil || want == nil {
			dumped := k.dumped(a)
			if have == nil {
				have = dumped
			} else {
				want = dumped
			}
		}
		for i := range machine.PageSize {
			at := a.Add(int64(i))
			if have[i] != want[i] && !k.frames[at&^7] {
				list = append(list, fmt.Sprintf("%s+%#x: % x, not % x", a, i, have[i:min(i+16, machine.PageSize)], want[i:min(i+16, machine.PageSize)]))
				break
			}
		}
	}
	return list
}
