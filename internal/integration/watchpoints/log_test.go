package watchpoints

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/engine"
	"kprobelab/internal/tinyguest"
	"kprobelab/machine"
	"kprobelab/x86"
)

// hit is a reported or an expected hit.
type hit struct {
	ip       uint64
	watch    int32
	kinds    uint32
	old, new uint64
}

// expected returns the hits of a log, byte by byte.
func (m *model) expected(list []machine.Watch) (hits []hit) {
	for i := range m.steps {
		s := &m.steps[i]
		for n, w := range list {
			if w.Kinds&machine.WatchExec != 0 && s.begins && s.ip == uint64(w.Addr) {
				v := m.value(s.before, w)
				hits = append(hits, hit{s.ip, int32(n), machine.WatchExec, v, v})
			}
		}
		for n, w := range list {
			kinds := uint32(0)
			for _, a := range s.log {
				for b := range a.n {
					for k := range int(w.Len) {
						if a.at+uint64(b) == uint64(w.Addr)+uint64(k) {
							kinds |= a.kind & w.Kinds
						}
					}
				}
			}
			if kinds != 0 {
				hits = append(hits, hit{s.next, int32(n), kinds, m.value(s.before, w), m.value(s.after, w)})
			}
		}
	}
	return hits
}

// value returns the value of a watch's bytes; 0 for text, which the model does not know.
func (m *model) value(mem []byte, w machine.Watch) uint64 {
	var b [8]byte
	was := m.mem
	m.mem = mem
	if w.Kinds&machine.WatchExec == 0 {
		copy(b[:w.Len], m.bytes(uint64(w.Addr), int(w.Len)))
	}
	m.mem = was
	return binary.LittleEndian.Uint64(b[:])
}

// bench is a machine with room for a program, and the model's memory in it.
type bench struct {
	m               *machine.Machine
	at, area, stack uint64
	top             uint64 // rsp as the program begins
	hits            int    // the number of reported hits
}

const programSize = 2048

func newBench(t testing.TB, e *engine.Engine, every bool) *bench {
	img := &tinyguest.Image{}
	sp := img.Add("sp", 0x48, 0x89, 0xe0, 0xc3) // mov %rsp,%rax; ret
	at := img.Add("program", make([]byte, programSize)...)
	m, err := e.New(img, &machine.Options{EveryInstruction: every})
	require.NoError(t, err)
	t.Cleanup(func() { _ = m.Close() })
	top, err := m.CallAddr(sp)
	require.NoError(t, err)
	return &bench{
		m: m, at: uint64(at), top: top, stack: top + 8 - stackSize,
		area: uint64(tinyguest.DataBase) + 2*machine.PageSize - middle,
	}
}

// run runs one random program, and compares.
func (b *bench) run(seed uint64) error {
	g := &gen{rand.New(rand.NewPCG(seed, 0)), b.area}
	list := g.program()
	save := plain(func(m *model) { m.push(m.r[12]) }, 0x41, 0x54) // push %r12
	list = append([]any{save}, list...)
	list = append(list, plain(func(m *model) { m.r[12] = m.pop() }, 0x41, 0x5c))
	code := append(assemble(b.at, list), 0xc3)
	if len(code) > programSize {
		return nil
	}
	mod := &model{mem: make([]byte, areaSize+stackSize), area: b.area, stack: b.stack}
	for i := range mod.mem[:areaSize] {
		mod.mem[i] = byte(g.Uint32())
	}
	if err := b.m.WriteMem(x86.Addr(b.area), mod.mem[:areaSize]); err != nil {
		return err
	}
	if err := b.m.ReadMem(x86.Addr(b.stack), mod.mem[areaSize:]); err != nil {
		return err
	}
	if err := b.m.PokeText(x86.Addr(b.at), code); err != nil {
		return err
	}
	mod.r[r8], mod.r[r9], mod.r[rsp] = b.area+middle, b.area+middle, b.top
	end := mod.run(b.at, list)
	mod.begin(end, true)
	back := mod.pop()
	mod.end(back)

	watches := g.watches(b.stack, b.at, len(code))
	want := mod.expected(watches)
	var got []hit
	err := b.m.Watch(watches, func(hits []machine.WatchHit, regs *x86.PtRegs) {
		for _, h := range hits {
			one := hit{regs.IP, h.Watch, h.Kinds, h.Old, h.New}
			if h.Kinds&machine.WatchExec != 0 {
				one.old, one.new = 0, 0
			}
			got = append(got, one)
		}
	})
	if err != nil {
		return err
	}
	if _, err := b.m.CallAddr(x86.Addr(b.at), 0, 0, 0, 0, b.area+middle, b.area+middle); err != nil {
		return err
	}
	b.hits += len(got)
	return compare(want, got, watches)
}

// compare returns the first difference of two lists of hits; hits of one moment are in any order.
func compare(want, got []hit, watches []machine.Watch) error {
	for i := 0; i < len(want) || i < len(got); i++ {
		if i < len(want) && i < len(got) && want[i] == got[i] {
			continue
		}
		if i+1 < len(want) && i+1 < len(got) {
			for j := i + 1; j < len(want) && j < len(got) && want[j].ip == want[i].ip; j++ {
				if want[j] == got[i] {
					want[i], want[j] = want[j], want[i]
					break
				}
			}
			if want[i] == got[i] {
				continue
			}
		}
		return fmt.Errorf("hit %d of %d: want %x, got %x of %x", i, len(want), at(want, i), at(got, i), watches)
	}
	return nil
}

func at(list []hit, i int) any {
	if i < len(list) {
		return list[i]
	}
	return "none"
}

// runs returns the number of programs of each engine: $RUNS, or few.
func runs(t *testing.T) uint64 {
	if s := os.Getenv("RUNS"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		require.NoError(t, err)
		return n
	}
	if testing.Short() {
		return 300
	}
	return 3000
}

// Random code with random watches: each access of the log is reported, and no other.
func TestNoneMissedNoneInvented(t *testing.T) {
	for _, name := range engine.Names() {
		e, err := engine.Named(name)
		require.NoError(t, err)
		for _, every := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s_every_%v", name, every), func(t *testing.T) {
				b := newBench(t, e, every)
				n := runs(t)
				if every {
					n /= 10
				}
				for seed := range n {
					require.NoError(t, b.run(seed), "seed %d", seed)
				}
				t.Logf("%d programs, %d hits", n, b.hits)
				require.Positive(t, b.hits)
			})
		}
	}
}
