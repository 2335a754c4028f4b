package kprobes_test

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/errno"
	"kprobelab/kimage"
	"kprobelab/kprobes"
	"kprobelab/kprobes/rule"
	"kprobelab/profile"
	"kprobelab/x86"
)

// onFtrace runs a test for every profile whose probes run from the tracer.
func onFtrace(t *testing.T, fn func(t *testing.T, w *world)) {
	allKernels(t, func(t *testing.T, kernel string) {
		if w := newWorld(t, kernel, 1); w.k.Config().KprobesOnFtrace {
			fn(t, w)
		}
	})
}

// target returns the destination of the call at a site.
func (w *world) target(at x86.Addr) x86.Addr {
	return at.Add(5 + int64(int32(binary.LittleEndian.Uint32(w.mem(at+1, 4)))))
}

// TestArmedFtraceSiteIsACall: the site is a call of the tracer's trampoline while
// the probe is armed, and the CPU's own nop else.
// See docs/spec 2.9.
func TestArmedFtraceSiteIsACall(t *testing.T) {
	onFtrace(t, func(t *testing.T, w *world) {
		p := at(w.traced)
		p.Flags = kprobes.FlagDisabled
		w.register(t, p)
		require.Equal(t, nop5, string(w.mem(w.traced, 5)), "registered disabled")
		for range 2 {
			require.NoError(t, w.k.EnableKprobe(p))
			require.EqualValues(t, 0xe8, w.byteAt(w.traced))
			require.NotNil(t, w.mem(w.target(w.traced), 64))
			require.NoError(t, w.k.SetEnabled(false))
			require.Equal(t, nop5, string(w.mem(w.traced, 5)), "all disarmed")
			require.NoError(t, w.k.SetEnabled(true))
			require.EqualValues(t, 0xe8, w.byteAt(w.traced))
			require.NoError(t, w.k.DisableKprobe(p))
			require.Equal(t, nop5, string(w.mem(w.traced, 5)))
		}
		require.Zero(t, p.Opcode(), "nothing stands under it")
		_, ok := p.Slot()
		require.False(t, ok)
	})
}

// TestTwoTracerRegistrations: probes share the tracer's trampoline, and those
// with a post handler have another one. A second probe at the address changes
// nothing; a site is disarmed with its last.
// See docs/spec 2.9.
func TestTwoTracerRegistrations(t *testing.T) {
	onFtrace(t, func(t *testing.T, w *world) {
		other := w.add("traced2", nop5, movAX, addAX, ret)
		third := w.add("traced3", nop5, movAX, addAX, ret)
		w.sites = append(w.sites, kimage.Site{Addr: other, Len: 5}, kimage.Site{Addr: third, Len: 5})
		w.clean = w.text()
		w.register(t, at(w.traced))
		w.register(t, at(other))
		w.register(t, &kprobes.Kprobe{Addr: third, PostHandler: post0})
		require.Equal(t, w.target(w.traced), w.target(other))
		require.NotEqual(t, w.target(w.traced), w.target(third))

		before := w.target(w.traced)
		second := &kprobes.Kprobe{Addr: w.traced, PostHandler: post0}
		require.NoError(t, w.k.RegisterKprobe(second))
		require.Equal(t, before, w.target(w.traced))
		w.k.UnregisterKprobe(second)
		require.Equal(t, before, w.target(w.traced))
		require.NoError(t, w.k.DisableKprobe(w.k.Find(other)))
		require.Equal(t, nop5, string(w.mem(other, 5)))
		require.EqualValues(t, 6, w.result(t, w.traced, 5))
	})
}

// TestFtraceHandlerRegisters: handlers get the frame at the site: the function's stack, ip 1 past
// the site in the pre handler and 5 in the post handler, flags with the IF of the site, orig_ax 0.
// See docs/spec 2.9.
func TestFtraceHandlerRegisters(t *testing.T) {
	onFtrace(t, func(t *testing.T, w *world) {
		var pre, post x86.PtRegs
		w.register(t, &kprobes.Kprobe{Addr: w.traced,
			PreHandler:  func(_ *kprobes.Kprobe, r *x86.PtRegs) int { pre = *r; return 0 },
			PostHandler: func(_ *kprobes.Kprobe, r *x86.PtRegs, _ uint64) { post = *r; r.IP = 0x1234 },
		})
		th := w.start(0, 0, w.traced, 5)
		at := th.regs
		th.run()
		require.NoError(t, th.err)
		require.EqualValues(t, 6, th.regs.AX, "the post handler's ip is lost")
		at.OrigAX, at.SS, at.CS = 0, x86.KernelDS, x86.KernelCS
		at.IP = uint64(w.traced) + 1
		require.Equal(t, at, pre)
		at.IP = uint64(w.traced) + 5
		require.Equal(t, at, post)
		require.NotZero(t, pre.Flags&x86.FlagIF)
	})
}

// TestFtraceHandlerChangesRegisters: general registers and flags that a handler
// changes take effect, the stack pointer does not, and ip does where it
// returned non-zero.
// See docs/spec 2.9.
func TestFtraceHandlerChangesRegisters(t *testing.T) {
	onFtrace(t, func(t *testing.T, w *world) {
		posts := 0
		p := &kprobes.Kprobe{Addr: w.traced,
			PreHandler: func(_ *kprobes.Kprobe, r *x86.PtRegs) int {
				r.DI, r.R15, r.SP = 10, 15, 0x1234
				r.Flags |= x86.FlagCF
				r.IP = 0x1234 // back past the site in the end
				return 0
			},
			PostHandler: func(*kprobes.Kprobe, *x86.PtRegs, uint64) { posts++ },
		}
		w.register(t, p)
		th := w.start(0, 0, w.traced, 5)
		th.run()
		require.NoError(t, th.err)
		require.EqualValues(t, []uint64{11, 15, 1}, []uint64{th.regs.AX, th.regs.R15, uint64(posts)})
		require.NotZero(t, th.regs.Flags&x86.FlagCF)

		p.PreHandler = func(_ *kprobes.Kprobe, r *x86.PtRegs) int {
			r.IP, r.AX = uint64(w.traced)+8, 40 // after mov %rdi,%rax
			if w.k.Config().Step.HandlerResets {
				w.k.ResetCurrentKprobe()
			}
			return 1
		}
		require.EqualValues(t, 41, w.result(t, w.traced, 5))
		require.Equal(t, 1, posts, "no post handler")
		require.Nil(t, current(w))
	})
}

// TestFtraceProbeDisabled: the tracer's call of a probe that is disabled, or no
// longer there, does nothing: a task may be in the trampoline meanwhile.
// See docs/spec 2.9.
func TestFtraceProbeDisabled(t *testing.T) {
	onFtrace(t, func(t *testing.T, w *world) {
		hits := 0
		p := &kprobes.Kprobe{Addr: w.traced, PreHandler: func(*kprobes.Kprobe, *x86.PtRegs) int { hits++; return 0 }}
		for name, change := range map[string]func(){
			"disabled": func() { require.NoError(t, w.k.DisableKprobe(p)) },
			"gone":     func() { w.k.UnregisterKprobe(p) },
		} {
			p.Flags, p.Addr = 0, w.traced
			require.NoError(t, w.k.RegisterKprobe(p))
			th := w.start(0, 0, w.traced, 5)
			th.step() // the call
			change()
			th.run()
			require.NoError(t, th.err, name)
			require.EqualValues(t, 6, th.regs.AX)
			w.k.UnregisterKprobe(p)
		}
		require.Zero(t, hits)
		require.Zero(t, p.Nmissed)
	})
}

// TestFtraceWithoutTrampoline: without memory for the tracer's trampoline the probe
// is not registered, and enabling it fails.
// See docs/spec 2.9.
func TestFtraceWithoutTrampoline(t *testing.T) {
	w := newWorld(t, "6.1", 1)
	p := at(w.traced)
	w.execLeft = 0
	refused(t, w.k.RegisterKprobe(p), errno.ENOMEM, rule.Arm)
	p.Flags = kprobes.FlagDisabled
	require.NoError(t, w.k.RegisterKprobe(p))
	refused(t, w.k.EnableKprobe(p), errno.ENOMEM, rule.Arm)
	require.True(t, p.Disabled())
	w.execLeft = 16 << 10
	require.NoError(t, w.k.EnableKprobe(p))
	w.k.UnregisterKprobe(p)
}

// TestWithoutKprobesOnFtrace: then a site cannot be probed, and where
// functions have no such sites a nop is an instruction like any other.
// See docs/spec 1.4.
func TestWithoutKprobesOnFtrace(t *testing.T) {
	for kernel, sites := range map[string]bool{"2.6.18": false, "4.4": true, "6.1": true} {
		c, _ := profile.Named(kernel)
		c.KprobesOnFtrace = false
		w := newWorldOf(t, c, 1)
		p := at(w.traced)
		if sites {
			refused(t, w.k.RegisterKprobe(p), errno.EINVAL, rule.FtraceSite)
			continue
		}
		w.register(t, p)
		require.EqualValues(t, 0xcc, w.byteAt(w.traced))
		require.EqualValues(t, 6, w.result(t, w.traced, 5))
	}
}
