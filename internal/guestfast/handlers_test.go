package guestfast_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/internal/session"
	"kprobelab/kimage"
	"kprobelab/kprobes"
	"kprobelab/profile"
	"kprobelab/x86"
)

// Handlers in guest code that count in the record's own word.
var (
	countPre    = []byte{0x48, 0xff, 0x47, 0x30, 0x31, 0xc0, 0xc3}                         // incq 48(%rdi); xor %eax,%eax; ret
	countReturn = []byte{0x48, 0x8b, 0x47, 0x10, 0x48, 0xff, 0x40, 0x30, 0x31, 0xc0, 0xc3} // mov 16(%rdi),%rax; incq 48(%rax); …
)

type guestLab struct {
	*session.Session
	t testing.TB
}

func newGuestLab(t testing.TB, kernel string, o *kprobelab.Options) *guestLab {
	c, ok := profile.Named(kernel)
	require.True(t, ok)
	img, err := kimage.FromBytes("guest kernel", kprobelab.GuestELF(), &kimage.Options{Profile: c})
	require.NoError(t, err)
	lab, err := kprobelab.New(img, o)
	require.NoError(t, err)
	t.Cleanup(lab.Close)
	l := session.New(lab)
	return &guestLab{l, t}
}

func (l *guestLab) symbol(name string) x86.Addr { return l.Image.Lookup(name)[0].Addr }

func (l *guestLab) code(b ...byte) x86.Addr {
	at, err := l.Machine.AllocExec(len(b), "handler")
	require.NoError(l.t, err)
	require.NoError(l.t, l.Machine.PokeText(at, b))
	return at
}

func (l *guestLab) count(record x86.Addr) int {
	var b [8]byte
	require.NoError(l.t, l.Machine.ReadMem(record+kprobes.RecordOwn, b[:]))
	return int(binary.LittleEndian.Uint64(b[:]))
}

// guestCall calls a function of the guest, and says how many calls into Go
// that took.
func (l *guestLab) guestCall(name string, args ...uint64) (uint64, int) {
	before := l.Machine.Crossings()
	ret, err := l.Machine.CallAddr(l.symbol(name), args...)
	require.NoError(l.t, err)
	require.NoError(l.t, l.Kprobes.Err())
	return ret, int(l.Machine.Crossings() - before)
}

// TestGuestHandlers: handlers in guest code run on every path of every release
// that has it, the function does what it did, and once a hit has shown the way
// nothing crosses into Go but what goes on after a breakpoint.
func TestGuestHandlers(t *testing.T) {
	for _, c := range []struct {
		name, function string
		offset         uint32
		optimize       bool
		kernels        []string
		crossings      int
	}{
		{name: "int3", function: "opt_yes", kernels: profile.Names(), crossings: 1},
		{name: "optimized", function: "opt_yes", optimize: true, kernels: []string{"5.10", "6.1", "6.12"}},
		{name: "emulated", function: "opt_no_jcc", offset: 3, kernels: []string{"6.1", "6.12"}, crossings: 1},
		{name: "ftrace", function: "leaf", kernels: []string{"6.1", "6.12"}},
	} {
		for _, kernel := range c.kernels {
			t.Run(c.name+"/"+kernel, func(t *testing.T) {
				l := newGuestLab(t, kernel, &kprobelab.Options{Optimize: c.optimize})
				old := kernel == "2.6.18" || kernel == "4.4" || kernel == "5.8" // no routes and gates, or a step by the trap flag
				want, _ := l.guestCall(c.function, 7, 5)
				calls := func(n, crossings int) {
					for i := range n {
						got, crossed := l.guestCall(c.function, 7, 5)
						require.Equal(t, want, got)
						if i > 0 && !old {
							require.LessOrEqual(t, crossed, crossings)
						}
					}
				}
				p := &kprobes.Kprobe{Addr: l.symbol(c.function), Offset: c.offset, PreCode: l.code(countPre...)}
				require.NoError(t, l.Kprobes.RegisterKprobe(p))
				require.NoError(t, l.Settle())
				calls(5, c.crossings)
				require.Equal(t, 5, l.count(p.Record))

				rp := &kprobes.Kretprobe{KP: kprobes.Kprobe{Addr: l.symbol(c.function)}, HandlerCode: l.code(countReturn...), EntryCode: l.code(0x31, 0xc0, 0xc3), MaxActive: 2}
				require.NoError(t, l.Kprobes.RegisterKretprobe(rp))
				require.NoError(t, l.Settle())
				calls(3, 2*c.crossings)
				require.Equal(t, 8, l.count(p.Record))
				returned := func() int { return l.count(rp.KP.Record) + int(rp.Nmissed) }
				require.Equal(t, 3, returned())

				l.Kprobes.UnregisterKprobe(p)
				require.NoError(t, l.Settle())
				calls(4, 2*c.crossings)
				require.Equal(t, 7, returned())

				require.NoError(t, l.Kprobes.DisableKretprobe(rp))
				require.NoError(t, l.Settle())
				calls(2, 0)
				require.Equal(t, 7, returned())
				require.NoError(t, l.Kprobes.EnableKretprobe(rp))
				l.Kprobes.UnregisterKretprobe(rp)
				require.NoError(t, l.Settle())
				calls(1, 0)
				require.Zero(t, l.Kprobes.Armed())
				require.Zero(t, l.Kprobes.Pending(0))
			})
		}
	}
}

// TestGuestPostHandler: after the step and an emulation, with ip moved on.
func TestGuestPostHandler(t *testing.T) {
	for _, at := range []kprobes.Kprobe{{SymbolName: "opt_yes"}, {SymbolName: "opt_no_jcc", Offset: 3}, {SymbolName: "leaf"}} {
		l := newGuestLab(t, "6.1", nil)
		want, _ := l.guestCall(at.SymbolName, 7, 5)
		// mov 0x80(%rsi),%rax; mov %rax,56(%rdi); incq 48(%rdi); ret
		post := l.code(0x48, 0x8b, 0x86, 0x80, 0, 0, 0, 0x48, 0x89, 0x47, 0x38, 0x48, 0xff, 0x47, 0x30, 0xc3)
		var ip uint64
		ref := &kprobes.Kprobe{SymbolName: at.SymbolName, Offset: at.Offset, PostHandler: func(_ *kprobes.Kprobe, regs *x86.PtRegs, _ uint64) { ip = regs.IP }}
		require.NoError(t, l.Kprobes.RegisterKprobe(ref))
		l.guestCall(at.SymbolName, 7, 5)
		l.Kprobes.UnregisterKprobe(ref)
		p := &kprobes.Kprobe{SymbolName: at.SymbolName, Offset: at.Offset, PreCode: l.code(countPre...), PostCode: post}
		require.NoError(t, l.Kprobes.RegisterKprobe(p))
		for range 4 {
			got, _ := l.guestCall(at.SymbolName, 7, 5)
			require.Equal(t, want, got)
			var b [8]byte
			require.NoError(t, l.Machine.ReadMem(p.Record+kprobes.RecordOwn+8, b[:]))
			require.Equal(t, ip, binary.LittleEndian.Uint64(b[:]), at.SymbolName)
		}
		require.Equal(t, 8, l.count(p.Record), "pre and post")
		l.Kprobes.UnregisterKprobe(p)
		require.Zero(t, l.Kprobes.Armed())
	}
}

// TestGuestHandlerChangesRegisters: what a handler does to registers, flags
// and ip takes effect, on each path what the kernel lets take effect.
func TestGuestHandlerChangesRegisters(t *testing.T) {
	// movq $100,0x70(%rsi): di; xor %eax,%eax; ret
	setDI := []byte{0x48, 0xc7, 0x46, 0x70, 100, 0, 0, 0, 0x31, 0xc0, 0xc3}
	for _, o := range []kprobelab.Options{{}, {Optimize: true}} {
		for _, function := range []string{"leaf", "opt_yes"} {
			l := newGuestLab(t, "6.1", &o)
			want, _ := l.guestCall(function, 100, 5)
			p := &kprobes.Kprobe{SymbolName: function, PreCode: l.code(setDI...)}
			require.NoError(t, l.Kprobes.RegisterKprobe(p))
			require.NoError(t, l.Settle())
			for range 3 {
				got, _ := l.guestCall(function, 7, 5)
				require.Equal(t, want, got, function)
			}
		}
	}
	// A non-zero result: ip is where the handler left it, here at a ret.
	for _, function := range []string{"leaf", "opt_yes"} {
		l := newGuestLab(t, "6.1", nil)
		ret := l.code(0xc3)
		skip := append([]byte{0x48, 0xc7, 0xc1}, word(ret)...) // mov $ret,%rcx; mov %rcx,0x80(%rsi): ip; mov $1,%eax; ret
		skip = append(skip, 0x48, 0x89, 0x8e, 0x80, 0, 0, 0, 0xb8, 1, 0, 0, 0, 0xc3)
		p := &kprobes.Kprobe{SymbolName: function, PreCode: l.code(skip...)}
		require.NoError(t, l.Kprobes.RegisterKprobe(p))
		for range 3 {
			got, _ := l.guestCall(function, 7, 5)
			require.Zero(t, got, "rax as it was at the entry")
		}
	}
}

// word is a sign-extended address.
func word(a x86.Addr) []byte { return binary.LittleEndian.AppendUint32(nil, uint32(a)) }

// TestGuestHandlerNested: a probe that a handler in guest code hits is missed,
// and counted, whatever kind the two are of; with handlers in Go it is so too.
func TestGuestHandlerNested(t *testing.T) {
	for _, o := range []kprobelab.Options{{}, {Optimize: true}} {
		for _, outer := range []string{"opt_yes", "leaf"} {
			for _, inner := range []string{"opt_yes_rip", "leaf2"} {
				for _, innerInGo := range []bool{false, true} {
					t.Run(fmt.Sprint(o.Optimize, outer, inner, innerInGo), func(t *testing.T) {
						l := newGuestLab(t, "6.1", &o)
						want, _ := l.guestCall(outer, 7, 5)
						in := &kprobes.Kprobe{SymbolName: inner, PreCode: l.code(countPre...)}
						if innerInGo {
							in.PreCode, in.PreHandler = 0, func(*kprobes.Kprobe, *x86.PtRegs) int { t.Error("ran"); return 0 }
						}
						// push %rdi; mov $inner,%rax; call *%rax; pop %rdi; incq 48(%rdi); xor %eax,%eax; ret
						call := append(append([]byte{0x57, 0x48, 0xc7, 0xc0}, word(l.symbol(inner))...), 0xff, 0xd0, 0x5f)
						out := &kprobes.Kprobe{SymbolName: outer, PreCode: l.code(append(call, countPre...)...)}
						require.NoError(t, l.Kprobes.RegisterKprobes([]*kprobes.Kprobe{in, out}))
						require.NoError(t, l.Settle())
						for range 5 {
							got, _ := l.guestCall(outer, 7, 5)
							require.Equal(t, want, got)
						}
						require.Equal(t, 5, l.count(out.Record))
						require.EqualValues(t, 5, in.Nmissed)
						p, _ := l.Kprobes.Current()
						require.Nil(t, p)
						if !innerInGo {
							require.Zero(t, l.count(in.Record))
							l.guestCall(inner, 1, 2)
							require.Equal(t, 1, l.count(in.Record), "by itself it runs")
						}
					})
				}
			}
		}
	}
}

// TestGuestReturnsShared: probes in Go and in guest code on one function and
// on nested ones, in every order of registration; the unwinder finds the true
// addresses.
func TestGuestReturnsShared(t *testing.T) {
	for order := range 8 {
		l := newGuestLab(t, "6.1", &kprobelab.Options{Optimize: order&4 != 0})
		ran := map[string]int{}
		var guests []*kprobes.Kretprobe
		for i, name := range []string{"outer", "leaf", "leaf", "recurse", "recurse"} {
			rp := &kprobes.Kretprobe{KP: kprobes.Kprobe{SymbolName: name}, MaxActive: 20}
			if i%2 == order&1 {
				rp.HandlerCode = l.code(countReturn...)
				guests = append(guests, rp)
			} else {
				rp.Handler = func(*kprobes.Instance, *x86.PtRegs) int { ran[name]++; return 0 }
			}
			require.NoError(t, l.Kprobes.RegisterKretprobe(rp))
			if order&2 != 0 {
				l.guestCall(name, 3)
			}
		}
		require.NoError(t, l.Settle())
		clear(ran)
		for _, rp := range guests {
			require.NoError(t, l.Machine.WriteMem(rp.KP.Record+kprobes.RecordOwn, make([]byte, 8)))
		}
		for range 4 {
			l.guestCall("outer", 3)
			got, _ := l.guestCall("recurse", 5)
			require.EqualValues(t, 5, got)
		}
		total := ran["outer"] + ran["leaf"] + ran["recurse"]
		for _, rp := range guests {
			require.Zero(t, rp.Nmissed)
			total += l.count(rp.KP.Record)
		}
		require.Equal(t, 4*(1+2*2+2*6), total, "outer calls leaf twice")
		require.Zero(t, l.Kprobes.Pending(0))
	}
}

// tasks has n tasks make the same calls, none of which fails.
func (l *guestLab) tasks(n int, text string) []session.TaskResult {
	var sequences [][]*session.Call
	for range n {
		calls, err := session.BindTask(l.Image, text)
		require.NoError(l.t, err)
		sequences = append(sequences, calls)
	}
	list, err := l.Run(sequences)
	require.NoError(l.t, err)
	for _, r := range list {
		require.NoError(l.t, r.Err)
	}
	return list
}

// TestGuestHandlersTasks: over many schedules of tasks on two CPUs every call
// is a hit, and every one returns or is missed.
func TestGuestHandlersTasks(t *testing.T) {
	seeds := 40
	if testing.Short() {
		seeds = 5
	}
	for seed := range int64(seeds) {
		l := newGuestLab(t, "6.1", &kprobelab.Options{CPUs: 2, Seed: seed, Optimize: seed%2 == 0})
		p := &kprobes.Kprobe{SymbolName: "slow_call", PreCode: l.code(countPre...)}
		rp := &kprobes.Kretprobe{KP: kprobes.Kprobe{SymbolName: "slow_call"}, HandlerCode: l.code(countReturn...), MaxActive: 1 + int(seed)%3}
		q := &kprobes.Kprobe{SymbolName: "opt_yes", PreCode: l.code(countPre...)}
		require.NoError(t, l.Kprobes.RegisterKprobes([]*kprobes.Kprobe{p, q}))
		require.NoError(t, l.Kprobes.RegisterKretprobe(rp))
		require.NoError(t, l.Settle())
		for _, r := range l.tasks(4, "slow_call(1, 700); opt_yes(1, 2); slow_call(2, 90); slow_call(3, 2000); opt_yes(4, 4)") {
			require.EqualValues(t, 4, r.Results[3].Value)
		}
		require.Equal(t, 12, l.count(p.Record), "seed %d", seed)
		require.Equal(t, 8, l.count(q.Record), "seed %d", seed)
		require.Equal(t, 12, l.count(rp.KP.Record)+int(rp.Nmissed), "seed %d", seed)
	}
}

// TestGuestHandlerFaults: a handler that fails ends the call with an error that
// says where, and the machine goes on.
func TestGuestHandlerFaults(t *testing.T) {
	for _, o := range []kprobelab.Options{{Budget: 100_000}, {Budget: 100_000, Optimize: true}} {
		for _, function := range []string{"leaf", "opt_yes"} {
			for name, code := range map[string][]byte{"fault": {0x0f, 0x0b}, "loop": {0xeb, 0xfe}} {
				l := newGuestLab(t, "6.1", &o)
				want, _ := l.guestCall(function, 7, 5)
				good := l.code(countPre...)
				p := &kprobes.Kprobe{SymbolName: function, PreCode: good}
				require.NoError(t, l.Kprobes.RegisterKprobe(p))
				require.NoError(t, l.Settle())
				for range 2 {
					l.guestCall(function, 7, 5)
				}
				require.NoError(t, l.Machine.PokeText(good, code))
				for range 2 {
					_, err := l.Machine.CallAddr(l.symbol(function), 7, 5)
					require.Error(t, errors.Join(err, l.Kprobes.ClearErr()), name)
					cur, _ := l.Kprobes.Current()
					require.Nil(t, cur)
				}
				require.NoError(t, l.Machine.PokeText(good, countPre))
				got, _ := l.guestCall(function, 7, 5)
				require.Equal(t, want, got)
			}
		}
	}
}
