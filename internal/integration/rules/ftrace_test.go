package rules

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/kprobes"
	"kprobelab/profile"
	"kprobelab/x86"
)

// tracedBy returns the name of the destination of the call at a fentry site; "" if the site is no
// call.
func tracedBy(t *testing.T, l *kprobelab.Lab, site x86.Addr) string {
	var b [5]byte
	require.NoError(t, l.Machine.ReadMem(site, b[:]))
	if b[0] != 0xe8 {
		return ""
	}
	return l.Machine.Symbolize(site.Add(5 + int64(int32(binary.LittleEndian.Uint32(b[1:])))))
}

// docs/spec 2.9: the site's five bytes while the probe is armed, disabled, and from
// within its own handler; whatever a handler does to its probe, the call goes
// on.
func TestHandlerChangesItsOwnFtraceProbe(t *testing.T) {
	for _, kernel := range []string{"4.4", "5.8", "5.10", "6.1", "6.12"} {
		t.Run(kernel, func(t *testing.T) {
			l := withModule(t, kernel)
			k, site := l.Kprobes, at(t, l, "demo_ft")
			require.Empty(t, tracedBy(t, l, site))
			var do func(p *kprobes.Kprobe)
			hits := 0
			p := &kprobes.Kprobe{Addr: site, PreHandler: func(p *kprobes.Kprobe, _ *x86.PtRegs) int { hits++; do(p); return 0 }}
			for _, act := range []func(p *kprobes.Kprobe){
				func(*kprobes.Kprobe) { require.Contains(t, tracedBy(t, l, site), "ftrace_trampoline+0x0") },
				func(p *kprobes.Kprobe) { require.NoError(t, k.DisableKprobe(p)) },
				func(p *kprobes.Kprobe) { k.UnregisterKprobe(p) },
				func(*kprobes.Kprobe) { require.NoError(t, k.SetEnabled(false)) },
			} {
				do = act
				p.Addr, p.Flags = site, 0
				require.NoError(t, k.RegisterKprobe(p))
				require.EqualValues(t, 14, call(t, l, "demo_ft", 5))
				require.NoError(t, k.SetEnabled(true))
				k.UnregisterKprobe(p)
				require.Empty(t, tracedBy(t, l, site))
			}
			require.Equal(t, 4, hits)
		})
	}
}

// docs/spec 2.9: a probe on a function's fentry site, rule by rule.
func TestFtraceProbe(t *testing.T) {
	for _, kernel := range []string{"4.4", "5.8", "5.10", "6.1", "6.12"} {
		t.Run(kernel, func(t *testing.T) {
			l := withModule(t, kernel)
			k, site := l.Kprobes, at(t, l, "demo_ft")
			p := &kprobes.Kprobe{Addr: site}
			var pre, post x86.PtRegs
			p.PreHandler = func(_ *kprobes.Kprobe, r *x86.PtRegs) int { pre = *r; r.IP += 100; return 0 }
			p.PostHandler = func(_ *kprobes.Kprobe, r *x86.PtRegs, _ uint64) { post = *r; r.IP += 100 }
			require.NoError(t, k.RegisterKprobe(p))
			require.True(t, p.OnFtrace())
			_, slot := p.Slot()
			require.False(t, slot, "no slot exists")
			require.EqualValues(t, 14, call(t, l, "demo_ft", 5), "rule 4: ip is put back")
			require.EqualValues(t, site+1, pre.IP, "rule 3")
			require.EqualValues(t, site+5, post.IP, "rule 4")
			require.Zero(t, pre.OrigAX)
			require.NotZero(t, pre.Flags&x86.FlagIF)

			p.PreHandler = func(_ *kprobes.Kprobe, r *x86.PtRegs) int {
				r.IP, r.DI = uint64(at(t, l, "demo_tgt")), 7 // to another function
				k.ResetCurrentKprobe()
				return 1
			}
			post = x86.PtRegs{}
			require.EqualValues(t, 16, call(t, l, "demo_ft", 5), "rule 5: ip is kept")
			require.Zero(t, post.IP)
			current, _ := k.Current()
			require.Nil(t, current, "rule 6")

			require.NoError(t, k.DisableKprobe(p))
			require.EqualValues(t, 14, call(t, l, "demo_ft", 5), "rule 1")
			require.NoError(t, k.EnableKprobe(p))
			outer := &kprobes.Kprobe{Addr: at(t, l, "demo_tgt_nb"), PreHandler: func(*kprobes.Kprobe, *x86.PtRegs) int {
				ax, err := l.Machine.Call("demo_ft", 5)
				require.NoError(t, err)
				require.EqualValues(t, 14, ax)
				return 0
			}}
			require.NoError(t, k.RegisterKprobe(outer))
			call(t, l, "demo_tgt_nb", 5)
			require.EqualValues(t, 1, p.Nmissed, "rule 2")
			k.UnregisterKprobes([]*kprobes.Kprobe{p, outer})
		})
	}
}

// A panic of a handler is reported with the probe's name, on every path to the
// handler, and the machine goes on.
func TestHandlerPanicsOnEveryPath(t *testing.T) {
	for _, kernel := range profile.Names() {
		t.Run(kernel, func(t *testing.T) {
			l := withModule(t, kernel)
			k := l.Kprobes
			panics := func(*kprobes.Kprobe, *x86.PtRegs) int { panic("oops") }
			returns := func(*kprobes.Instance, *x86.PtRegs) int { panic("oops") }
			for name, want := range map[string]uint64{"demo_tgt": 14, "demo_tgt_nb": 6, "demo_tgt_jmp": 6, "demo_ft": 14} {
				p := &kprobes.Kprobe{Addr: at(t, l, name), PreHandler: panics}
				require.NoError(t, k.RegisterKprobe(p))
				ax, err := l.Machine.Call(name, 5)
				require.NoError(t, err)
				require.Equal(t, want, ax)
				require.EqualError(t, k.ClearErr(), "probe "+name+": pre_handler panicked: oops")
				k.UnregisterKprobe(p)
			}
			rp := &kprobes.Kretprobe{KP: kprobes.Kprobe{Addr: at(t, l, "demo_ft")}, Handler: returns}
			require.NoError(t, k.RegisterKretprobe(rp))
			ax, err := l.Machine.Call("demo_ft", 5)
			require.NoError(t, err)
			require.EqualValues(t, 14, ax)
			require.EqualError(t, k.ClearErr(), "probe demo_ft: handler panicked: oops")
			k.UnregisterKretprobe(rp)
			current, _ := k.Current()
			require.Nil(t, current)
		})
	}
}
