package guestfast_test

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"kprobelab"
	"kprobelab/internal/engine"
	"kprobelab/internal/guestfast"
	"kprobelab/kimage"
	"kprobelab/kprobes"
	"kprobelab/machine"
	"kprobelab/profile"
	"kprobelab/x86"
)

// world is a machine whose handlers in guest code write what they see to a log:
// a number of their own, and a sum over the whole frame.
type world struct {
	m   *machine.Machine
	k   *kprobes.Kprobes
	log x86.Addr
	all []*probe
}

// deaf is a fast path that learns nothing: every handler is called through Go,
// and memory is laid out as with one that learns.
type deaf struct{ kprobes.FastPath }

func (deaf) Hit(kprobes.Way, *kprobes.Kprobe, uint64) {}

func newDeaf(in kprobes.Inside) (kprobes.FastPath, error) {
	f, err := guestfast.New(in)
	return deaf{f}, err
}

// probe is one of the two kinds.
type probe struct {
	kp *kprobes.Kprobe
	rp *kprobes.Kretprobe
}

func (p *probe) kprobe() *kprobes.Kprobe {
	if p.rp != nil {
		return &p.rp.KP
	}
	return p.kp
}

const logSize = 1 << 16

type tb interface {
	require.TestingT
	Helper()
}

func newWorld(t tb, img *kimage.Image, fast, optimize bool, cpus int) *world {
	m, err := engine.New("", img, &machine.Options{CPUs: cpus})
	require.NoError(t, err)
	w := &world{m: m, k: kprobes.New(m, img, img.Profile())}
	w.k.SetFastPath(newDeaf)
	if fast {
		w.k.SetFastPath(guestfast.New)
	}
	if optimize {
		require.NoError(t, w.k.InitOptprobes())
	}
	w.log, err = m.Alloc(logSize)
	require.NoError(t, err)
	return w
}

func (w *world) code(t tb, b []byte) x86.Addr {
	at, err := w.m.AllocExec(len(b), "handler")
	require.NoError(t, err)
	require.NoError(t, w.m.PokeText(at, b))
	return at
}

// what a handler does beside writing the log.
type action struct {
	id     byte
	si     bool     // add 1 to the frame's si
	calls  x86.Addr // call this before, 0 for nothing
	result byte
}

func (w *world) handler(t tb, a action) x86.Addr {
	var b []byte
	if a.calls != 0 { // push %rdi; push %rsi; mov $3,%edi; mov $calls,%rax; call *%rax; pop; pop
		b = append(append(b, 0x57, 0x56, 0xbf, 3, 0, 0, 0, 0x48, 0xc7, 0xc0), word(a.calls)...)
		b = append(b, 0xff, 0xd0, 0x5e, 0x5f)
	}
	// xor %edx,%edx; mov $21,%ecx; 1: rol $7,%rdx; xor -8(%rsi,%rcx,8),%rdx; dec %ecx; jne 1b
	b = append(b, 0x31, 0xd2, 0xb9, 21, 0, 0, 0, 0x48, 0xc1, 0xc2, 7, 0x48, 0x33, 0x54, 0xce, 0xf8, 0xff, 0xc9, 0x75, 0xf3)
	if a.si { // incq 0x68(%rsi)
		b = append(b, 0x48, 0xff, 0x46, 0x68)
	}
	// movabs $log,%rax; mov (%rax),%rcx; mov %rdx,16(%rax,%rcx); movq $id,8(%rax,%rcx); addq $16,(%rax)
	b = binary.LittleEndian.AppendUint64(append(b, 0x48, 0xb8), uint64(w.log))
	b = append(b, 0x48, 0x8b, 0x08, 0x48, 0x89, 0x54, 0x08, 16, 0x48, 0xc7, 0x44, 0x08, 8, a.id, 0, 0, 0, 0x48, 0x83, 0x00, 16)
	return w.code(t, append(b, 0xb8, a.result, 0, 0, 0, 0xc3)) // mov $result,%eax; ret
}

// seen is the log, which is then empty.
func (w *world) seen(t tb) []uint64 {
	b := make([]byte, logSize)
	require.NoError(t, w.m.ReadMem(w.log, b))
	list := make([]uint64, binary.LittleEndian.Uint64(b)/8)
	for i := range list {
		list[i] = binary.LittleEndian.Uint64(b[8+8*i:])
	}
	require.NoError(t, w.m.WriteMem(w.log, make([]byte, 8)))
	return list
}

// state is all that two worlds have to agree on.
func (w *world) state(t tb) string {
	cur, _ := w.k.Current()
	s := fmt.Sprintf("current %v, pending %d, log %x\n", cur, w.k.Pending(0), w.seen(t))
	for i, p := range w.all {
		s += fmt.Sprintf("%d: nmissed %d", i, p.kprobe().Nmissed)
		if p.rp != nil {
			s += fmt.Sprintf(", returns %d", p.rp.Nmissed)
		}
		s += "\n"
	}
	return s
}

var (
	placesOfProbes  = []string{"opt_yes", "opt_yes_rip", "leaf", "leaf2", "recurse", "outer"}
	functionsCalled = []string{"opt_yes", "opt_yes_rip", "leaf", "outer", "recurse", "opt_no_jcc"}
)

// twins are a world with the fast path and one without, in which the same is
// done.
type twins struct {
	t      *rapid.T
	img    *kimage.Image
	worlds [2]*world
	next   byte
	hits   int
}

func (tw *twins) symbol(name string) x86.Addr { return tw.img.Lookup(name)[0].Addr }

// both does the same in both worlds, whose errors are to be the same.
func (tw *twins) both(do func(w *world) error) {
	first, second := do(tw.worlds[0]), do(tw.worlds[1])
	require.Equal(tw.t, fmt.Sprint(first), fmt.Sprint(second))
}

func (tw *twins) action() action {
	tw.next++
	a := action{id: tw.next & 0x7f, si: rapid.IntRange(0, 3).Draw(tw.t, "si") == 0}
	if rapid.IntRange(0, 3).Draw(tw.t, "calls") == 0 {
		a.calls = tw.symbol(rapid.SampledFrom(functionsCalled).Draw(tw.t, "called"))
	}
	return a
}

// kprobe registers a probe; some have a handler in Go.
func (tw *twins) kprobe() {
	at := kprobes.Kprobe{SymbolName: rapid.SampledFrom(placesOfProbes).Draw(tw.t, "place")}
	if rapid.IntRange(0, 4).Draw(tw.t, "emulated") == 0 {
		at = kprobes.Kprobe{SymbolName: "opt_no_jcc", Offset: 3}
	}
	pre, post := tw.action(), tw.action()
	where := rapid.SampledFrom([]string{"pre", "pre", "post", "both", "go"}).Draw(tw.t, "handlers")
	tw.both(func(w *world) error {
		p := at
		switch where {
		case "pre", "both":
			p.PreCode = w.handler(tw.t, pre)
		case "go":
			p.PreHandler = func(_ *kprobes.Kprobe, regs *x86.PtRegs) int { regs.SI++; return 0 }
		}
		if where == "post" || where == "both" {
			p.PostCode = w.handler(tw.t, post)
		}
		w.all = append(w.all, &probe{kp: &p})
		return w.k.RegisterKprobe(&p)
	})
}

func (tw *twins) kretprobe() {
	function := rapid.SampledFrom(placesOfProbes).Draw(tw.t, "function")
	active := rapid.IntRange(1, 5).Draw(tw.t, "maxactive")
	ret, entry := tw.action(), tw.action()
	entry.result = byte(rapid.IntRange(0, 1).Draw(tw.t, "refuses"))
	where := rapid.SampledFrom([]string{"return", "return", "entry", "both", "go"}).Draw(tw.t, "handlers")
	tw.both(func(w *world) error {
		rp := &kprobes.Kretprobe{KP: kprobes.Kprobe{SymbolName: function}, MaxActive: active, DataSize: 8}
		switch where {
		case "return", "both":
			rp.HandlerCode = w.handler(tw.t, ret)
		case "go":
			rp.Handler = func(_ *kprobes.Instance, regs *x86.PtRegs) int { regs.DX++; return 0 }
		}
		if where == "entry" || where == "both" {
			rp.EntryCode = w.handler(tw.t, entry)
		}
		w.all = append(w.all, &probe{rp: rp})
		return w.k.RegisterKretprobe(rp)
	})
}

// toggles is a probe in Go that disables or enables another when it is hit.
func (tw *twins) toggles() {
	place := rapid.SampledFrom(placesOfProbes).Draw(tw.t, "place")
	other := rapid.IntRange(0, 100).Draw(tw.t, "other")
	tw.both(func(w *world) error {
		p := &kprobes.Kprobe{SymbolName: place, PreHandler: func(*kprobes.Kprobe, *x86.PtRegs) int {
			o := w.all[other%len(w.all)].kprobe()
			if o.Disabled() {
				_ = w.k.EnableKprobe(o) // it may be unregistered
			} else {
				_ = w.k.DisableKprobe(o)
			}
			return 0
		}}
		w.all = append(w.all, &probe{kp: p})
		return w.k.RegisterKprobe(p)
	})
}

// one does something to a probe in both worlds.
func (tw *twins) one(do func(w *world, p *probe) error) {
	if len(tw.worlds[0].all) == 0 {
		tw.t.Skip("no probe")
	}
	n := rapid.IntRange(0, len(tw.worlds[0].all)-1).Draw(tw.t, "probe")
	tw.both(func(w *world) error { return do(w, w.all[n]) })
}

func (tw *twins) call() {
	name := rapid.SampledFrom(functionsCalled).Draw(tw.t, "function")
	x := rapid.Uint64Range(0, 6).Draw(tw.t, "x")
	for range rapid.IntRange(1, 4).Draw(tw.t, "times") {
		tw.both(func(w *world) error {
			ret, err := w.m.CallAddr(tw.symbol(name), x, 5)
			return fmt.Errorf("%d, %v, %v", ret, err, w.k.ClearErr())
		})
	}
}

func (tw *twins) same() {
	log := tw.worlds[0].state(tw.t)
	require.Equal(tw.t, log, tw.worlds[1].state(tw.t))
	tw.hits += len(log)
}

// TestLikeGo drives random registrations, changes and calls through a world with
// the fast path and one whose handlers are all called through Go. They see the
// same hits in the same order, with the same registers, and miss the same ones.
func TestLikeGo(t *testing.T) {
	for _, kernel := range []string{"5.10", "6.1", "6.12"} {
		for _, optimize := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%v", kernel, optimize), func(t *testing.T) {
				c, _ := profile.Named(kernel)
				img, err := kprobelab.OpenImage("", &kimage.Options{Profile: c})
				require.NoError(t, err)
				crossed := [2]uint64{}
				rapid.Check(t, func(t *rapid.T) {
					tw := &twins{t: t, img: img}
					for n := range tw.worlds {
						tw.worlds[n] = newWorld(t, img, n == 0, optimize, 1)
						defer tw.worlds[n].m.Close()
					}
					tw.run()
					for n, w := range tw.worlds {
						crossed[n] += w.m.Crossings()
					}
				})
				t.Logf("calls into Go: %d, without the fast path %d", crossed[0], crossed[1])
				if !testing.Short() { // a short run may have no hit that comes a second time
					require.Less(t, crossed[0], crossed[1])
				}
			})
		}
	}
}

func (tw *twins) run() {
	tw.t.Repeat(map[string]func(*rapid.T){
		"kprobe":    func(t *rapid.T) { tw.t = t; tw.kprobe() },
		"kretprobe": func(t *rapid.T) { tw.t = t; tw.kretprobe() },
		"toggles":   func(t *rapid.T) { tw.t = t; tw.toggles() },
		"unregister": func(t *rapid.T) {
			tw.t = t
			tw.one(func(w *world, p *probe) error {
				if p.rp != nil {
					w.k.UnregisterKretprobe(p.rp)
				} else {
					w.k.UnregisterKprobe(p.kp)
				}
				return nil
			})
		},
		"disable": func(t *rapid.T) {
			tw.t = t
			tw.one(func(w *world, p *probe) error { return w.k.DisableKprobe(p.kprobe()) })
		},
		"enable": func(t *rapid.T) {
			tw.t = t
			tw.one(func(w *world, p *probe) error { return w.k.EnableKprobe(p.kprobe()) })
		},
		"settle": func(t *rapid.T) {
			tw.t = t
			tw.both(func(w *world) error { return w.k.Settle() })
		},
		"call":  func(t *rapid.T) { tw.t = t; tw.call() },
		"call2": func(t *rapid.T) { tw.t = t; tw.call() },
		"call3": func(t *rapid.T) { tw.t = t; tw.call() },
		"":      func(t *rapid.T) { tw.t = t; tw.same() },
	})
}
