//go:build unicorn && cgo && linux && amd64

package engines

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/emu"
	"kprobelab/interp"
	"kprobelab/machine"
	"kprobelab/x86"
)

// runs returns the number of random runs to compare: $KPROBELAB_ENGINE_RUNS.
func runs(t testing.TB, def int) int {
	if s := os.Getenv("KPROBELAB_ENGINE_RUNS"); s != "" {
		n, err := strconv.Atoi(s)
		require.NoError(t, err)
		return n
	}
	return def
}

type pair struct{ u, g *runner }

func newPair(t testing.TB) *pair {
	opt := &machine.Options{HeapSize: 1 << 20, Budget: 3000, CPUModel: model()}
	img := &image{code: codePage()}
	u, err := emu.New(img, opt)
	require.NoError(t, err)
	g, err := interp.New(img, opt)
	require.NoError(t, err)
	p := &pair{&runner{m: u}, &runner{m: g}}
	u.SetTraps(p.u)
	g.SetTraps(p.g)
	return p
}

func model() string {
	if m := os.Getenv("KPROBELAB_ENGINE_CPU"); m != "" {
		return m
	}
	return "icelake-server"
}

func (p *pair) close() {
	p.u.m.Close()
	p.g.m.Close()
}

// difference lists the differences of two outputs, "" if they are equal.
func difference(u, g *output) string {
	var list []string
	add := func(name string, a, b any) { list = append(list, fmt.Sprintf("%s %v, %v", name, a, b)) }
	if u.event != g.event {
		add("event", u.event, g.event)
	}
	if u.err != g.err {
		add("err", u.err, g.err)
	}
	for n := range 16 {
		if a, b := *u.regs.Reg(n), *g.regs.Reg(n); a != b {
			add(fmt.Sprintf("r%d", n), x86.Addr(a), x86.Addr(b))
		}
	}
	if u.regs.IP != g.regs.IP {
		add("ip", x86.Addr(u.regs.IP), x86.Addr(g.regs.IP))
	}
	if a, b := u.regs.Flags, g.regs.Flags; a != b {
		add("flags", x86.Addr(a), x86.Addr(b))
	}
	if !bytes.Equal(u.data, g.data) {
		for i := range u.data {
			if u.data[i] != g.data[i] {
				add(fmt.Sprintf("data+%#x", i), u.data[i], g.data[i])
				break
			}
		}
	}
	if u.instrs != g.instrs {
		add("instructions", u.instrs, g.instrs)
	}
	if u.clock-u.instrs != g.clock-g.instrs {
		add("clock", u.clock, g.clock)
	}
	return strings.Join(list, "; ")
}

// Random code from random states ends alike on both engines.
func TestRandomRunsAgree(t *testing.T) {
	seed := uint64(1)
	if s := os.Getenv("KPROBELAB_ENGINE_SEED"); s != "" {
		var err error
		seed, err = strconv.ParseUint(s, 0, 64)
		require.NoError(t, err)
	}
	r := rand.New(rand.NewPCG(seed, 0))
	p := newPair(t)
	defer func() { p.close() }()
	differ, broken := 0, 0
	var data []byte
	for n := range runs(t, 20_000) {
		if n%50 == 0 {
			data = dataOf(r)
		}
		in := newInput(r, data)
		u, g := p.u.run(t, in), p.g.run(t, in)
		again := explained(in, &u, &g)
		if strings.Contains(u.err, machine.ErrEngine.Error()) {
			broken++ // Unicorn has aborted
			again = true
		} else if d := difference(&u, &g); d != "" && !again {
			t.Errorf("seed %d, run %d: %v (% x): emu, interp: %s", seed, n, names(in.code), in.code, d)
			differ++
			again = true
		}
		if again {
			p.close()
			p = newPair(t)
		}
		require.Less(t, differ, 20, "enough")
	}
	t.Logf("Unicorn aborted in %d runs", broken)
}

// Code in which a difference was found once ends alike, wherever its addresses lead.
func TestFoundOnce(t *testing.T) {
	for name, code := range map[string]string{
		"sti, pause, a fault":    "fb f390 66f38130ae00",
		"mov %ss, pause":         "8cd0 8ed0 f390 66f38130ae00",
		"sti, pause, pause":      "fb f390 f390 66f38130ae00",
		"cpuid of a hypervisor":  "b800000040 b909000000 0fa2",
		"cpuid past hypervisors": "b802000040 b909000000 0fa2",
		"outs to the clock":      "bae5000000 90 6e 90",
		"rep outs to the task":   "bae6000000 b903000000 f36f 90",
		"outs to the CPU":        "bae7000000 6f",
		"outs to the console":    "bae4000000 6e",
	} {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 0))
			p := newPair(t)
			defer p.close()
			for range 200 {
				in := newInput(r, dataOf(r))
				in.code = unhex(t, code)
				u, g := p.u.run(t, in), p.g.run(t, in)
				require.Empty(t, difference(&u, &g), "%+v", in.regs)
			}
		})
	}
}

// After fxrstor, fxsave stores the same area on both engines, and the vector registers are the same.
func TestFloatAreasAgree(t *testing.T) {
	const from, to, mxcsr = 2 * pageSize, 2*pageSize + 0x200, 24
	r := rand.New(rand.NewPCG(1, 0))
	p := newPair(t)
	defer p.close()
	for n := range 200 {
		in := newInput(r, dataOf(r))
		in.data[from+mxcsr+2], in.data[from+mxcsr+3] = 0, 0 // of these, Unicorn takes bits that do not exist
		in.data[from] |= 0x40                               // nor that this bit of the control word is always set
		in.regs.DI, in.regs.SI = uint64(dataBase)+from, uint64(dataBase)+to
		in.code = unhex(t, "48 0fae0f 48 0fae06 90") // fxrstor64 (%rdi); fxsave64 (%rsi)
		if n%8 == 0 {
			in.regs.SI++ // it has to be aligned
		}
		u, g := p.u.run(t, in), p.g.run(t, in)
		require.Empty(t, difference(&u, &g))
		if n%8 != 0 {
			const vectors = 160
			require.Equal(t, in.data[from+vectors:from+0x1a0], g.data[to+vectors:to+0x1a0])
		}
	}
}
