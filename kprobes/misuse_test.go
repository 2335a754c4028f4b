package kprobes_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/kprobes"
	"kprobelab/x86"
)

// What a pre handler does to the path of execution, by the way of the hit.
func TestMisuse(t *testing.T) {
	const nowhere = ""
	leafOf, tracedOf := func(w *world) x86.Addr { return w.leaf }, func(w *world) x86.Addr { return w.traced }
	for name, tc := range map[string]struct {
		fn      func(*world) x86.Addr
		off     x86.Addr
		handler func(w *world, regs *x86.PtRegs) int
		want    string
	}{
		"returns_0":         {fn: leafOf, handler: func(*world, *x86.PtRegs) int { return 0 }, want: nowhere},
		"changes_registers": {fn: leafOf, handler: func(_ *world, r *x86.PtRegs) int { r.DI = 7; return 0 }, want: nowhere},
		"returns_1_at_another_ip": {fn: leafOf, want: nowhere,
			handler: func(w *world, r *x86.PtRegs) int { r.IP = uint64(w.leaf + 7); return 1 }},
		"returns_1_past_one_byte": {fn: leafOf, off: 7, want: nowhere,
			handler: func(*world, *x86.PtRegs) int { return 1 }},
		"returns_1_inside": {fn: leafOf, want: "leaf: the pre handler returned 1 and left ip as it was: the CPU goes on at ",
			handler: func(*world, *x86.PtRegs) int { return 1 }},
		"returns_1_inside_a_fentry_site": {fn: tracedOf, want: "traced: the pre handler returned 1 and left ip as it was",
			handler: func(*world, *x86.PtRegs) int { return 1 }},
		"sets_ip_and_returns_0": {fn: leafOf, want: "leaf: the pre handler set ip to ",
			handler: func(w *world, r *x86.PtRegs) int { r.IP = uint64(w.leaf + 7); return 0 }},
		"sets_sp_at_an_int3":       {fn: leafOf, handler: func(_ *world, r *x86.PtRegs) int { r.SP -= 8; return 0 }, want: nowhere},
		"sets_sp_at_a_fentry_site": {fn: tracedOf, handler: func(_ *world, r *x86.PtRegs) int { r.SP -= 8; return 0 }, want: "traced: the pre handler set sp to "},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "6.1", 1)
			var told []string
			w.k.OnMisuse(func(m *kprobes.Misuse) { told = append(told, m.String()) })
			w.register(t, &kprobes.Kprobe{Addr: tc.fn(w) + tc.off, PreHandler: func(_ *kprobes.Kprobe, r *x86.PtRegs) int { return tc.handler(w, r) }})
			_, _ = w.call(tc.fn(w), 0) // where it goes on inside of an instruction, anything can happen
			if tc.want == nowhere {
				require.Empty(t, told)
				return
			}
			require.NotEmpty(t, told)
			require.Contains(t, told[0], tc.want)
		})
	}
}

// A jump ignores a handler's return value and the ip that it sets; OnMisuse reports that.
func TestMisuseAtAJump(t *testing.T) {
	optimizing(t, func(t *testing.T, _ string, w *optWorld) {
		var told []string
		w.k.OnMisuse(func(m *kprobes.Misuse) { told = append(told, m.String()) })
		p := w.newProbe(7, false)
		p.PreHandler = func(_ *kprobes.Kprobe, regs *x86.PtRegs) int { regs.IP = uint64(w.place(23)); return 1 }
		require.NoError(t, w.k.RegisterKprobe(&p.Kprobe))
		require.Equal(t, []int64{7}, w.settle(t))
		w.result(t, 1) // as if the handler had done nothing
		require.Len(t, told, 1)
		require.Contains(t, told[0], "over+0x7 is a jump (optimized): what its pre handler returns is ignored, and so is the ip that it sets")
		w.k.OnMisuse(nil)
		w.result(t, 1)
		require.Len(t, told, 1)
		w.k.UnregisterKprobe(&p.Kprobe)
	})
}
