package optimized

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"kprobelab"
	"kprobelab/kprobes"
	"kprobelab/profile"
	"kprobelab/x86"
)

// oddProbe is a return probe, or a kprobe whose handler may change ip.
type oddProbe struct {
	rp        kprobes.Kretprobe
	kp        kprobes.Kprobe
	name      string
	returns   bool
	redirects bool
	nests     bool // its handlers call a function that is probed

	free           int // of the model, as all below
	missed, nested uint64
}

type oddModel struct {
	*odd
	sp       int // in words, 0 is the slot of the outermost return
	stack    map[int]x86.Addr
	saved    map[int][2]int
	rbx      uint64
	faults   bool
	probed   bool
	pending  []oddInstance
	want     []string
	changed  bool // a handler or a misplaced instance has changed the program's path
	misplace bool
	seen     map[string]int
}

type oddInstance struct {
	of    *oddProbe
	ret   x86.Addr
	frame int
}

// note describes one run of a handler: its name, the probe, and rbx, the program's progress.
func note(what string, p *oddProbe, rbx uint64) string {
	return fmt.Sprintf("%s %s at %x", what, p.name, rbx)
}

// handler is the common body of the probes' handlers.
func (o *odd) handler(what string, p *oddProbe, regs *x86.PtRegs) {
	o.events = append(o.events, note(what, p, regs.BX))
	if p.nests {
		if ax, err := o.Machine.CallAddr(o.entries[helper], 5); err != nil || ax != 5 {
			o.events = append(o.events, fmt.Sprint("nested call: ", ax, err))
		}
	}
}

// plant registers up to two probes of each function, and two of the helper.
func (o *odd) plant(alt x86.Addr) {
	for _, host := range append([]int{helper}, o.used...) {
		for n := range rapid.IntRange(0, 2).Draw(o.rt, "probes") {
			p := &oddProbe{name: fmt.Sprint(oddHosts[host], n)}
			p.returns = rapid.IntRange(0, 3).Draw(o.rt, "returns") > 0
			p.nests = rapid.IntRange(0, 3).Draw(o.rt, "nests") == 0
			if p.returns {
				p.rp.KP.Addr, p.rp.MaxActive = o.entries[host], rapid.IntRange(1, 4).Draw(o.rt, "maxactive")
				p.rp.EntryHandler = func(_ *kprobes.Instance, r *x86.PtRegs) int { o.handler("enter", p, r); return 0 }
				p.rp.Handler = func(_ *kprobes.Instance, r *x86.PtRegs) int { o.handler("leave", p, r); return 0 }
				require.NoError(o.rt, o.Kprobes.RegisterKretprobe(&p.rp))
			} else {
				p.redirects = rapid.Bool().Draw(o.rt, "redirects")
				p.kp.Addr = o.entries[host]
				p.kp.PreHandler = func(_ *kprobes.Kprobe, r *x86.PtRegs) int {
					o.handler("pre", p, r)
					if !p.redirects {
						return 0
					}
					r.IP = uint64(alt)
					return 1
				}
				require.NoError(o.rt, o.Kprobes.RegisterKprobe(&p.kp))
			}
			o.probes[host] = append(o.probes[host], p)
		}
	}
	if rapid.Bool().Draw(o.rt, "settle") {
		require.NoError(o.rt, o.Settle())
	}
}

func (o *odd) unplant() {
	for _, list := range o.probes {
		for _, p := range list {
			o.Kprobes.UnregisterKretprobe(&p.rp)
			o.Kprobes.UnregisterKprobe(&p.kp)
		}
	}
	require.NoError(o.rt, o.Settle())
}

// nest is the model of a handler's call: the helper's probes are missed.
func (m *oddModel) nest(what string, p *oddProbe) {
	m.want = append(m.want, note(what, p, m.rbx))
	if p.nests {
		for _, h := range m.probes[helper] {
			h.nested++
		}
	}
}

// jumps reports whether the probe is a jump now; OPTIMIZED is set while it waits, too.
func (o *odd) jumps(at x86.Addr) bool {
	var b [1]byte
	require.NoError(o.rt, o.Machine.ReadMem(at, b[:]))
	return b[0] == 0xe9
}

// enter is the model of a hit. The newest probe comes first. A jump ignores a handler's result;
// elsewhere the first result that is not 0 ends the hit.
func (m *oddModel) enter(host int) x86.Addr {
	if !m.probed {
		return 0
	}
	list := m.probes[host]
	for n := len(list) - 1; n >= 0; n-- {
		p := list[n]
		switch {
		case !p.returns:
			m.nest("pre", p)
			if p.redirects && !m.jumps(m.entries[host]) {
				m.changed = true
				return m.text // the last function: where handlers redirect to
			}
		case p.free == 0:
			p.missed++
		default:
			p.free--
			m.nest("enter", p)
			m.pending = append(m.pending, oddInstance{p, m.stack[m.sp], m.sp})
			m.stack[m.sp] = m.Kprobes.Trampoline()
		}
	}
	return 0
}

// leave is the model of the trampoline's handler, which gives the address to go on at.
// From 5.16 on the newest instance with a real address decides, whatever frame it
// is on, and the first on another frame ends the handlers; all up to there are free
// again. 5.10 passes over those on another frame, and keeps them. 5.15 stops there.
func (m *oddModel) leave() x86.Addr {
	check := m.Kprobes.Config().Kret.FrameCheck
	var kept, done []oddInstance
	for n := len(m.pending) - 1; n >= 0; n-- {
		i := m.pending[n]
		if check == profile.FrameBug && i.frame != m.sp-1 {
			return lost
		}
		if check == profile.FramePassedOver && i.frame != m.sp-1 {
			kept, m.misplace = append([]oddInstance{i}, kept...), true
			continue
		}
		done = append(done, i)
		if i.ret == m.Kprobes.Trampoline() {
			continue
		}
		m.pending = append(m.pending[:n:n], kept...)
		for _, d := range done {
			if d.frame != m.sp-1 {
				m.misplace, m.changed = true, true
				break
			}
			m.nest("leave", d.of)
		}
		for _, d := range done {
			d.of.free++
		}
		return i.ret
	}
	return lost
}

// run is the model of one call. It reports whether it could follow to the end.
func (m *oddModel) run(start, end x86.Addr, seed uint64) bool {
	m.sp, m.rbx, m.changed, m.want = 0, seed, false, nil
	m.stack, m.saved = map[int]x86.Addr{0: end}, map[int][2]int{}
	at := start
	for range 2000 {
		switch do := m.ops[at]; {
		case at == end:
			return true
		case at != 0 && at == m.Kprobes.Trampoline():
			at = m.leave()
		case do == nil:
			return false
		default:
			at = do(m)
		}
	}
	return false
}

// A random program of calls, tail calls, longjmps and faults that are fixed up runs with return
// probes, handlers that call the probed functions and handlers that change ip. The result, the
// order of handlers, the missed calls and the pending ones equal those of a model of the kernel's
// list of pending returns. If no handler changed ip, and no return took the instance of a function
// that a longjmp left, it runs as without probes.
func TestReturnsOverOddFrames(t *testing.T) {
	for kernel, c := range map[string]struct{ oops, goesOn bool }{
		"5.10": {false, true}, "5.15": {true, false}, "6.1": {true, true}, "6.12": {true, true},
	} {
		t.Run(kernel, func(t *testing.T) {
			kinds := []string{"as unprobed", "changed ip", "fixed up", "jumps", "missed", "nested", "pending"}
			if c.oops {
				kinds = append(kinds, "lost")
			}
			if c.goesOn {
				kinds = append(kinds, "misplaced")
			}
			seen := map[string]int{}
			missing := func(what string) bool { return seen[what] == 0 }
			for range 200 { // rare events have come up after some of them
				rapid.Check(t, func(rt *rapid.T) { tryOdd(rt, kernel, seen) })
				if !slices.ContainsFunc(kinds, missing) {
					break
				}
			}
			t.Log(seen)
			require.Equal(t, c.oops, !missing("lost"))
			require.Equal(t, c.goesOn, !missing("misplaced"))
			for _, what := range kinds {
				require.False(t, missing(what), what)
			}
		})
	}
}

func tryOdd(rt *rapid.T, kernel string, seen map[string]int) {
	l, err := kprobelab.Open("", &kprobelab.Options{Profile: kernel, Optimize: true, Budget: 50000})
	require.NoError(rt, err)
	defer l.Close()
	o, start, alt := newOdd(rt, l)
	m := &oddModel{odd: o, seen: seen, faults: rapid.Bool().Draw(rt, "faults")}
	seed, bad := rapid.Uint64().Draw(rt, "seed"), uint64(o.data)
	if m.faults {
		bad = 8
	}
	const end = lost + 1
	call := func() (uint64, error) { return l.Machine.CallAddr(start, bad, uint64(o.data), seed) }
	require.True(rt, m.run(start, end, seed))
	plain := m.rbx
	ax, err := call()
	require.NoError(rt, err)
	require.Equal(rt, plain, ax, "unprobed")

	o.plant(alt)
	m.probed = true
	for host, list := range o.probes {
		if o.jumps(o.entries[host]) {
			seen["jumps"]++
		}
		for _, p := range list {
			p.free = p.rp.MaxActive
		}
	}
	for round := range 6 {
		o.events = nil
		follows := m.run(start, end, seed)
		ax, err = call()
		if !follows {
			seen["lost"]++
			require.Greater(rt, len(o.events)+1, len(m.want))
			require.Equal(rt, m.want, append([]string(nil), o.events[:len(m.want)]...))
			return // an oops: this machine is not used again
		}
		require.NoError(rt, err)
		require.NoError(rt, l.Kprobes.Err())
		require.Equal(rt, m.rbx, ax)
		require.Equal(rt, m.want, o.events)
		require.Equal(rt, len(m.pending), l.Kprobes.Pending(0))
		require.Equal(rt, m.misplace, strings.Contains(o.log, "another stack frame") || strings.Contains(o.log, "stacked incorrectly"))
		if m.changed {
			seen["changed ip"]++
		} else {
			require.Equal(rt, plain, ax, "a probe changed the program")
			seen["as unprobed"]++
		}
		for _, list := range o.probes {
			for _, p := range list {
				require.Equal(rt, [2]uint64{p.missed, p.nested}, [2]uint64{p.rp.Nmissed, p.rp.KP.Nmissed + p.kp.Nmissed}, p.name)
				seen["missed"] += int(p.missed)
				seen["nested"] += int(p.nested)
			}
		}
		seen["pending"] += len(m.pending)
		if round == 3 {
			l.Kprobes.Traps().TaskExit(0)
			for _, i := range m.pending {
				i.of.free++
			}
			m.pending = nil
		}
	}
	if m.misplace {
		seen["misplaced"]++
	}
	o.unplant()
}
