package rules

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/errno"
	"kprobelab/kprobes"
	"kprobelab/kprobes/rule"
	"kprobelab/profile"
	"kprobelab/x86"
)

// docs/spec 1.9: places that may not be probed, by the evidence in an image. The areas are the
// image's, whatever the release that it runs as: .noinstr.text did not exist before 5.8. The rule
// for clones is the release's.
func TestBlacklist(t *testing.T) {
	cases := []struct {
		symbol  string
		refused []string // nil: in no release
	}{
		{"nokprobe_function", profile.Names()},
		{"kprobes_text_function", profile.Names()},
		{"noinstr_function", profile.Names()},
		{"entry_SYSCALL_64", profile.Names()},
		{"nokprobe_function.constprop.0", []string{"5.8", "5.10", "6.1", "6.12"}},
		{"clone_function.isra.0", nil},
		{"kprobe_target", nil},
	}
	eachKernel(t, func(t *testing.T, l *kprobelab.Lab, k *kprobes.Kprobes) {
		for _, c := range cases {
			p := &kprobes.Kprobe{Addr: at(t, l, c.symbol)}
			err := k.RegisterKprobe(p)
			k.UnregisterKprobe(p)
			if slices.Contains(c.refused, k.Config().Name) {
				refused(t, err, errno.EINVAL, rule.Blacklisted)
			} else {
				require.NoError(t, err, c.symbol)
			}
		}
	})
}

// stepped are the module's functions by their first instruction, with each one's result for 5.
var stepped = []struct {
	name string
	want uint64
	next int64 // the next instruction
}{
	{name: "demo_tgt", want: 14, next: 3},     // mov
	{name: "demo_tgt_nb", want: 6, next: 4},   // prefetchw
	{name: "demo_tgt_jmp", want: 6, next: 2},  // jmp to the next instruction
	{name: "demo_tgt_jcc", want: 6, next: 2},  // je to the next instruction
	{name: "demo_tgt_call", want: 6, next: 0}, // call demo_leaf
}

// docs/spec 2.6 and 2.8: after the step execution goes on where it would have, and
// the post handler sees that ip; in 2.6.18 it runs before the fix-up and sees
// one in the slot. Interrupts come back.
func TestPostHandlerSeesTheNextInstruction(t *testing.T) {
	for _, kernel := range profile.Names() {
		t.Run(kernel, func(t *testing.T) {
			l := withModule(t, kernel)
			for _, f := range stepped {
				p := &kprobes.Kprobe{Addr: at(t, l, f.name)}
				next := p.Addr.Add(f.next)
				if f.next == 0 {
					next = at(t, l, "demo_leaf")
				}
				posts := 0
				p.PostHandler = func(p *kprobes.Kprobe, r *x86.PtRegs, flags uint64) {
					posts++
					require.Zero(t, flags)
					s, ok := p.Slot()
					require.True(t, ok)
					inSlot := x86.Addr(r.IP).In(s.Addr, s.Addr+16)
					if l.Kprobes.Config().Step.PostBeforeFixup {
						require.True(t, inSlot || f.next == 0 || f.name == "demo_tgt_jcc" || f.name == "demo_tgt_jmp", f.name)
						return
					}
					require.Equal(t, next, x86.Addr(r.IP), f.name)
					require.NotZero(t, r.Flags&x86.FlagIF)
					require.Zero(t, r.Flags&x86.FlagTF)
				}
				require.NoError(t, l.Kprobes.RegisterKprobe(p))
				require.Equal(t, f.want, call(t, l, f.name, 5), f.name)
				require.Equal(t, 1, posts, f.name)
				require.Equal(t, uint64(0x246), l.Machine.Regs().Flags, f.name)
				l.Kprobes.UnregisterKprobe(p)
			}
		})
	}
}

// docs/spec 2.8: the steps of a trap-flag kernel, as they are observed: one debug
// trap for a stepped instruction, none for a boosted one.
func TestTrapFlagStep(t *testing.T) {
	for kernel, boosts := range map[string]bool{"2.6.18": false, "4.4": true, "5.8": true} {
		t.Run(kernel, func(t *testing.T) {
			l := withModule(t, kernel)
			for name, boostable := range map[string]bool{"demo_tgt": true, "demo_tgt_nb": false} {
				p := &kprobes.Kprobe{Addr: at(t, l, name), PreHandler: func(*kprobes.Kprobe, *x86.PtRegs) int { return 0 }}
				require.NoError(t, l.Kprobes.RegisterKprobe(p))
				call(t, l, name, 5) // 4.4 may boost from the second hit on
				kinds := map[kprobes.EventKind]int{}
				l.Kprobes.Observe(func(e kprobes.Event) {
					kinds[e.Kind]++
					if e.Kind == kprobes.EventStep {
						require.NotZero(t, e.Regs.Flags&x86.FlagTF)
						require.Zero(t, e.Regs.Flags&x86.FlagIF)
					}
				})
				call(t, l, name, 5)
				l.Kprobes.Observe(nil)
				want := 1
				if boosts && boostable {
					want = 0
				}
				require.Equal(t, want, kinds[kprobes.EventStepped], name)
				require.Equal(t, 1-want, kinds[kprobes.EventBoost], name)
				l.Kprobes.UnregisterKprobe(p)
			}
		})
	}
}
