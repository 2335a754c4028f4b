package userprobe_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/decoder"
	"kprobelab/errno"
	"kprobelab/internal/engine"
	"kprobelab/internal/process"
	"kprobelab/internal/tinyprogram"
	"kprobelab/internal/userprobe"
	"kprobelab/profile"
	"kprobelab/uprobes"
	"kprobelab/x86"
)

func rules(t testing.TB, release string) *profile.Config {
	c, ok := profile.Named(release)
	require.True(t, ok)
	return c
}

func program(t testing.TB, data []byte, functions ...string) *process.File {
	var list []tinyprogram.Function
	for i, text := range functions {
		list = append(list, tinyprogram.Function{Name: fmt.Sprintf("f%d", i), Text: text})
	}
	b, err := tinyprogram.Build(data, list...)
	require.NoError(t, err)
	return &process.File{Name: "/bin/prog", Data: b}
}

// run runs a program with probes that set has registered.
func run(t testing.TB, engineName string, c *profile.Config, f *process.File, set func(k *userprobe.Probes)) (*process.Process, *userprobe.Probes, process.Exit) {
	e, err := engine.Named(engineName)
	require.NoError(t, err)
	k := userprobe.New(c)
	set(k)
	p, err := process.New(process.Config{Program: f, Tracer: k}, e.New)
	require.NoError(t, err)
	t.Cleanup(p.Close)
	x, err := p.Run()
	require.NoError(t, err)
	return p, k, x
}

func onEngines(t *testing.T, do func(t *testing.T, name string)) {
	for _, name := range engine.Names() {
		t.Run(name, func(t *testing.T) { do(t, name) })
	}
}

const exit = "\nmov $0x3c,%eax\nsyscall"

// own returns the program's own registers at the exit: it clears the registers that the syscall
// instruction sets to the place where it was executed.
func own(r x86.PtRegs) x86.PtRegs {
	r.IP, r.CX, r.R11, r.Flags = 0, 0, 0, r.Flags&^x86.FlagTF
	return r
}

// boundaries are the file offsets of all instructions of the program's two functions.
func boundaries(t *testing.T, f *process.File) (list []uint64) {
	for n := range 2 {
		for at := tinyprogram.Offset(n); f.Data[at] != 0xcc; {
			list = append(list, at)
			k, err := decoder.DecodeKernel(f.Data[at:], &rules(t, "7.3").Decoder)
			require.NoError(t, err)
			at += uint64(k.Length)
		}
	}
	return list
}

// Rule: a program behaves the same with a probe on each of its instructions as without.
func TestInstructions(t *testing.T) {
	// Each line is an instruction of its own, after some that prepare it. Target is f1, which
	// returns 0x77 in eax.
	const f1 = "mov $0x77,%eax\nret"
	for name, text := range map[string]string{
		"push_and_pop":         "mov $0x5,%ebx\npush %rbx\npop %rdi",
		"push_of_sp":           "push %rsp\npop %rdi\nsub %rsp,%rdi",
		"call":                 "call 0x401080\nmov %eax,%edi",
		"call_through_reg":     "mov $0x401080,%ebx\ncall *%rbx\nmov %eax,%edi",
		"call_through_memory":  "mov $0x402010,%ebx\nmovq $0x401080,(%rbx)\ncall *(%rbx)\nmov %eax,%edi",
		"jump":                 "mov $0x6,%edi\njmp out\nmov $0x9,%edi\nout: nop",
		"jump_through_reg":     "mov $0x6,%edi\nlea 0x3(%rip),%rbx\njmp *%rbx\nnop\nmov $0x7,%edi",
		"jump_taken":           "xor %edi,%edi\ntest %edi,%edi\nje out\nmov $0x9,%edi\nout: nop",
		"jump_not_taken":       "xor %edi,%edi\ntest %edi,%edi\njne out\nmov $0x9,%edi\nout: nop",
		"jump_if_less":         "mov $0x1,%edi\ncmp $0x2,%edi\njl out\nmov $0x9,%edi\nout: nop",
		"jump_if_above":        "mov $0x3,%edi\ncmp $0x2,%edi\nja out\nmov $0x9,%edi\nout: nop",
		"rip_relative":         "lea 0x1000(%rip),%rsi\nmov 0xff9(%rip),%edi",
		"rip_relative_rsi":     "mov $0x5,%esi\nadd 0xff0(%rip),%esi\nmov %esi,%edi",
		"rip_relative_both":    "mov $0x5,%esi\nmov $0x6,%edi\nadd %esi,0xff0(%rip)\nadd 0xff0(%rip),%edi",
		"flags_stay":           "stc\nmov $0x0,%edi\nadc $0x0,%edi",
		"loop":                 "mov $0x5,%ecx\nxor %edi,%edi\nagain: add %ecx,%edi\ndec %ecx\njne again",
		"system_call_then_mov": "mov $0x27,%eax\nsyscall\nmov %eax,%edi",
		"nop5":                 "nopl 0x0(%rax,%rax,1)\nmov $0x5,%edi",
		"popf_alone":           "push $0x247\npopf\nmov $0x0,%edi\nadc $0x0,%edi",
	} {
		t.Run(name, func(t *testing.T) {
			onEngines(t, func(t *testing.T, en string) {
				f := program(t, []byte{3, 1, 4, 1}, text+exit, f1)
				releases := []string{"6.1"}
				if en == "interp" && !testing.Short() { // a machine of Unicorn takes long to make
					releases = []string{"4.14", "7.3"}
				}
				all := boundaries(t, f)
				for _, release := range releases {
					sets := [][]uint64{all}
					for _, at := range all {
						if en == "interp" {
							sets = append(sets, []uint64{at})
						}
					}
					c := rules(t, release)
					_, _, want := run(t, en, c, f, func(*userprobe.Probes) {})
					for _, set := range sets {
						_, k, got := run(t, en, c, f, func(k *userprobe.Probes) {
							for _, at := range set {
								require.NoError(t, k.Register(f, at, 0, &userprobe.Consumer{Hit: func(*x86.PtRegs) {}}))
							}
						})
						require.True(t, k.Stats.Hits > 0 || set[0] != tinyprogram.Offset(0))
						require.Equal(t, want.Signal, got.Signal, "%s at %#x", release, set)
						require.Equal(t, want.Code, got.Code, "%s at %#x", release, set)
						require.Equal(t, own(want.Regs), own(got.Regs), "%s at %#x", release, set)
					}
				}
			})
		})
	}
}

// Rule: consumers are called the last first, and each once a hit.
func TestConsumers(t *testing.T) {
	onEngines(t, func(t *testing.T, en string) {
		f := program(t, nil, "call 0x401080\ncall 0x401080\nxor %edi,%edi"+exit, "nop\nret")
		var order []string
		make := func(name string) *userprobe.Consumer {
			return &userprobe.Consumer{Hit: func(regs *x86.PtRegs) {
				require.Equal(t, uint64(tinyprogram.At(1)), regs.IP)
				order = append(order, name)
			}}
		}
		a, b := make("a"), make("b")
		run(t, en, rules(t, "6.1"), f, func(k *userprobe.Probes) {
			require.NoError(t, k.Register(f, tinyprogram.Offset(1), 0, a))
			require.NoError(t, k.Register(f, tinyprogram.Offset(1), 0, b))
		})
		require.Equal(t, []string{"b", "a", "b", "a"}, order)
		require.Equal(t, uint64(2), a.Hits)
	})
}

// Rule: a return probe sees each return once, the innermost first, whatever the trampoline is made of.
func TestReturns(t *testing.T) {
	// f1 counts edi down by calling itself; f2 tail-calls it.
	recursive := "dec %edi\njs out\npush %rdi\ncall 0x401080\npop %rax\nout: ret"
	for _, release := range []string{"6.1", "6.12"} {
		t.Run(release, func(t *testing.T) {
			onEngines(t, func(t *testing.T, en string) {
				f := program(t, nil, "mov $0x3,%edi\ncall 0x401100\nmov %eax,%edi"+exit, recursive, "jmp 0x401080")
				_, _, want := run(t, en, rules(t, release), f, func(*userprobe.Probes) {})
				var order []string
				note := func(name string) *userprobe.Consumer {
					return &userprobe.Consumer{Returned: func(function x86.Addr, regs *x86.PtRegs) {
						order = append(order, fmt.Sprintf("%s %#x", name, regs.IP))
						require.Contains(t, []x86.Addr{tinyprogram.At(1), tinyprogram.At(2)}, function)
					}}
				}
				p, k, x := run(t, en, rules(t, release), f, func(k *userprobe.Probes) {
					require.NoError(t, k.Register(f, tinyprogram.Offset(1), 0, note("recursive")))
					require.NoError(t, k.Register(f, tinyprogram.Offset(2), 0, note("tail")))
				})
				require.Equal(t, want.Code, x.Code)
				require.Equal(t, uint64(5), k.Stats.Returns)
				require.Zero(t, k.Stats.Unwound)
				// The tail call's function returns with the one that it jumped to.
				require.Equal(t, "recursive 0x40100a tail 0x40100a", strings.Join(order[3:], " "))
				v := p.At(process.XOLHint)
				require.NotNil(t, v)
				require.Equal(t, "7fffffffe000-7ffffffff000 --xp 00000000 [uprobes]", v.String())
			})
		})
	}
}

// Rule: calls that longjmp has left are dropped when a function returns past them, by the
// stack pointer.
func TestLongjmp(t *testing.T) {
	onEngines(t, func(t *testing.T, en string) {
		// f1 keeps its stack pointer and calls f2, which goes back to it without a return.
		f := program(t, nil, "call 0x401080\ncall 0x401080\nxor %edi,%edi"+exit,
			"mov %rsp,%rbx\ncall 0x401100\nud2", "push %rax\nmov %rbx,%rsp\nret")
		returned := 0
		consumer := func() *userprobe.Consumer {
			return &userprobe.Consumer{Returned: func(x86.Addr, *x86.PtRegs) { returned++ }}
		}
		_, k, x := run(t, en, rules(t, "6.1"), f, func(k *userprobe.Probes) {
			require.NoError(t, k.Register(f, tinyprogram.Offset(1), 0, consumer()))
			require.NoError(t, k.Register(f, tinyprogram.Offset(2), 0, consumer()))
		})
		require.Zero(t, x.Code)
		require.Zero(t, x.Signal)
		require.Equal(t, 2, returned)
		require.Equal(t, uint64(2), k.Stats.Unwound)
	})
}

// Rule: 64 returns of a task can be probed at once; deeper calls are left alone, and the log
// says so.
func TestDepth(t *testing.T) {
	onEngines(t, func(t *testing.T, en string) {
		f := program(t, nil, "mov $0x50,%edi\ncall 0x401080\nxor %edi,%edi"+exit, "dec %edi\njs out\ncall 0x401080\nout: ret")
		consumer := &userprobe.Consumer{Returned: func(x86.Addr, *x86.PtRegs) {}}
		var log []string
		_, _, x := run(t, en, rules(t, "6.1"), f, func(k *userprobe.Probes) {
			k.OnLog = func(line string) { log = append(log, line) }
			require.NoError(t, k.Register(f, tinyprogram.Offset(1), 0, consumer))
		})
		require.Zero(t, x.Signal)
		require.Equal(t, uint64(81), consumer.Hits)
		require.Equal(t, uint64(64), consumer.Returns)
		require.Equal(t, uint64(17), consumer.Missed)
		require.Equal(t, "uprobe: omit uretprobe due to nestedness limit pid/tgid=100/100", log[0])
	})
}

// Rule: the program can read a probe's reference counter, which is decremented when the probe goes.
func TestReferenceCounter(t *testing.T) {
	onEngines(t, func(t *testing.T, en string) {
		f := program(t, []byte{0, 0, 5, 0}, "mov $0x402002,%ebx\nmovzwl (%rbx),%edi"+exit, "ret")
		const counter = 2*4096 + 2
		_, _, x := run(t, en, rules(t, "6.1"), f, func(k *userprobe.Probes) {
			require.NoError(t, k.Register(f, tinyprogram.Offset(1), counter, &userprobe.Consumer{}))
			require.ErrorIs(t, k.Register(f, tinyprogram.Offset(1), 0, &userprobe.Consumer{}), errno.EINVAL)
			require.ErrorIs(t, k.Register(f, tinyprogram.Offset(0), counter+1, &userprobe.Consumer{}), errno.EINVAL)
		})
		require.Equal(t, 6, x.Code)
	})
}

// Rule: an unregistered probe leaves the text and the counter as they were.
func TestUnregister(t *testing.T) {
	f := program(t, []byte{7, 0}, "xor %edi,%edi"+exit)
	e, err := engine.Named("")
	require.NoError(t, err)
	k := userprobe.New(rules(t, "6.1"))
	p, err := process.New(process.Config{Program: f, Tracer: k}, e.New)
	require.NoError(t, err)
	defer p.Close()
	read := func(at x86.Addr) byte {
		var b [1]byte
		require.NoError(t, p.Read(at, b[:]))
		return b[0]
	}
	a, b := &userprobe.Consumer{}, &userprobe.Consumer{}
	for _, c := range []*userprobe.Consumer{a, b} {
		require.NoError(t, k.Register(f, tinyprogram.Offset(0), 2*4096, c))
	}
	for _, c := range []*userprobe.Consumer{a, b} {
		require.Equal(t, byte(0xcc), read(tinyprogram.At(0)))
		require.Equal(t, byte(8), read(tinyprogram.Data))
		k.Unregister(f, tinyprogram.Offset(0), c)
	}
	require.Equal(t, byte(0x31), read(tinyprogram.At(0)))
	require.Equal(t, byte(7), read(tinyprogram.Data))
	x, err := p.Run()
	require.NoError(t, err)
	require.Zero(t, x.Code+int(x.Signal))
}

// Rule: an unregistered probe leaves the first byte of the copy: a REX prefix has lost its B if the
// operand is relative to rip.
func TestUnregisterLeavesTheCopysByte(t *testing.T) {
	f := program(t, []byte{7, 0}, "mov 0x10(%rip),%rax\nxor %edi,%edi"+exit)
	f.Data[tinyprogram.Offset(0)] |= 1 // B
	e, err := engine.Named("")
	require.NoError(t, err)
	k := userprobe.New(rules(t, "6.1"))
	p, err := process.New(process.Config{Program: f, Tracer: k}, e.New)
	require.NoError(t, err)
	defer p.Close()
	c := &userprobe.Consumer{}
	require.NoError(t, k.Register(f, tinyprogram.Offset(0), 0, c))
	k.Unregister(f, tinyprogram.Offset(0), c)
	var b [1]byte
	require.NoError(t, p.Read(tinyprogram.At(0), b[:]))
	require.Equal(t, byte(0x48), b[0])
}

func TestRefusals(t *testing.T) {
	f := program(t, nil, "xor %edi,%edi"+exit, "hlt")
	size := uint64(len(f.Data))
	for name, c := range map[string]struct {
		release string
		offset  uint64
		want    errno.Errno
	}{
		"accepted":        {"6.1", tinyprogram.Offset(0), 0},
		"privileged":      {"6.1", tinyprogram.Offset(1), errno.ENOTSUPP},
		"past_the_file":   {"6.1", size + 1, errno.EINVAL},
		"the_file's_end":  {"6.1", size, errno.EIO},
		"own_int3":        {"6.1", tinyprogram.Offset(2), errno.ENOTSUPP},
		"before_the_3.5":  {"2.6.18", tinyprogram.Offset(0), errno.ENOSYS},
		"the_file's_head": {"6.1", 0, 0}, // its bytes are read as an instruction: jg
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, errno.Of(checked(userprobe.Check(rules(t, c.release), f, c.offset, 0))))
		})
	}
}

// Rule: a consumer's filter decides where an int3 is written, and a process that no consumer
// accepts loses the int3 that it has inherited at its first hit.
func TestFilter(t *testing.T) {
	// The child and then the parent calls f1 twice, and exits with the byte that is f1's first then.
	const twice = "call 0x401080\ncall 0x401080\n"
	text := "mov $0x39,%eax\nsyscall\ntest %eax,%eax\nje call\nxor %r10d,%r10d\nsub $0x8,%rsp\nmov %eax,%edi\nmov %rsp,%rsi\nxor %edx,%edx\nmov $0x3d,%eax\nsyscall\n" +
		"call: " + twice + "mov $0x401080,%ebx\nmovzbl (%rbx),%edi\nmov (%rsp),%ebx\nadd %ebx,%edi\nshr $0x8,%ebx\nadd %ebx,%edi" + exit
	const first, child = 100, 101
	for name, c := range map[string]struct {
		filters []int
		hits    []uint64
		int3s   uint64
	}{
		"everybody":     {[]int{0}, []uint64{4}, 4},
		"the_first":     {[]int{first}, []uint64{2}, 3},
		"the_child":     {[]int{child}, []uint64{2}, 2},
		"both":          {[]int{first, child}, []uint64{2, 2}, 4},
		"some_and_all":  {[]int{first, 0}, []uint64{2, 4}, 4},
		"nobody_at_all": {[]int{7}, []uint64{0}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			onEngines(t, func(t *testing.T, en string) {
				f := program(t, nil, text, "nop\nret")
				var k *userprobe.Probes
				var list []*userprobe.Consumer
				_, k, _ = run(t, en, rules(t, "6.1"), f, func(k *userprobe.Probes) {
					for _, pid := range c.filters {
						consumer := &userprobe.Consumer{}
						if pid != 0 {
							consumer.Filter = k.OfProcess(pid)
						}
						list = append(list, consumer)
						require.NoError(t, k.Register(f, tinyprogram.Offset(1), 0, consumer))
					}
				})
				var hits []uint64
				for _, consumer := range list {
					hits = append(hits, consumer.Hits)
				}
				require.Equal(t, c.hits, hits)
				require.Equal(t, c.int3s, k.Stats.Hits)
			})
		})
	}
}

// Rule: a nop that can be optimized takes one trap, and is a call then; the program finds the same registers, and
// when the probe goes, a nop.
func TestOptimized(t *testing.T) {
	text := "mov $0x5,%ecx\nmov $0x6,%r11d\nmov $0x7,%eax\nmovq $0x9,-0x8(%rsp)\ncall 0x401080\ncall 0x401080\ncall 0x401080\nadd %ecx,%eax\nadd %r11d,%eax\nmov %eax,%edi" + exit
	long := []byte{0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0}
	short := []byte{0x0f, 0x1f, 0x44, 0, 0}
	for name, c := range map[string]struct {
		set   func(u *profile.Uprobes)
		nop   []byte
		calls uint64
		left  []byte // where the probe is gone
	}{
		"nop5":          {func(u *profile.Uprobes) { u.OptimizesNop5, u.OptimizesNop10 = true, false }, short, 2, short},
		"nop10":         {func(u *profile.Uprobes) { u.OptimizesNop10 = true }, long, 2, append(long[:5:5], 0xe8, 0x76, 0xef, 0xff, 0xff)},
		"nop5_of_later": {func(u *profile.Uprobes) { u.OptimizesNop5, u.OptimizesNop10 = true, true }, short, 0, short},
		"before":        {func(u *profile.Uprobes) { u.OptimizesNop5, u.OptimizesNop10 = false, false }, short, 0, short},
	} {
		t.Run(name, func(t *testing.T) {
			onEngines(t, func(t *testing.T, en string) {
				rules := *rules(t, "7.3")
				c.set(&rules.Uprobes)
				f := program(t, nil, text, "ret")
				copy(f.Data[tinyprogram.Offset(1):], append(c.nop[:len(c.nop):len(c.nop)], 0xc3))
				consumer := &userprobe.Consumer{Hit: func(regs *x86.PtRegs) {
					require.Equal(t, []uint64{5, 6, 7, uint64(tinyprogram.At(1))}, []uint64{regs.CX, regs.R11, regs.AX, regs.IP})
				}}
				p, k, x := run(t, en, &rules, f, func(k *userprobe.Probes) { require.NoError(t, k.Register(f, tinyprogram.Offset(1), 0, consumer)) })
				require.Zero(t, x.Signal, "at %#x", x.Regs.IP)
				require.Equal(t, 18, x.Code)
				require.Equal(t, uint64(3), consumer.Hits)
				require.Equal(t, c.calls, k.Stats.Calls)
				require.Equal(t, 3-c.calls, k.Stats.Hits)
				k.Unregister(f, tinyprogram.Offset(1), consumer)
				b := make([]byte, len(c.nop))
				require.NoError(t, p.Read(tinyprogram.At(1), b))
				require.Equal(t, c.left, b)
				if v := p.At(0x400000); c.calls > 0 {
					require.Equal(t, "400000-401000 r-xp 00000000 [uprobes-trampoline]", v.String())
				} else {
					require.Nil(t, v)
				}
			})
		})
	}
}

// hits makes a program that calls its second function so many times.
func hits(t testing.TB, n int, body string) (*process.Process, *userprobe.Consumer) {
	f := program(t, nil, fmt.Sprintf("mov $0x%x,%%ebx\nagain: call 0x401080\ndec %%ebx\njne again\nxor %%edi,%%edi", n)+exit, body)
	k := userprobe.New(rules(t, "6.1"))
	consumer := &userprobe.Consumer{Hit: func(*x86.PtRegs) {}}
	require.NoError(t, k.Register(f, tinyprogram.Offset(1), 0, consumer))
	e, err := engine.Named("")
	require.NoError(t, err)
	p, err := process.New(process.Config{Program: f, Tracer: k}, e.New)
	require.NoError(t, err)
	t.Cleanup(p.Close)
	return p, consumer
}

// bodies are functions that begin with an instruction of each way.
var bodies = map[string]string{"emulated": "push %rbx\npop %rbx\nret", "stepped": "mov %esp,%eax\nret"}

// Rule: a hit allocates nothing.
func TestHitAllocatesNothing(t *testing.T) {
	for name, body := range bodies {
		t.Run(name, func(t *testing.T) {
			allocated := func(n int) int {
				p, c := hits(t, n, body)
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				_, err := p.Run()
				runtime.ReadMemStats(&after)
				require.NoError(t, err)
				require.Equal(t, uint64(n), c.Hits)
				return int(after.Mallocs - before.Mallocs)
			}
			const many = 5000
			require.Less(t, allocated(many)-allocated(1), many/10)
		})
	}
}

func BenchmarkHit(b *testing.B) {
	for name, body := range bodies {
		b.Run(name, func(b *testing.B) {
			p, _ := hits(b, b.N, body)
			b.ReportAllocs()
			b.ResetTimer()
			_, err := p.Run()
			require.NoError(b, err)
		})
	}
}

func checked(_ uprobes.Analysis, err error) error { return err }
