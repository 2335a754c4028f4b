package running

import (
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/decoder"
	"kprobelab/errno"
	"kprobelab/kimage"
	"kprobelab/kprobes"
	"kprobelab/tracing"
	"kprobelab/x86"
)

// tracefs are the first lines of a program that uses the guest's own tracing.
const tracefs = "mkdir -p /t; mount -t tracefs t /t 2>/dev/null; cd /t; "

// killed is a shell command that counts the warnings in the guest's log. The guest's own ftrace
// writes them when it finds text that it did not write.
const killed = "; dmesg | grep -c 'WARNING\\|ftrace failed\\|BUG' "

// eachOrFirst tests every kernel in a soak, and 6.1 alone otherwise: all pairs on all kernels take
// ten minutes.
func eachOrFirst(t *testing.T, test func(t *testing.T, k *kernel)) {
	if os.Getenv("KPROBELAB_SOAK") == "" {
		t.Run("6.1", func(t *testing.T) { test(t, boot(t, "6.1")) })
		return
	}
	each(t, test)
}

// second returns the offset of a function's first instruction after its fentry site.
func (k *kernel) second(name string) uint32 {
	sym := k.Image.Lookup(name)
	require.Len(k.t, sym, 1)
	site, ok := k.Image.SiteIn(kimage.SiteFtrace, x86.Range{Start: sym[0].Addr, End: sym[0].Addr + 16})
	require.True(k.t, ok)
	return uint32(site.Addr.Sub(sym[0].Addr)) + 5
}

// The guest changes text that is ours, or has changed it before us. Both have the place: the guest finds the bytes that it
// expects, traces what it traces without us, and nothing is in its log; ours is hit in each call. When the guest
// has left, and when ours has, the other goes on.
func TestGuestsOwnTracingBesideOurs(t *testing.T) {
	ftrace := "echo vfs_read > set_ftrace_filter; echo function > current_tracer; "
	const event = "echo 'p:g/a PLACE' > kprobe_events; echo 1 > events/g/a/enable; "
	const use = "echo 1 > tracing_on; read x < /etc/hostname; echo 0 > tracing_on; "
	for _, c := range []struct {
		name  string
		guest string // PLACE is the entry of vfs_read, or its second instruction
		// second: ours and the guest's are there.
		second, ret, nopost bool
	}{
		{"function tracer", ftrace, false, false, true},
		{"function tracer, a post handler of ours", ftrace, false, false, false},
		{"function tracer, a return probe of ours", ftrace, false, true, true},
		{"kprobe event on the fentry site", event, false, false, true},
		{"kretprobe event on the fentry site", strings.Replace(event, "p:", "r:", 1), false, false, true},
		{"kretprobe event, a return probe of ours", strings.Replace(event, "p:", "r:", 1), false, true, true},
		{"kprobe event on an instruction that is an int3 or a jump of ours", event, true, false, true},
		{"two kprobe events one after another", event + "echo 0 > events/g/a/enable; echo 1 > events/g/a/enable; ", true, false, true},
		{"kprobe event that the guest makes a jump of", event + "sleep 1; ", true, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			eachOrFirst(t, func(t *testing.T, k *kernel) {
				k.restore()
				place := "vfs_read"
				if c.second {
					place = fmt.Sprintf("vfs_read+%d", k.second("vfs_read"))
				}
				guest := strings.ReplaceAll(c.guest, "PLACE", place)
				k.Kprobes.OnTaken(func(_ *kprobes.Kprobe, err *kprobes.TakenError) { t.Error(err) })
				defer k.Kprobes.OnTaken(nil)
				const lines = "grep vfs_read trace | grep -v '^#' | sed 's/ [0-9.]*: / /; s/-[0-9]* / /'"
				const off = "cd /t; echo nop > current_tracer; echo 0 > events/enable; echo > kprobe_events; echo > trace; sleep 1"
				alone := k.shell(tracefs + guest + use + lines + killed).out
				require.Contains(t, alone, "vfs_read")
				require.True(t, strings.HasSuffix(alone, "\n0\n"), alone)
				k.restore()

				plant := func() (hits *int, remove func()) {
					hits = new(int)
					if c.ret {
						rp := &kprobes.Kretprobe{Handler: func(i *kprobes.Instance, _ *x86.PtRegs) int {
							*hits++
							require.NotContains(t, k.Machine.Symbolize(i.RetAddr), "trampoline")
							return 0
						}}
						rp.KP.SymbolName = "vfs_read"
						require.NoError(t, k.Kprobes.RegisterKretprobe(rp))
						return hits, func() { k.Kprobes.UnregisterKretprobe(rp); require.NoError(t, k.Settle()) }
					}
					p := &kprobes.Kprobe{SymbolName: "vfs_read", PreHandler: func(*kprobes.Kprobe, *x86.PtRegs) int { *hits++; return 0 }}
					if c.second {
						p.Offset = k.second("vfs_read")
					}
					posts := 0
					if !c.nopost {
						p.PostHandler = func(*kprobes.Kprobe, *x86.PtRegs, uint64) { posts++ }
					}
					require.NoError(t, k.Kprobes.RegisterKprobe(p))
					return hits, func() {
						k.Kprobes.UnregisterKprobe(p)
						require.NoError(t, k.Settle())
						if !c.nopost {
							require.Equal(t, *hits, posts)
						}
					}
				}
				// reads counts the hits of ours while a shell reads a line.
				reads := func(hits *int) int {
					before := *hits
					require.Equal(t, "kprobelab\n", k.shell("read x < /etc/hostname; echo $x").out)
					return *hits - before
				}
				t.Run("ours first", func(t *testing.T) {
					hits, remove := plant()
					require.NoError(t, k.Settle())
					each := reads(hits)
					require.NotZero(t, each)
					require.Equal(t, alone, k.shell(tracefs+guest+use+lines+killed).out, "the guest traces as if ours were not there")
					require.Equal(t, each, reads(hits), "beside the guest's")
					require.Equal(t, "0\n", k.shell(off+killed).out)
					require.Equal(t, each, reads(hits), "the guest's has gone")
					require.NoError(t, k.Settle())
					require.Equal(t, each, reads(hits))
					remove()
				})
				k.restore()
				t.Run("the guest's first", func(t *testing.T) {
					require.Equal(t, alone, k.shell(tracefs+guest+use+lines+killed).out)
					hits, remove := plant()
					require.NoError(t, k.Settle())
					each := reads(hits)
					require.NotZero(t, each)
					require.Equal(t, alone, k.shell("cd /t; echo > trace; "+use+lines+killed).out)
					require.Equal(t, each, reads(hits))
					remove()
					require.Equal(t, alone, k.shell("cd /t; echo > trace; "+use+lines+killed).out, "ours has gone")
					hits, remove = plant()
					require.Equal(t, "0\n", k.shell(off+killed).out)
					require.Equal(t, each, reads(hits), "the guest's has gone")
					remove()
				})
			})
		})
	}
}

// A post handler waits for the end of the instruction. Where the guest steps that itself, ours is refused, or taken out.
func TestPostHandlerAtGuestsOwnProbe(t *testing.T) {
	eachOrFirst(t, func(t *testing.T, k *kernel) {
		k.restore()
		var taken []*kprobes.TakenError
		k.Kprobes.OnTaken(func(_ *kprobes.Kprobe, err *kprobes.TakenError) { taken = append(taken, err) })
		defer k.Kprobes.OnTaken(nil)
		hits := 0
		p := &kprobes.Kprobe{SymbolName: "vfs_read", Offset: k.second("vfs_read"), PreHandler: func(*kprobes.Kprobe, *x86.PtRegs) int { hits++; return 0 },
			PostHandler: func(*kprobes.Kprobe, *x86.PtRegs, uint64) {}}
		require.NoError(t, k.Kprobes.RegisterKprobe(p))
		require.Equal(t, "0\n", k.shell(fmt.Sprintf(tracefs+"echo 'p:g/a vfs_read+%d' > kprobe_events; echo 1 > events/g/a/enable; read x < /etc/hostname"+killed, p.Offset)).out)
		require.True(t, p.Gone())
		require.Len(t, taken, 1)
		require.ErrorIs(t, taken[0], errno.EBUSY)
		require.Contains(t, taken[0].Error(), "is taken out")
		k.Kprobes.UnregisterKprobe(p)

		again := &kprobes.Kprobe{SymbolName: "vfs_read", Offset: p.Offset, PreHandler: p.PreHandler, PostHandler: p.PostHandler}
		err := k.Kprobes.RegisterKprobe(again)
		require.ErrorIs(t, err, errno.EBUSY)
		require.Contains(t, err.Error(), "the booted kernel's own")
		again.PostHandler, again.Addr = nil, 0
		require.NoError(t, k.Kprobes.RegisterKprobe(again), "without a post handler it is beside the guest's")
		hits = 0
		require.Equal(t, "0\n", k.shell("read x < /etc/hostname"+killed).out)
		require.NotZero(t, hits)
		k.Kprobes.UnregisterKprobe(again)
		require.Equal(t, "0\n", k.shell("cd /t; echo 0 > events/enable; echo > kprobe_events; sleep 1"+killed).out)
		p.Addr = 0
		require.NoError(t, k.Kprobes.RegisterKprobe(p), "the place is free")
		k.Kprobes.UnregisterKprobe(p)
	})
}

// inJump is a place inside the bytes of a jump: the function, the offset of a probe of ours that becomes a
// jump, and the offsets of the other instructions that begin in its bytes.
type inJump struct {
	function string
	at       uint32
	inside   []uint32
}

// jumps finds a place where a probe of ours becomes a jump, with an instruction inside, in functions that
// reading a file passes: in n of them.
func (k *kernel) jumps(n int) (list []inJump) {
	for _, function := range []string{"vfs_read", "vfs_open", "do_dentry_open", "ksys_read", "do_filp_open", "filp_close", "may_open", "do_sys_openat2"} {
		sym := k.Image.Lookup(function)
		if len(sym) != 1 || len(list) == n {
			continue
		}
		insns := boundaries(k.t, k.Image, sym[0])
		for i, at := range insns {
			if !k.becomesJump(function, at) {
				continue
			}
			j := inJump{function: function, at: at}
			for _, other := range insns[i+1:] {
				if other < at+x86.Rel32Size {
					j.inside = append(j.inside, other)
				}
			}
			if len(j.inside) > 0 {
				list = append(list, j)
				break
			}
		}
	}
	require.NotEmpty(k.t, list)
	return list
}

// becomesJump reports whether a probe at a place becomes a jump.
func (k *kernel) becomesJump(function string, at uint32) bool {
	p := &kprobes.Kprobe{SymbolName: function, Offset: at, PreHandler: func(*kprobes.Kprobe, *x86.PtRegs) int { return 0 }}
	if k.Kprobes.RegisterKprobe(p) != nil {
		return false
	}
	require.NoError(k.t, k.Settle())
	jump := k.first(p.Addr) == 0xe9
	k.Kprobes.UnregisterKprobe(p)
	require.NoError(k.t, k.Settle())
	return jump
}

// first is the byte that is executed at a place.
func (k *kernel) first(at x86.Addr) byte {
	var b [1]byte
	require.NoError(k.t, k.Machine.ReadMem(at, b[:]))
	return b[0]
}

// boundaries are the offsets of a function's first instructions, up to the first that goes elsewhere.
func boundaries(t testing.TB, img *kimage.Image, sym kimage.Symbol) (list []uint32) {
	b := make([]byte, 64)
	b = b[:img.CodeAt(sym.Addr, b)]
	for at := 0; at < len(b)-decoder.MaxInsnSize; {
		i, err := decoder.Decode(b[at:])
		require.NoError(t, err)
		if _, goes := i.Target(sym.Addr); goes {
			break
		}
		list = append(list, uint32(at))
		at += i.Length
	}
	return list
}

// The guest's own kprobe in the bytes of a jump of ours: both are there, as two probes of a kernel would be. Ours is an int3 as long as
// the guest's is there, and a jump before and after.
func TestGuestsOwnProbeInsideAJump(t *testing.T) {
	n := 1
	if os.Getenv("KPROBELAB_SOAK") != "" {
		n = 8
	}
	eachOrFirst(t, func(t *testing.T, k *kernel) {
		for _, j := range k.jumps(n) {
			for _, inside := range j.inside {
				t.Run(fmt.Sprintf("%s+%d in %s+%d", j.function, inside, j.function, j.at), func(t *testing.T) {
					k.restore()
					k.Kprobes.OnTaken(func(_ *kprobes.Kprobe, err *kprobes.TakenError) { t.Error(err) })
					defer k.Kprobes.OnTaken(nil)
					hits := 0
					plant := func() *kprobes.Kprobe {
						p := &kprobes.Kprobe{SymbolName: j.function, Offset: j.at, PreHandler: func(*kprobes.Kprobe, *x86.PtRegs) int { hits++; return 0 }}
						require.NoError(t, k.Kprobes.RegisterKprobe(p))
						return p
					}
					same := func(text string) {
						t.Helper()
						before := hits
						got := k.shell("cd /t; echo 1 > events/g/a/enable; echo 1 > tracing_on; echo > trace; read x < /etc/hostname; echo 0 > tracing_on; grep -vc '^#' trace; " +
							"dmesg | grep -c 'WARNING\\|BUG'; " + text)
						lines := strings.Fields(got.out)
						require.Len(t, lines, 2, got.out+got.errors)
						require.Equal(t, "0", lines[1])
						require.NotEqual(t, "0", lines[0])
						// Ours also sees the calls around the lines that the guest traces.
						require.GreaterOrEqual(t, fmt.Sprint(hits-before), "1")
					}
					p := plant()
					require.NoError(t, k.Settle())
					require.Equal(t, byte(0xe9), k.first(p.Addr), "a jump")
					k.shell(fmt.Sprintf(tracefs+"echo 0 > tracing_on; echo 'p:g/a %s+%d' > kprobe_events; echo 1 > events/g/a/enable", j.function, inside))
					require.Equal(t, byte(0xcc), k.first(p.Addr), "the guest's probe is in it: an int3")
					require.False(t, p.Optimized())
					same("")
					require.NoError(t, k.Settle())
					require.Equal(t, byte(0xcc), k.first(p.Addr))
					k.shell("cd /t; echo 0 > events/g/a/enable; sleep 1")
					require.NoError(t, k.Settle())
					require.Equal(t, byte(0xe9), k.first(p.Addr), "the guest's is disabled: a jump again")
					k.Kprobes.UnregisterKprobe(p)

					// The guest's first.
					k.shell("cd /t; echo 1 > events/g/a/enable; sleep 1")
					p = plant()
					require.NoError(t, k.Settle())
					require.Equal(t, byte(0xcc), k.first(p.Addr))
					require.False(t, p.Optimized())
					same("")
					k.shell("cd /t; echo 0 > events/g/a/enable; echo > kprobe_events; sleep 1")
					require.NoError(t, k.Settle())
					require.Equal(t, byte(0xe9), k.first(p.Addr))
					before := hits
					require.Equal(t, "kprobelab\n", k.shell("read x < /etc/hostname; echo $x").out)
					require.NotEqual(t, before, hits)
					k.Kprobes.UnregisterKprobe(p)
					require.NoError(t, k.Settle())
				})
			}
		}
	})
}

// Other places of the same page, and of the same function, stay ours.
func TestGuestsOwnTracingLeavesOtherProbes(t *testing.T) {
	each(t, func(t *testing.T, k *kernel) {
		k.restore()
		hits := map[uint32]int{}
		for _, off := range []uint32{0, k.second("vfs_write")} {
			p := &kprobes.Kprobe{SymbolName: "vfs_write", Offset: off, PreHandler: func(p *kprobes.Kprobe, _ *x86.PtRegs) int { hits[off]++; return 0 }}
			require.NoError(t, k.Kprobes.RegisterKprobe(p))
			t.Cleanup(func() { k.Kprobes.UnregisterKprobe(p) })
		}
		require.NoError(t, k.Settle())
		k.Kprobes.OnTaken(func(_ *kprobes.Kprobe, err *kprobes.TakenError) { t.Error(err) })
		defer k.Kprobes.OnTaken(nil)
		got := k.shell(tracefs + "echo vfs_read > set_ftrace_filter; echo function > current_tracer; echo p vfs_write+9 2>/dev/null >> kprobe_events; echo hello; dmesg | grep -c WARN")
		require.Equal(t, "hello\n0\n", got.out)
		require.NotZero(t, hits[0])
		require.Equal(t, hits[0], hits[k.second("vfs_write")])
	})
}

// The function tracers of both sides trace one function.
func TestGuestsOwnTracingAndFunctionTracer(t *testing.T) {
	each(t, func(t *testing.T, k *kernel) {
		k.restore()
		tr, err := k.Tracing(&tracing.Options{})
		require.NoError(t, err)
		defer tr.Close()
		write := func(name, text string) {
			h, err := tr.OpenFile(name, 1)
			require.NoError(t, err)
			_, err = h.WriteAt([]byte(text), 0)
			require.NoError(t, err)
		}
		write("set_ftrace_filter", "vfs_read vfs_open")
		write("current_tracer", "function")
		got := k.shell(tracefs + "echo vfs_read > set_ftrace_filter; echo function > current_tracer; cat /etc/hostname; dmesg | grep -c WARN")
		require.Equal(t, "kprobelab\n0\n", got.out)
		text, err := fs.ReadFile(tr, "trace")
		require.NoError(t, err)
		require.Contains(t, string(text), "vfs_open")
		before := strings.Count(string(text), "vfs_read")
		require.Equal(t, "kprobelab\n", k.shell("cat /etc/hostname").out)
		text, err = fs.ReadFile(tr, "trace")
		require.NoError(t, err)
		require.Greater(t, strings.Count(string(text), "vfs_read"), before, "beside the guest's")
		require.Equal(t, "0\n", k.shell("cd /t; echo nop > current_tracer; cat /etc/hostname > /dev/null; dmesg | grep -c WARN").out)
		write("current_tracer", "nop")
	})
}
