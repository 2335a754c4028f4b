package rules

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/errno"
	"kprobelab/kprobes"
	"kprobelab/kprobes/rule"
	"kprobelab/x86"
)

// withJprobes runs a test for every release that has jprobes.
func withJprobes(t *testing.T, fn func(t *testing.T, l *kprobelab.Lab)) {
	for _, kernel := range []string{"2.6.18", "4.4"} {
		t.Run(kernel, func(t *testing.T) { fn(t, guest(t, kernel, nil, nil)) })
	}
}

func jprobeOn(t testing.TB, l *kprobelab.Lab, probed, handler string) *kprobes.Jprobe {
	jp := &kprobes.Jprobe{KP: kprobes.Kprobe{Addr: at(t, l, probed)}, EntrySymbol: handler}
	require.NoError(t, l.Kprobes.RegisterJprobe(jp))
	t.Cleanup(func() { l.Kprobes.UnregisterJprobe(jp) })
	return jp
}

func console(l *kprobelab.Lab) string { return string(l.Machine.Console()) }

// docs/spec 6, "Hit": the handler reads the probed function's arguments, and the
// function runs as if nothing had been.
func TestJprobeSeesTheArguments(t *testing.T) {
	withJprobes(t, func(t *testing.T, l *kprobelab.Lab) {
		want := call(t, l, "sys_open", "/etc/ld.so.cache", 0, 0)
		jp := jprobeOn(t, l, "sys_open", "jsys_open")
		require.Contains(t, l.Kprobes.List(), "  j  sys_open+0x0")
		console(l)
		for range 3 {
			require.Equal(t, int64(want) < 0, int64(call(t, l, "sys_open", "/etc/ld.so.cache", 0, 0)) < 0)
			require.Contains(t, console(l), "call open('/etc/ld.so.cache', 0, 0)")
		}
		p, _ := l.Kprobes.Current()
		require.Nil(t, p, "the hit is over")
		require.Zero(t, jp.KP.Nmissed)
		l.Kprobes.UnregisterJprobe(jp)
		call(t, l, "sys_open", "/etc/ld.so.cache", 0, 0)
		require.Empty(t, console(l))
	})
}

// docs/spec 13.3: the jprobe sample's line on do_fork.
func TestJprobeSample(t *testing.T) {
	for kernel, fork := range map[string]string{"2.6.18": "do_fork", "4.4": "_do_fork"} {
		l := guest(t, kernel, nil, nil)
		jprobeOn(t, l, fork, "j_do_fork")
		call(t, l, fork, 0x1200011, 0x10, 0x20, nil, nil, 0)
		require.Contains(t, console(l), "jprobe: clone_flags = 0x1200011, stack_start = 0x10 stack_size = 0x20", kernel)
	}
}

// docs/spec 6, steps 1 and 3: registers and 64 bytes of stack are put back, flags
// too; interrupts are off in the handler.
func TestJprobeRestoresRegistersAndStack(t *testing.T) {
	withJprobes(t, func(t *testing.T, l *kprobelab.Lab) {
		var before, inside, after x86.PtRegs
		// members before the jprobe, which is the tail; a post handler after it
		plant(t, l, &kprobes.Kprobe{Addr: at(t, l, "sys_open"),
			PreHandler: func(_ *kprobes.Kprobe, r *x86.PtRegs) int { before = *r; return 0 }})
		jprobeOn(t, l, "sys_open", "jsys_open")
		l.Kprobes.Observe(func(e kprobes.Event) {
			switch e.Kind {
			case kprobes.EventSkipped:
				inside = *e.Regs
				// the handler owns its arguments on the stack
				require.NoError(t, l.Machine.WriteMem(x86.Addr(e.Regs.SP)+8, []byte("clobbered")))
			case kprobes.EventJprobeReturn:
				after = *e.Regs
			}
		})
		stack := make([]byte, 64)
		call(t, l, "sys_open", "/etc/passwd", 0, 0)
		require.Equal(t, before, after)
		require.Equal(t, uint64(at(t, l, "jsys_open")), inside.IP)
		require.Zero(t, inside.Flags&x86.FlagIF)
		require.NotZero(t, after.Flags&x86.FlagIF)
		require.NoError(t, l.Machine.ReadMem(x86.Addr(after.SP), stack))
		require.NotContains(t, string(stack), "clobbered")
	})
}

// docs/spec 6, "Limits": a second jprobe at an address is refused with EEXIST, alone
// or in an aggregate; the first one goes on.
func TestSecondJprobeEEXIST(t *testing.T) {
	withJprobes(t, func(t *testing.T, l *kprobelab.Lab) {
		first := jprobeOn(t, l, "sys_open", "jsys_open")
		for range 2 {
			second := &kprobes.Jprobe{KP: kprobes.Kprobe{Addr: at(t, l, "sys_open")}, EntrySymbol: "j_do_fork"}
			refused(t, l.Kprobes.RegisterJprobe(second), errno.EEXIST, rule.SecondJprobe)
		}
		call(t, l, "sys_open", "x", 0, 0)
		require.Contains(t, console(l), "call open('x'")
		l.Kprobes.UnregisterJprobe(first)
		next := jprobeOn(t, l, "sys_open", "jsys_open")
		require.False(t, next.KP.Disabled())
	})
}

// docs/spec 1.6 and 6: a jprobe is the tail of an aggregate, so it runs last; the
// others' pre handlers before it, and their post handlers after the step.
func TestJprobeIsTheTail(t *testing.T) {
	withJprobes(t, func(t *testing.T, l *kprobelab.Lab) {
		var order []string
		probe := func(name string) *kprobes.Kprobe {
			return &kprobes.Kprobe{
				Addr:        at(t, l, "sys_open"),
				PreHandler:  func(*kprobes.Kprobe, *x86.PtRegs) int { order = append(order, name); return 0 },
				PostHandler: func(*kprobes.Kprobe, *x86.PtRegs, uint64) { order = append(order, name+" post") },
			}
		}
		plant(t, l, probe("a"))
		jprobeOn(t, l, "sys_open", "jsys_open")
		plant(t, l, probe("b"))
		l.Kprobes.Observe(func(e kprobes.Event) {
			if e.Kind == kprobes.EventJprobeReturn {
				order = append(order, "jprobe")
			}
		})
		call(t, l, "sys_open", "x", 0, 0)
		require.Equal(t, []string{"b", "a", "jprobe", "b post", "a post"}, order)
	})
}

// docs/spec 6: probes that the handler hits are missed, jprobes among them.
func TestJprobesDoNotNest(t *testing.T) {
	withJprobes(t, func(t *testing.T, l *kprobelab.Lab) {
		jprobeOn(t, l, "sys_open", "jsys_open")
		inner := jprobeOn(t, l, "printk", "j_do_fork")
		call(t, l, "sys_open", "x", 0, 0)
		require.Contains(t, console(l), "call open('x'")
		require.EqualValues(t, 1, inner.KP.Nmissed)
	})
}

// docs/spec 6, step 3: a handler that ends on another stack is the kernel's BUG.
func TestJprobeStackPointerMismatchIsBUG(t *testing.T) {
	withJprobes(t, func(t *testing.T, l *kprobelab.Lab) {
		jprobeOn(t, l, "sys_open", "jsys_open")
		var log []string
		l.Kprobes.OnLog(func(line string) { log = append(log, line) })
		saved := at(t, l, "jprobe_saved_sp") + l.Machine.GSBase(0)
		l.Kprobes.Observe(func(e kprobes.Event) {
			if e.Kind == kprobes.EventSkipped {
				sp := e.Regs.SP - 16
				require.NoError(t, l.Machine.WriteMem(saved, []byte{byte(sp), byte(sp >> 8)}))
			}
		})
		_, err := l.Machine.Call("sys_open", "x", 0, 0)
		require.Error(t, err)
		var bug *kprobes.Bug
		require.ErrorAs(t, l.Kprobes.ClearErr(), &bug)
		require.Contains(t, log[0], "does not match saved sp")
		l.Kprobes.Observe(nil)
		call(t, l, "sys_open", "x", 0, 0) // the machine is usable
	})
}

// docs/spec 6, registration: the conditions on the handler, and the batch rules.
func TestJprobeRegistration(t *testing.T) {
	l := guest(t, "4.4", nil, nil)
	k := l.Kprobes
	open, handler := at(t, l, "sys_open"), at(t, l, "jsys_open")
	bad := &kprobes.Jprobe{KP: kprobes.Kprobe{Addr: open}, Entry: handler + 1}
	refused(t, k.RegisterJprobe(bad), errno.EINVAL, rule.JprobeEntry)
	refused(t, k.RegisterJprobe(&kprobes.Jprobe{KP: kprobes.Kprobe{Addr: open}}), errno.EINVAL, rule.JprobeEntry)
	refused(t, k.RegisterJprobe(nil), errno.EINVAL, rule.NoPlace)
	refused(t, k.RegisterJprobes(nil), errno.EINVAL, rule.Batch)
	good := &kprobes.Jprobe{KP: kprobes.Kprobe{Addr: open}, Entry: handler}
	refused(t, k.RegisterJprobes([]*kprobes.Jprobe{good, bad}), errno.EINVAL, rule.JprobeEntry)
	require.Zero(t, k.Registered())
	require.NoError(t, k.RegisterJprobe(&kprobes.Jprobe{KP: kprobes.Kprobe{Addr: open, Flags: kprobes.FlagDisabled}, Entry: handler}))
	k.UnregisterJprobe(&kprobes.Jprobe{})
	k.UnregisterJprobe(nil)
	// the place itself has no entry rule
	mid := &kprobes.Jprobe{KP: kprobes.Kprobe{Addr: open, Offset: 5}, Entry: handler}
	require.NoError(t, k.RegisterJprobe(mid))
	require.NoError(t, k.DisableJprobe(mid))
	call(t, l, "sys_open", "x", 0, 0)
	require.Empty(t, console(l))
	require.NoError(t, k.EnableJprobe(mid))
	call(t, l, "sys_open", "x", 0, 0)
	require.NotEmpty(t, console(l))
	k.UnregisterJprobe(mid)
	k.UnregisterKprobe(k.Find(open)) // the only one there
}

// docs/spec 12: jprobes are gone from 4.19 on.
func TestNoJprobes(t *testing.T) {
	for _, kernel := range []string{"5.8", "5.10", "6.1", "6.12"} {
		l := guest(t, kernel, nil, nil)
		jp := &kprobes.Jprobe{KP: kprobes.Kprobe{SymbolName: "sys_open"}, EntrySymbol: "jsys_open"}
		refused(t, l.Kprobes.RegisterJprobe(jp), errno.ENOSYS, rule.NoJprobes)
		require.ErrorContains(t, l.Kprobes.RegisterJprobe(jp), "deprecated")
	}
}
