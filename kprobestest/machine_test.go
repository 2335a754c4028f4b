package kprobestest_test

import (
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/kprobes"
	"kprobelab/kprobestest"
	"kprobelab/machine"
	"kprobelab/x86"
)

func TestHandlersRun(t *testing.T) {
	m := kprobestest.New(t, nil)
	var pre, post, ret int
	m.Kprobe("gcd+0x5", func(*kprobes.Kprobe, *x86.PtRegs) int { pre++; return 0 },
		func(*kprobes.Kprobe, *x86.PtRegs, uint64) { post++ })
	m.Kretprobe("gcd:4", nil, func(_ *kprobes.Instance, regs *x86.PtRegs) int {
		ret++
		require.EqualValues(t, 6, regs.AX)
		return 0
	})
	require.EqualValues(t, 6, m.Call("gcd", 12, 18))
	require.Equal(t, []int{1, 1, 1}, []int{pre, post, ret})
	require.Equal(t, 2, m.Kprobes().Armed())
	require.Equal(t, m.Symbol("gcd"), m.Image().Lookup("gcd")[0])
}

// TestOptimized: a jump is there once the optimizer has run, and gone when the
// leak check looks at the text, at the test's end.
func TestOptimized(t *testing.T) {
	m := kprobestest.New(t, &kprobestest.Options{NoSettle: true})
	hits := 0
	kp := m.Kprobe("gcd+0x5", func(*kprobes.Kprobe, *x86.PtRegs) int { hits++; return 0 }, nil)
	opcode := func() byte {
		var op [1]byte
		require.NoError(t, m.Emu().ReadMem(kp.Addr, op[:]))
		return op[0]
	}
	require.EqualValues(t, 0xcc, opcode())
	m.Settle()
	require.EqualValues(t, 0xe9, opcode())
	require.Contains(t, m.Kprobes().List(), "[OPTIMIZED]")
	require.EqualValues(t, 6, m.Call("gcd", 12, 18))
	require.Equal(t, 1, hits)
}

func TestTryGivesTheFault(t *testing.T) {
	m := kprobestest.New(t, nil)
	_, err := m.Try("fault_null_read")
	var f *machine.Fault
	require.ErrorAs(t, err, &f)
	require.Equal(t, machine.VectorPage, f.Vector)
	require.EqualValues(t, 6, m.Call("gcd", 12, 18), "the machine goes on")
	m.CheckText()
}

func TestLeaksAreReported(t *testing.T) {
	for name, c := range map[string]struct {
		test func(t testing.TB, m *kprobestest.Machine)
		want string
	}{
		"probe_left": {func(t testing.TB, m *kprobestest.Machine) {
			_ = m.Kprobes().RegisterKprobe(&kprobes.Kprobe{SymbolName: "gcd"})
		}, "probes still registered (1):\nffffffff81"},
		"probe_left_somewhere": {func(t testing.TB, m *kprobestest.Machine) {
			_ = m.Kprobes().RegisterKretprobe(&kprobes.Kretprobe{KP: kprobes.Kprobe{SymbolName: "gcd"}})
		}, "machine_test.go:"},
		"watchpoint_left": {func(_ testing.TB, m *kprobestest.Machine) {
			_, _ = m.Lab().Watch("gcd:x", nil)
		}, "watchpoints still set (1), the first at gcd+0x0/"},
		"watchpoint_refused": {func(_ testing.TB, m *kprobestest.Machine) {
			m.Lab().Watches.Registers = m.Lab().Registers()
			m.Watch("last_pid+1:4:w", nil)
		}, "invalid argument: the address is no multiple of the length"},
		"too_few_arguments": {func(t testing.TB, m *kprobestest.Machine) {
			m.Call("gcd", 12)
		}, "call of gcd: gcd takes 2 arguments, not 1: "},
		"unknown_profile": {func(t testing.TB, _ *kprobestest.Machine) {
			kprobestest.New(t, &kprobestest.Options{Profile: "9.9"})
		}, "there are 2.6.18, "},
		"string_not_there": {func(t testing.TB, m *kprobestest.Machine) { m.ReadString(0x10) }, "string at 0x10: "},
		"integer_of_3_bytes": {func(t testing.TB, m *kprobestest.Machine) {
			m.ReadUint(m.Symbol("gcd").Addr, 3)
		}, "it has 1, 2, 4 or 8 bytes, not 3"},
		"override_inside": {func(t testing.TB, m *kprobestest.Machine) { m.Override("gcd+0x5", 1) }, "override of gcd+0x5: it is not a function's entry"},
		"text_changed": {func(t testing.TB, m *kprobestest.Machine) {
			_ = m.Emu().PokeText(m.Symbol("gcd").Addr+7, []byte{0xcc})
		}, "text is not restored: 0xcc at gcd+0x7/"},
		"handler_panicked": {func(t testing.TB, m *kprobestest.Machine) {
			m.Kprobe("gcd", func(*kprobes.Kprobe, *x86.PtRegs) int { panic("oops") }, nil)
			_, _ = m.Emu().Call("gcd", 1, 2)
		}, "a hit went wrong: probe gcd: pre_handler panicked: oops"},
		"call_failed": {func(t testing.TB, m *kprobestest.Machine) {
			m.Call("fault_ud2")
		}, "call of fault_ud2: invalid opcode at fault_ud2"},
		"probe_refused": {func(t testing.TB, m *kprobestest.Machine) {
			m.Kprobe("nokprobe_function", nil, nil)
		}, "probe nokprobe_function: blacklisted"},
		"no_symbol": {func(t testing.TB, m *kprobestest.Machine) { m.Symbol("nosuch") }, "there is no symbol nosuch"},
		"bad_place": {func(t testing.TB, m *kprobestest.Machine) { m.Kprobe("+1", nil, nil) }, "is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			said := (&recorder{}).run(func(t testing.TB) { c.test(t, kprobestest.New(t, nil)) })
			require.Len(t, said, 1)
			require.Contains(t, said[0], c.want)
		})
	}
}

// A handler reads its arguments, and the memory that they point to.
func TestReadsArguments(t *testing.T) {
	m := kprobestest.New(t, nil)
	var format string
	var size uint64
	m.Kprobe("snprintf", func(_ *kprobes.Kprobe, regs *x86.PtRegs) int {
		format, size = m.ReadString(x86.Addr(regs.Arg(2))), regs.Arg(1)
		return 0
	}, nil)
	buf := make([]byte, 32)
	m.Call("snprintf", buf, len(buf), "%s has %d things", "abc", 42)
	require.Equal(t, "%s has %d things", format)
	require.EqualValues(t, 32, size)

	at, err := m.Emu().Alloc(8)
	require.NoError(t, err)
	require.NoError(t, m.Emu().WriteMem(at, []byte{1, 2, 3, 4, 5, 6, 7, 8}))
	for size, want := range map[int]uint64{1: 1, 2: 0x201, 4: 0x4030201, 8: 0x807060504030201} {
		require.Equal(t, want, m.ReadUint(at, size))
	}
}

// An overridden function returns at once, at a fentry site and at an int3, by the rules of
// each release, until the probe is unregistered.
func TestOverride(t *testing.T) {
	for _, kernel := range []string{"4.4", "5.10", "6.1", "6.12"} {
		for _, fn := range []string{"gcd", "opt_yes"} {
			t.Run(kernel+"_"+fn, func(t *testing.T) {
				m := kprobestest.New(t, &kprobestest.Options{NoSettle: true, Profile: kernel})
				p := m.Override(fn, 777)
				m.Settle()
				require.False(t, p.Optimized())
				for range 3 {
					require.EqualValues(t, 777, m.Call(fn, 12, 18))
				}
				require.Zero(t, p.Nmissed)
				m.Kprobes().UnregisterKprobe(p)
				require.NotEqualValues(t, 777, m.Call(fn, 12, 18))
			})
		}
	}
}

// A handler that does something without effect is warned of, once.
func TestWarnsOfMisuse(t *testing.T) {
	r := &recorder{}
	said := r.run(func(t testing.TB) {
		m := kprobestest.New(t, &kprobestest.Options{NoOptimize: true})
		m.Kprobe("gcd+0x5", func(_ *kprobes.Kprobe, regs *x86.PtRegs) int { regs.IP++; return 0 }, nil)
		m.Call("gcd", 12, 18)
		m.Call("gcd", 12, 18)
	})
	require.Empty(t, said)
	require.Len(t, r.logged, 1)
	require.Contains(t, r.logged[0], "kprobestest: warning: gcd+0x5: the pre handler set ip to ")
	r = &recorder{}
	r.run(func(t testing.TB) {
		m := kprobestest.New(t, &kprobestest.Options{NoOptimize: true})
		m.Kprobe("gcd+0x5", func(*kprobes.Kprobe, *x86.PtRegs) int { return 1 }, nil)
		_, _ = m.Try("gcd", 12, 18)
	})
	require.NotEmpty(t, r.logged)
	require.Contains(t, r.logged[0], "the pre handler returned 1 and left ip as it was: the CPU goes on at ")
}

// Options that only change how the rules are made.
func TestPreemption(t *testing.T) {
	for _, preemption := range []bool{false, true} {
		m := kprobestest.New(t, &kprobestest.Options{NoOptimize: true, Preemption: &preemption})
		tr := m.Trace()
		m.Kprobe("gcd+0x5", func(*kprobes.Kprobe, *x86.PtRegs) int { return 0 }, nil)
		m.Call("gcd", 12, 18)
		want := map[bool]string{false: ": boost ", true: ": step "}[preemption]
		require.Contains(t, tr.String(), want)
	}
}

// The scheduler may switch after any instruction, and the run still repeats.
func TestEveryInstruction(t *testing.T) {
	trace := func(every bool) string {
		m := kprobestest.New(t, &kprobestest.Options{CPUs: 2, Seed: 3, EveryInstruction: every})
		tr := m.Trace()
		m.Kprobe("gcd+0x5", func(*kprobes.Kprobe, *x86.PtRegs) int { return 0 }, nil)
		for range 2 {
			_, err := m.Emu().Go("gcd", machine.Invoke("gcd", 1071, 462))
			require.NoError(t, err)
		}
		require.NoError(t, m.Emu().Run())
		return tr.String()
	}
	require.Equal(t, trace(true), trace(true))
}

// A handler that ends the test, on every path that a hit can take, says so and
// nothing else.
func TestHandlerEndsTheTest(t *testing.T) {
	for name, c := range map[string]struct {
		place    string
		optimize bool
	}{"ftrace": {"gcd", false}, "int3": {"gcd+0x5", false}, "jump": {"gcd+0x5", true}} {
		for how, end := range map[string]func(testing.TB){
			"fatal": func(t testing.TB) { t.Fatal("enough") },
			"skip":  func(t testing.TB) { t.SkipNow() },
		} {
			t.Run(name+"_"+how, func(t *testing.T) {
				r := &recorder{}
				said := r.run(func(t testing.TB) {
					m := kprobestest.New(t, &kprobestest.Options{NoOptimize: !c.optimize})
					m.Kprobe(c.place, func(*kprobes.Kprobe, *x86.PtRegs) int { end(t); return 0 }, nil)
					m.Settle()
					m.Call("gcd", 12, 18)
					t.Fatal("the call came back")
				})
				if how == "skip" {
					require.True(t, r.Skipped())
					require.Empty(t, said)
					return
				}
				require.Equal(t, []string{"enough"}, said)
			})
		}
	}
}

// Data may change that lies beside init text, in a segment that is executable:
// the test would fail otherwise.
func TestInitDataIsNotText(t *testing.T) {
	m := kprobestest.New(t, nil)
	require.NoError(t, m.Emu().WriteMem(m.Symbol("boot_count").Addr, []byte{1}))
	said := (&recorder{}).run(func(t testing.TB) {
		m := kprobestest.New(t, nil)
		require.NoError(t, m.Emu().PokeText(m.Symbol("init_helper").Addr, []byte{0xcc}))
	})
	require.Len(t, said, 1)
	require.Contains(t, said[0], "text is not restored: 0xcc at init_helper+0x0/")
}

func TestNewSaysWhatItCannotOpen(t *testing.T) {
	for _, c := range []struct {
		o    kprobestest.Options
		want string
	}{
		{kprobestest.Options{Image: "/nosuch/vmlinuz"}, "no such file"},
		{kprobestest.Options{Profile: "9.9"}, `there is no profile "9.9": there are 2.6.18`},
		{kprobestest.Options{CPUs: 1000}, "1000 cpus"},
		{kprobestest.Options{Modules: []string{"/nosuch.ko"}}, "no such file"},
	} {
		said := (&recorder{}).run(func(t testing.TB) { kprobestest.New(t, &c.o) })
		require.Len(t, said, 1)
		require.Contains(t, said[0], "kprobestest: ")
		require.Contains(t, said[0], c.want)
	}
}

func TestTraceRepeats(t *testing.T) {
	trace := func() string {
		m := kprobestest.New(t, &kprobestest.Options{CPUs: 2, Seed: 3})
		tr := m.Trace()
		m.Kprobe("spin", nil, func(*kprobes.Kprobe, *x86.PtRegs, uint64) {})
		m.Kretprobe("spin", nil, func(*kprobes.Instance, *x86.PtRegs) int { return 0 })
		for range 3 {
			_, err := m.Emu().Go("spinner", machine.Invoke("spin", 5000))
			require.NoError(t, err)
		}
		require.NoError(t, m.Emu().Run())
		tr.Printf("%d lines", len(tr.Lines()))
		return tr.String()
	}
	first := trace()
	require.Equal(t, first, trace())
	require.Contains(t, first, "task3 spin: pre\n")
	require.Contains(t, first, "spin: return-handler ax=0x")
}

// A hit and a return, kept in a file: its times are the virtual clock's, and
// change with the guest kernel's code only.
func TestTraceOfAHit(t *testing.T) {
	m := kprobestest.New(t, nil)
	tr := m.Trace()
	m.Kprobe("fib+0x9", nil, nil)
	m.Kretprobe("fib:2", nil, func(*kprobes.Instance, *x86.PtRegs) int { return 0 })
	tr.Printf("fib(3) = %d", m.Call("fib", 3))
	tr.Golden("testdata/fib.golden")
}

// The package leaves this name to its users: were it declared there too, this
// test binary would not start.
var _ = flag.Bool("update", false, "rewrite the golden files that differ")

func TestDeclaresNoFlags(t *testing.T) {
	flag.VisitAll(func(f *flag.Flag) {
		if f.Name != "update" && !strings.HasPrefix(f.Name, "test.") {
			t.Errorf("kprobestest brings a flag -%s into its users' tests", f.Name)
		}
	})
}

func TestGolden(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sub", "x.golden")
	golden := func(text string) []string {
		return (&recorder{}).run(func(t testing.TB) { kprobestest.New(t, nil).Golden(file, text) })
	}
	set := func(v string) { require.NoError(t, flag.Set("update", v)) }
	defer set(flag.Lookup("update").Value.String())
	t.Setenv("KPROBELAB_UPDATE", "")

	set("false")
	require.Contains(t, golden("a\nb\n")[0], "KPROBELAB_UPDATE=1 go test writes it")
	set("true")
	require.Empty(t, golden("a\nb\n"))
	written, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "a\nb\n", string(written))
	set("false")
	require.Empty(t, golden("a\nb\n"))
	require.Contains(t, golden("a\nc\n")[0], "line 2: want b\n          got  c")
	require.Contains(t, golden("a")[0], "line 2: want b\n          got  the end")
	t.Setenv("KPROBELAB_UPDATE", "1")
	require.Empty(t, golden("a\nd\n"), "the environment asks for it, too")
	written, err = os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "a\nd\n", string(written))
}

// TestTheKernelsDefault: a probe that can be a jump is one when the first call comes by, as on a kernel and by
// the command run: the ip that its handler sets is ignored. With NoOptimize, and with NoSettle, it is an int3's.
func TestTheKernelsDefault(t *testing.T) {
	for name, c := range map[string]struct {
		options *kprobestest.Options
		jump    bool
	}{
		"default":     {nil, true},
		"no_optimize": {&kprobestest.Options{NoOptimize: true}, false},
		"no_settle":   {&kprobestest.Options{NoSettle: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := kprobestest.New(t, c.options)
			for range 2 { // the second is registered after a call
				skipped := false
				p := m.Kprobe("gcd+0x5", func(_ *kprobes.Kprobe, regs *x86.PtRegs) int {
					skipped = true
					regs.IP, regs.AX = m.ReadUint(x86.Addr(regs.SP), 8), 777 // as a return would
					regs.SP += 8
					return 1
				}, nil)
				got := m.Call("gcd", 12, 18)
				require.True(t, skipped)
				require.Equal(t, c.jump, got == 6, "a jump ignores where its handler sends it")
				require.Equal(t, c.jump, m.ReadUint(p.Addr, 1) == 0xe9)
				m.Kprobes().UnregisterKprobe(p)
			}
		})
	}
}

// TestSettlesNotInAHandler: a handler's own call finds the probes as they are.
func TestSettlesNotInAHandler(t *testing.T) {
	m := kprobestest.New(t, nil)
	var inner *kprobes.Kprobe
	m.Kprobe("gcd", func(*kprobes.Kprobe, *x86.PtRegs) int {
		if inner == nil {
			inner = m.Kprobe("strcmp+0x5", func(*kprobes.Kprobe, *x86.PtRegs) int { return 0 }, nil)
			require.Zero(t, m.Call("strcmp", "a", "a"))
		}
		return 0
	}, nil)
	require.EqualValues(t, 6, m.Call("gcd", 12, 18))
	require.EqualValues(t, 0xcc, m.ReadUint(inner.Addr, 1))
	require.EqualValues(t, 6, m.Call("gcd", 12, 18))
	require.EqualValues(t, 0xe9, m.ReadUint(inner.Addr, 1))
}

// TestShortFunctionsOverlap: two calls of a few instructions are under way at once only where the scheduler may
// switch that soon.
func TestShortFunctionsOverlap(t *testing.T) {
	for name, c := range map[string]struct {
		options  kprobestest.Options
		overlaps bool
	}{
		"slices_of_1000":          {kprobestest.Options{CPUs: 2}, false},
		"every_instruction":       {kprobestest.Options{CPUs: 2, EveryInstruction: true}, true},
		"slice_of_3":              {kprobestest.Options{CPUs: 2, EveryInstruction: true, Slice: 3}, true},
		"slice_of_3_by_blocks":    {kprobestest.Options{CPUs: 2, Slice: 3}, true},
		"every_one_in_long_slice": {kprobestest.Options{CPUs: 2, EveryInstruction: true, Slice: 1000}, false},
	} {
		t.Run(name, func(t *testing.T) {
			inside, most, cpus := 0, 0, map[int]bool{}
			for seed := range int64(3) {
				c.options.Seed = seed
				m := kprobestest.New(t, &c.options)
				m.Kretprobe("gcd:8",
					func(*kprobes.Instance, *x86.PtRegs) int {
						inside++
						most = max(most, inside)
						cpus[m.Emu().CPU()] = true
						return 0
					},
					func(*kprobes.Instance, *x86.PtRegs) int { inside--; return 0 })
				for range 2 {
					_, err := m.Emu().Go("gcd", machine.Invoke("gcd", 12, 18))
					require.NoError(t, err)
				}
				require.NoError(t, m.Emu().Run())
				require.Zero(t, inside)
			}
			require.Equal(t, c.overlaps, most == 2, "%d at once", most)
			if c.overlaps {
				require.Len(t, cpus, 2)
			}
		})
	}
}

// Every option of a Lab is an option of a test, except Optimize, for which there is NoOptimize.
func TestOptionsOfALabAreATests(t *testing.T) {
	of := reflect.TypeFor[kprobestest.Options]()
	for f := range reflect.TypeFor[kprobelab.Options]().Fields() {
		got, ok := of.FieldByName(f.Name)
		require.Equal(t, f.Name != "Optimize", ok, f.Name)
		if ok {
			require.Equal(t, f.Type, got.Type, f.Name)
		}
	}
}
