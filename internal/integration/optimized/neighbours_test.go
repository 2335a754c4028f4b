package optimized

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/errno"
	"kprobelab/internal/integration/oracle"
	"kprobelab/kprobes"
	"kprobelab/kprobes/slot"
	"kprobelab/x86"
)

var update = flag.Bool("update", false, "write testdata anew from the measured transcripts")

// target is the function that the test module probed on the real kernels: move,
// add, xor, lea, move, ret, then padding.
var target = []byte{
	0x48, 0x89, 0xf8, 0x48, 0x83, 0xc0, 0x01, 0x48, 0x31, 0xc9, 0x48, 0x8d, 0x50, 0x08, 0x48, 0x89, 0xd0, 0xc3,
	0xcc, 0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00,
}

// host is the guest's function that target is written over.
const host = "form_len_15"

// neighbours is the test module rewritten in Go: the same steps, the same output.
type neighbours struct {
	t     *testing.T
	l     *kprobelab.Lab
	k     *kprobes.Kprobes
	tgt   x86.Addr
	boost bool
	lines []string

	hits, posts int
}

// Probes in each other's regions behave as on three real kernels.
func TestNeighbours(t *testing.T) {
	for _, kernel := range oracle.Kernels {
		t.Run(kernel, func(t *testing.T) {
			want, err := os.ReadFile(golden(kernel))
			require.NoError(t, err)
			n := newNeighbours(t, kernel)
			n.play()
			have := masked(strings.Join(n.lines, "\n") + "\n")
			require.Equal(t, string(want), have)
		})
	}
}

// testdata holds the kernels' output, without the parts that depend on their build.
func TestNeighboursAsMeasured(t *testing.T) {
	for folder, kernel := range oracle.Kernels {
		t.Run(kernel, func(t *testing.T) {
			b, err := os.ReadFile(oracle.File(t, folder, "transcripts", "neighbours.txt"))
			require.NoError(t, err)
			_, lines, ok := strings.Cut(string(b), "tgt text at ")
			require.True(t, ok)
			_, lines, _ = strings.Cut(lines, "\n")
			measured := masked(lines)
			if *update {
				require.NoError(t, os.WriteFile(golden(kernel), []byte(measured), 0o600))
			}
			want, err := os.ReadFile(golden(kernel))
			require.NoError(t, err)
			require.Equal(t, measured, string(want))
		})
	}
}

func golden(kernel string) string { return filepath.Join("testdata", kernel+"_neighbours.txt") }

var displacement = regexp.MustCompile(`\be9( [0-9a-f]{2}){4}`)

// masked takes the places of detour buffers out.
func masked(text string) string { return displacement.ReplaceAllString(text, "e9 .. .. .. ..") }

func newNeighbours(t *testing.T, kernel string) *neighbours {
	l := guest(t, kernel, kprobelab.Options{CPUs: 2})
	sym := l.Image.Lookup(host)[0]
	code := append([]byte(nil), target...)
	for len(code) < int(sym.Size) {
		code = append(code, 0x90)
	}
	require.Len(t, code, int(sym.Size), "the host function is large enough")
	require.NoError(t, l.Machine.PokeText(sym.Addr, code))
	return &neighbours{t: t, l: l, k: l.Kprobes, tgt: sym.Addr, boost: kernel != "6.1"}
}

func (n *neighbours) print(format string, args ...any) {
	n.lines = append(n.lines, fmt.Sprintf(format, args...))
}

// dump is 20 bytes of text and how the address is probed.
func (n *neighbours) dump(what string, off int64) {
	var b [20]byte
	require.NoError(n.t, n.l.Machine.ReadMem(n.tgt.Add(off), b[:]))
	n.print("%s bytes % x [%s]", what, b, n.mode(off, b[0]))
}

func (n *neighbours) mode(off int64, first byte) string {
	p := n.k.Find(n.tgt.Add(off))
	if p == nil {
		return "none"
	}
	emulated, boosted := 0, 0
	if s, ok := p.Slot(); ok {
		if s.Emulation.Kind != slot.EmulateNone {
			emulated = 1
		}
		if s.Boosted {
			boosted = 1
		}
	}
	text := fmt.Sprintf("flags=%#x byte0=%02x emul=%d", uint32(p.Flags), first, emulated)
	if n.boost {
		text += fmt.Sprintf(" boost=%d", boosted)
	}
	return text
}

func (n *neighbours) probe(off int64, pre, post bool) *kprobes.Kprobe {
	p := &kprobes.Kprobe{Addr: n.tgt.Add(off)}
	if pre {
		p.PreHandler = func(*kprobes.Kprobe, *x86.PtRegs) int { n.hits++; return 0 }
	}
	if post {
		p.PostHandler = func(*kprobes.Kprobe, *x86.PtRegs, uint64) { n.posts++ }
	}
	return p
}

func (n *neighbours) register(p *kprobes.Kprobe) int {
	err := n.k.RegisterKprobe(p)
	if err == nil {
		return 0
	}
	return -int(errno.Of(err))
}

func (n *neighbours) settle() { require.NoError(n.t, n.l.Settle()) }

func (n *neighbours) unregister(p *kprobes.Kprobe) {
	n.k.UnregisterKprobe(p)
	n.settle()
}

func (n *neighbours) call() {
	n.hits, n.posts = 0, 0
	ax, err := n.l.Machine.CallAddr(n.tgt, 1)
	require.NoError(n.t, err)
	require.EqualValues(n.t, 10, ax)
}

func (n *neighbours) play() {
	n.dump("clean", 0)
	a := n.probe(0, true, false)
	e := n.register(a)
	n.settle()
	n.print("reg +0 -> %d", e)
	n.dump("after +0", 0)
	n.inside()
	n.postHandlers()
	n.unregister(a)
	n.dump("clean again", 0)
	n.disabledFirst()
	n.disabledTwin()
	n.dump("clean", 0)
}

// inside puts probes into the region, and right after the region, of the one at +0.
func (n *neighbours) inside() {
	b := n.probe(3, true, false)
	e := n.register(b)
	n.settle()
	n.print("reg +3 (inside the jump) -> %d", e)
	n.dump("both +0", 0)
	n.dump("both +3", 3)
	n.unregister(b)
	n.dump("after unreg +3", 0)
	b = n.probe(7, true, false)
	e = n.register(b)
	n.settle()
	n.print("reg +7 (just past copied 7 bytes) -> %d", e)
	n.dump("+0", 0)
	n.dump("+7", 7)
	n.unregister(b)
	n.print("reg +1 (mid insn, inside jump) -> %d", n.register(n.probe(1, false, false)))
	n.print("reg +4 (mid insn) -> %d", n.register(n.probe(4, false, false)))
	n.print("reg +5 (mid insn) -> %d", n.register(n.probe(5, false, false)))
}

func (n *neighbours) postHandlers() {
	b := n.probe(0, false, true)
	e := n.register(b)
	n.settle()
	n.print("reg post_handler at same addr +0 -> %d", e)
	n.dump("+0", 0)
	n.call()
	n.print("hits=%d posthits=%d", n.hits, n.posts)
	n.unregister(b)
	n.dump("after unreg post", 0)
	b = n.probe(3, true, true)
	e = n.register(b)
	n.settle()
	n.print("reg +3 with post_handler -> %d", e)
	n.dump("+0", 0)
	require.NoError(n.t, n.k.DisableKprobe(b))
	n.settle()
	n.print("disable +3: (does +0 re-optimize?)")
	n.dump("+0", 0)
	require.NoError(n.t, n.k.EnableKprobe(b))
	n.settle()
	n.print("enable +3:")
	n.dump("+0", 0)
	n.unregister(b)
	n.dump("after unreg +3", 0)
}

func (n *neighbours) disabledFirst() {
	b := n.probe(3, true, false)
	b.Flags = kprobes.FlagDisabled
	e := n.register(b)
	n.settle()
	n.print("reg +3 DISABLED first -> %d flags=%#x", e, uint32(b.Flags))
	n.dump("+3", 3)
	a := n.probe(0, true, false)
	e = n.register(a)
	n.settle()
	n.print("then reg +0 -> %d", e)
	n.dump("+0", 0)
	e = 0
	if n.k.EnableKprobe(b) != nil {
		e = -1
	}
	n.settle()
	n.print("enable +3 -> %d", e)
	n.dump("+0", 0)
	n.k.UnregisterKprobe(b)
	n.unregister(a)
}

func (n *neighbours) disabledTwin() {
	a, b := n.probe(0, true, false), n.probe(0, true, false)
	n.register(a)
	b.Flags = kprobes.FlagDisabled
	e := n.register(b)
	n.settle()
	n.print("two at +0, second DISABLED -> %d b.flags=%#x", e, uint32(b.Flags))
	n.dump("+0", 0)
	n.call()
	n.print("hits=%d", n.hits)
	require.NoError(n.t, n.k.DisableKprobe(a))
	n.settle()
	n.print("disable a (all disabled)")
	n.dump("+0", 0)
	n.k.UnregisterKprobe(b)
	n.unregister(a)
}
