package watchpoints

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/errno"
	"kprobelab/internal/engine"
	"kprobelab/internal/tinyguest"
	"kprobelab/machine"
	"kprobelab/watch"
	"kprobelab/x86"
)

// data is writable memory that the functions get the address of.
const data = tinyguest.DataBase + machine.PageSize

// told is a reported hit, as the tests compare it.
type told struct {
	ip       x86.Addr
	kinds    uint32
	old, new uint64
}

// each runs a test on every engine, with a guest of these functions.
func each(t *testing.T, img *tinyguest.Image, test func(t *testing.T, m *machine.Machine, s *watch.Set)) {
	for _, name := range engine.Names() {
		t.Run(name, func(t *testing.T) {
			e, err := engine.Named(name)
			require.NoError(t, err)
			m, err := e.New(img, nil)
			require.NoError(t, err)
			t.Cleanup(func() { _ = m.Close() })
			test(t, m, watch.NewSet(m))
		})
	}
}

func point(at x86.Addr, length, kinds uint32, h watch.Handler) *watch.Watchpoint {
	return &watch.Watchpoint{Addr: at, Len: length, Kinds: kinds, CPU: watch.Any, Task: watch.Any, Handler: h}
}

// keep appends the reported hits to a list.
func keep(list *[]told) watch.Handler {
	return func(_ *watch.Watchpoint, h *watch.Hit, regs *x86.PtRegs) {
		*list = append(*list, told{x86.Addr(regs.IP), h.Kinds, h.Old, h.New})
	}
}

const (
	r  = machine.WatchRead
	w  = machine.WatchWrite
	rw = r | w
	x  = machine.WatchExec
)

func TestOneAccess(t *testing.T) {
	img := &tinyguest.Image{}
	inc := img.Add("inc", 0xff, 0x07, 0xc3)                                               // incl (%rdi); ret
	mov := img.Add("mov", 0x48, 0x89, 0x37, 0xc3)                                         // mov %rsi,(%rdi); ret
	load := img.Add("load", 0x48, 0x8b, 0x07, 0xc3)                                       // mov (%rdi),%rax; ret
	rep := img.Add("rep", 0xb9, 3, 0, 0, 0, 0x31, 0xc0, 0xf3, 0xaa, 0xc3)                 // mov $3,%ecx; xor %eax,%eax; rep stosb; ret
	reps := img.Add("reps", 0x31, 0xc9, 0xf3, 0xaa, 0xc3)                                 // xor %ecx,%ecx; rep stosb; ret
	fault := img.Add("fault", 0x48, 0x89, 0xfe, 0x31, 0xff, 0xa4, 0xc3)                   // mov %rdi,%rsi; xor %edi,%edi; movsb; ret
	jump := img.Add("jump", 0xeb, 0, 0x87, 0x37, 0xeb, 0, 0xc3)                           // jmp 1f; 1: xchg %esi,(%rdi); jmp 1f; 1: ret
	count := img.Add("count", 0xb9, 3, 0, 0, 0, 0xff, 0x07, 0xff, 0xc9, 0x75, 0xfa, 0xc3) // mov $3,%ecx; 1: incl (%rdi); dec %ecx; jne 1b; ret
	ahead := img.Add("ahead", 0x0f, 0x18, 0x0f, 0x48, 0x8d, 0x07, 0x0f, 0x1f, 0x07, 0xc3) // prefetcht0 (%rdi); lea (%rdi),%rax; nopl (%rdi); ret
	swap := img.Add("swap", 0x31, 0xc0, 0xf0, 0x0f, 0xb1, 0x37, 0xc3)                     // xor %eax,%eax; lock cmpxchg %esi,(%rdi); ret
	for _, c := range []struct {
		name          string
		fn            x86.Addr
		at            x86.Addr // the argument
		watch         x86.Addr
		length, kinds uint32
		want          []told
		fails         bool
	}{
		{name: "trap_after_the_instruction", fn: inc, at: data, watch: data, length: 4, kinds: w, want: []told{{inc + 2, w, 7, 8}}},
		{name: "both_accesses_of_one_instruction", fn: inc, at: data, watch: data, length: 4, kinds: rw, want: []told{{inc + 2, rw, 7, 8}}},
		{name: "read_of_what_is_read_and_written", fn: inc, at: data, watch: data, length: 4, kinds: r, want: []told{{inc + 2, r, 7, 8}}},
		{name: "read_is_no_write", fn: load, at: data, watch: data, length: 8, kinds: w},
		{name: "overlap_from_below", fn: mov, at: data - 4, watch: data, length: 1, kinds: w, want: []told{{mov + 3, w, 7, 0}}, fails: true},
		{name: "overlap_unaligned", fn: mov, at: data + 1, watch: data, length: 8, kinds: w, want: []told{{mov + 3, w, 7, 7}}},
		{name: "byte_after_the_access", fn: inc, at: data, watch: data + 4, length: 1, kinds: rw},
		{name: "byte_before_the_access", fn: inc, at: data + 1, watch: data, length: 1, kinds: rw},
		{name: "watch_over_two_pages", fn: inc, at: data + machine.PageSize, watch: data + machine.PageSize - 4, length: 8, kinds: w, want: []told{{inc + 2, w, 0, 1 << 32}}},
		{name: "access_over_two_pages", fn: mov, at: data + machine.PageSize - 3, watch: data + machine.PageSize + 4, length: 1, kinds: rw, want: []told{{mov + 3, w, 0, 0}}},
		{name: "access_over_two_pages_ends_before", fn: load, at: data + machine.PageSize - 3, watch: data + machine.PageSize + 5, length: 1, kinds: rw},
		{name: "each_iteration", fn: rep, at: data, watch: data, length: 8, kinds: w, want: []told{{rep + 7, w, 7, 0}, {rep + 7, w, 0, 0}, {rep + 9, w, 0, 0}}},
		{name: "no_iteration", fn: reps, at: data, watch: data, length: 8, kinds: w},
		{name: "before_the_instruction", fn: inc, at: data, watch: inc + 2, length: 1, kinds: x, want: []told{{inc + 2, x, 0xc3, 0xc3}}},
		{name: "inside_an_instruction", fn: inc, at: data, watch: inc + 1, length: 1, kinds: x},
		{name: "before_the_first_iteration", fn: rep, at: data, watch: rep + 7, length: 1, kinds: x, want: []told{{rep + 7, x, 0xf3, 0xf3}}},
		{name: "each_time_in_a_loop", fn: count, at: data, watch: count + 5, length: 1, kinds: x, want: []told{{count + 5, x, 0xff, 0xff}, {count + 5, x, 0xff, 0xff}, {count + 5, x, 0xff, 0xff}}},
		{name: "first_of_a_block_that_a_jump_ends", fn: jump, at: data, watch: data, length: 4, kinds: w, want: []told{{jump + 4, w, 7, 0}}},
		{name: "prefetch_lea_and_nop", fn: ahead, at: data, watch: data, length: 8, kinds: rw},
		{name: "cmpxchg_that_compares_unequal", fn: swap, at: data, watch: data, length: 4, kinds: w, want: []told{{swap + 6, w, 7, 7}}},
		{name: "instruction_that_faults", fn: fault, at: data, watch: data, length: 1, kinds: r, fails: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			each(t, img, func(t *testing.T, m *machine.Machine, s *watch.Set) {
				require.NoError(t, m.WriteMem(data, []byte{7, 0, 0, 0, 0, 0, 0, 0}))
				var got []told
				require.NoError(t, s.Add(point(c.watch, c.length, c.kinds, keep(&got))))
				_, err := m.CallAddr(c.fn, uint64(c.at))
				if c.fails && c.at >= data {
					require.Error(t, err)
				}
				if c.at < data {
					require.Error(t, err, "the page before is read-only")
					require.Empty(t, got)
					return
				}
				require.Equal(t, c.want, got)
			})
		})
	}
}

// The accesses of one instruction to several are reported at once, each with its own value.
func TestSeveralOfOneInstruction(t *testing.T) {
	img := &tinyguest.Image{}
	mov := img.Add("mov", 0x48, 0x89, 0x37, 0xc3)
	each(t, img, func(t *testing.T, m *machine.Machine, s *watch.Set) {
		var hits []machine.WatchHit
		calls := 0
		list := []machine.Watch{{Addr: data + 4, Len: 4, Kinds: w}, {Addr: data, Len: 2, Kinds: w}, {Addr: data, Len: 8, Kinds: rw}, {Addr: data, Len: 8, Kinds: r}}
		require.NoError(t, m.Watch(list, func(h []machine.WatchHit, _ *x86.PtRegs) {
			calls++
			hits = append(hits, h...)
		}))
		_, err := m.CallAddr(mov, uint64(data), 0x1122334455667788)
		require.NoError(t, err)
		require.Equal(t, 1, calls)
		require.ElementsMatch(t, []machine.WatchHit{
			{Watch: 0, Kinds: w, New: 0x11223344}, {Watch: 1, Kinds: w, New: 0x7788}, {Watch: 2, Kinds: w, New: 0x1122334455667788},
		}, hits)
	})
}

// A handler changes registers and memory, and where the CPU goes on.
func TestHandlerDecides(t *testing.T) {
	img := &tinyguest.Image{}
	//	mov %rsi,(%rdi); mov $1,%eax; ret; mov $2,%eax; ret
	f := img.Add("f", 0x48, 0x89, 0x37, 0xb8, 1, 0, 0, 0, 0xc3, 0xb8, 2, 0, 0, 0, 0xc3)
	g := img.Add("g", 0x31, 0xc0, 0x39, 0xc0, 0x48, 0x8b, 0x07, 0x0f, 0x94, 0xc1, 0x48, 0x01, 0xc8, 0xc3) // xor %eax,%eax; cmp %eax,%eax; mov (%rdi),%rax; sete %cl; add %rcx,%rax; ret
	each(t, img, func(t *testing.T, m *machine.Machine, s *watch.Set) {
		at := point(data, 8, w, func(_ *watch.Watchpoint, _ *watch.Hit, regs *x86.PtRegs) { regs.IP += 6 })
		require.NoError(t, s.Add(at))
		v, err := m.CallAddr(f, uint64(data))
		require.NoError(t, err)
		require.Equal(t, uint64(2), v, "it has left the block")
		require.NoError(t, s.Remove(at))
		v, err = m.CallAddr(f, uint64(data))
		require.NoError(t, err)
		require.Equal(t, uint64(1), v)

		require.NoError(t, s.Add(point(data, 8, r, func(_ *watch.Watchpoint, _ *watch.Hit, regs *x86.PtRegs) {
			regs.AX, regs.Flags = 40, regs.Flags&^0x40
		})))
		v, err = m.CallAddr(g, uint64(data))
		require.NoError(t, err)
		require.Equal(t, uint64(40), v, "the flags are the handler's, too")
	})
}

// Flags that the handler does not change survive a hit.
func TestFlagsLive(t *testing.T) {
	img := &tinyguest.Image{}
	// xor %ecx,%ecx; cmp %rsi,%rdx; mov (%rdi),%rax; setb %cl; adc %rcx,%rcx; mov %rcx,%rax; ret
	f := img.Add("f", 0x31, 0xc9, 0x48, 0x39, 0xf2, 0x48, 0x8b, 0x07, 0x0f, 0x92, 0xc1, 0x48, 0x11, 0xc9, 0x48, 0x89, 0xc8, 0xc3)
	each(t, img, func(t *testing.T, m *machine.Machine, s *watch.Set) {
		var got []told
		require.NoError(t, s.Add(point(data, 8, r, keep(&got))))
		for _, c := range []struct{ si, dx, want uint64 }{{5, 3, 3}, {3, 5, 0}} {
			v, err := m.CallAddr(f, uint64(data), c.si, c.dx)
			require.NoError(t, err)
			require.Equal(t, c.want, v)
		}
		require.Len(t, got, 2)
	})
}

// Guest code that a handler calls hits nothing, and neither do the host's writes.
func TestHandlersAndTheHostHitNothing(t *testing.T) {
	img := &tinyguest.Image{}
	inc := img.Add("inc", 0xff, 0x07, 0xc3)
	each(t, img, func(t *testing.T, m *machine.Machine, s *watch.Set) {
		hits := 0
		require.NoError(t, s.Add(point(data, 4, rw, func(*watch.Watchpoint, *watch.Hit, *x86.PtRegs) {
			hits++
			_, err := m.CallAddr(inc, uint64(data))
			require.NoError(t, err)
			require.NoError(t, m.WriteMem(data+4, []byte{1}))
		})))
		require.NoError(t, m.WriteMem(data, make([]byte, 4)))
		_, err := m.CallAddr(inc, uint64(data))
		require.NoError(t, err)
		require.Equal(t, 1, hits)
		var b [4]byte
		require.NoError(t, m.ReadMem(data, b[:]))
		require.Equal(t, byte(2), b[0])
	})
}

// A poke of watched text is the host's; the int3 that it leaves is executed after the hit.
func TestTextPoke(t *testing.T) {
	img := &tinyguest.Image{}
	f := img.Add("f", 0xb8, 1, 0, 0, 0, 0xc3)
	each(t, img, func(t *testing.T, m *machine.Machine, s *watch.Set) {
		var order []string
		say := func(what string) watch.Handler {
			return func(*watch.Watchpoint, *watch.Hit, *x86.PtRegs) { order = append(order, what) }
		}
		require.NoError(t, s.Add(point(f, 1, x, say("execute"))))
		require.NoError(t, s.Add(point(f, 1, rw, say("data"))))
		m.SetTraps(&tinyguest.Traps{OnInt3: func(regs *x86.PtRegs) bool {
			order = append(order, "int3")
			regs.AX, regs.IP = 1, uint64(f)+5
			return true
		}})
		require.NoError(t, m.PokeText(f, []byte{0xcc}))
		_, err := m.CallAddr(f)
		require.NoError(t, err)
		require.Equal(t, []string{"execute", "int3"}, order)
	})
}

// Watchpoints that come and go inside a handler hold from the next block on.
func TestSetInsideAHandler(t *testing.T) {
	img := &tinyguest.Image{}
	f := img.Add("f", 0xcc, 0xff, 0x07, 0xcc, 0xff, 0x07, 0xc3) // int3; incl (%rdi); int3; incl (%rdi); ret
	each(t, img, func(t *testing.T, m *machine.Machine, s *watch.Set) {
		var got []told
		at := point(data, 4, w, keep(&got))
		traps := 0
		m.SetTraps(&tinyguest.Traps{OnInt3: func(*x86.PtRegs) bool {
			if traps++; traps == 1 {
				require.NoError(t, s.Add(at))
			} else {
				require.NoError(t, s.Remove(at))
			}
			return true
		}})
		_, err := m.CallAddr(f, uint64(data))
		require.NoError(t, err)
		require.Equal(t, []told{{f + 3, w, 0, 1}}, got)
		require.Equal(t, 2, traps)
	})
}

// A debug trap of the trap flag comes after the hits of its instruction.
func TestSingleStep(t *testing.T) {
	img := &tinyguest.Image{}
	f := img.Add("f", 0xcc, 0xff, 0x07, 0xff, 0x07, 0xc3) // int3; incl (%rdi); incl (%rdi); ret
	each(t, img, func(t *testing.T, m *machine.Machine, s *watch.Set) {
		var order []x86.Addr
		require.NoError(t, s.Add(point(data, 4, w, func(_ *watch.Watchpoint, _ *watch.Hit, regs *x86.PtRegs) {
			order = append(order, x86.Addr(regs.IP))
		})))
		m.SetTraps(&tinyguest.Traps{
			OnInt3: func(regs *x86.PtRegs) bool { regs.Flags |= x86.FlagTF; return true },
			OnDebug: func(regs *x86.PtRegs) bool {
				order = append(order, 0)
				regs.Flags &^= x86.FlagTF
				return true
			},
		})
		_, err := m.CallAddr(f, uint64(data))
		require.NoError(t, err)
		require.Equal(t, []x86.Addr{f + 3, 0, f + 5}, order)
	})
}

// The virtual clock of a run that hits nothing equals the clock of a run without watchpoints.
func TestCountsAreTheSame(t *testing.T) {
	img := &tinyguest.Image{}
	count := img.Add("count", 0xb9, 30, 0, 0, 0, 0xff, 0x07, 0xff, 0xc9, 0x75, 0xfa, 0xc3)
	each(t, img, func(t *testing.T, m *machine.Machine, s *watch.Set) {
		call := func() uint64 {
			was := m.Instructions()
			_, err := m.CallAddr(count, uint64(data))
			require.NoError(t, err)
			return m.Instructions() - was
		}
		without := call()
		hits := 0
		require.NoError(t, s.Add(point(data+64, 4, rw, nil)))
		require.Equal(t, without, call())
		require.NoError(t, s.Add(point(data, 4, rw, func(*watch.Watchpoint, *watch.Hit, *x86.PtRegs) { hits++ })))
		from, ran := m.Now(), call()
		require.Equal(t, without, ran)
		require.Equal(t, 30, hits)
		require.EqualValues(t, ran+30*100, m.Now()-from, "a hit takes the time of a trap")
		require.NoError(t, s.Add(point(count+5, 1, x, nil)))
		require.Equal(t, without, call())
	})
}

func TestRefused(t *testing.T) {
	each(t, tinyguest.Loop(), func(t *testing.T, m *machine.Machine, s *watch.Set) {
		for _, c := range []struct {
			name          string
			at            x86.Addr
			length, kinds uint32
		}{
			{"no_length", data, 0, w}, {"three_bytes", data, 3, w}, {"sixteen_bytes", data, 16, w},
			{"no_access", data, 4, 0}, {"execute_and_write", data, 4, x | w}, {"past_the_last_address", ^x86.Addr(0), 8, w},
		} {
			require.ErrorIs(t, s.Add(point(c.at, c.length, c.kinds, nil)), errno.EINVAL, c.name)
		}
		one := point(data, 4, w, nil)
		require.NoError(t, s.Add(one))
		require.ErrorIs(t, s.Add(one), errno.EBUSY)
		many := make([]machine.Watch, machine.MaxWatches)
		for i := range many {
			many[i] = machine.Watch{Addr: data + x86.Addr(i%0x800), Len: 1, Kinds: machine.WatchWrite}
		}
		require.NoError(t, m.Watch(many, func([]machine.WatchHit, *x86.PtRegs) {}))
		require.ErrorIs(t, m.Watch(append(many, many[0]), nil), errno.ENOSPC)
	})
}

// A hit allocates nothing: a thousand cost as many as ten.
func TestHitAllocatesNothing(t *testing.T) {
	img := &tinyguest.Image{}
	// mov %rsi,%rcx; 1: incl (%rdi); dec %ecx; jne 1b; ret
	count := img.Add("count", 0x48, 0x89, 0xf1, 0xff, 0x07, 0xff, 0xc9, 0x75, 0xfa, 0xc3)
	each(t, img, func(t *testing.T, m *machine.Machine, s *watch.Set) {
		hits := 0
		require.NoError(t, s.Add(point(data, 4, w, func(*watch.Watchpoint, *watch.Hit, *x86.PtRegs) { hits++ })))
		cost := func(n uint64) float64 {
			return testing.AllocsPerRun(20, func() {
				_, err := m.CallAddr(count, uint64(data), n)
				require.NoError(t, err)
			})
		}
		few, many := cost(10), cost(1000)
		require.Positive(t, hits)
		require.InDelta(t, few, many, 2)
	})
}

// BenchmarkHit is a loop of one access, without a watchpoint, with one elsewhere, with one
// that is hit.
func BenchmarkHit(b *testing.B) {
	img := &tinyguest.Image{}
	count := img.Add("count", 0x48, 0x89, 0xf1, 0xff, 0x07, 0xff, 0xc9, 0x75, 0xfa, 0xc3)
	for _, name := range engine.Names() {
		e, err := engine.Named(name)
		require.NoError(b, err)
		for _, c := range []struct {
			name string
			at   x86.Addr
		}{{"none", 0}, {"elsewhere", data + 64}, {"hit", data}} {
			b.Run(name+"/"+c.name, func(b *testing.B) {
				m, err := e.New(img, &machine.Options{Budget: 1 << 50})
				require.NoError(b, err)
				defer m.Close()
				s := watch.NewSet(m)
				if c.at != 0 {
					require.NoError(b, s.Add(point(c.at, 4, w, func(*watch.Watchpoint, *watch.Hit, *x86.PtRegs) {})))
				}
				b.ReportAllocs()
				_, err = m.CallAddr(count, uint64(data), uint64(b.N))
				require.NoError(b, err)
			})
		}
	}
}
