package transparency

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/x86"
)

// function is a function of the guest kernel with a generator of arguments:
// words (uint64), buffers by their content ([]byte), addresses of symbols
// (symbol).
type function struct {
	name string
	gen  func(g *gen) []any
	addr x86.Addr
	size uint64
	// form is the entry of the guest kernel's table of instruction forms; nil for other functions.
	form *form
}

type symbol string

// form is an entry of the table of instruction forms.
type form struct {
	insn  x86.Addr
	flags uint64
}

// The flags of a form (testdata/README.md).
const (
	needsCPU = 1 << iota
	needsAVX
	neverRun
	changed
	machines
	usesFPU
)

// gen makes arguments; the same seed makes the same.
type gen struct{ *rand.Rand }

func newGen(seed uint64) *gen { return &gen{rand.New(rand.NewPCG(seed, 0x7472616e73))} }

// corners are words at which instructions change their mind.
var corners = []uint64{
	0, 1, 2, 5, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 0x10000, 1<<31 - 1, 1 << 31, 1<<32 - 1,
	1 << 32, 1<<32 + 1, 1<<63 - 1, 1 << 63, 1<<64 - 1, 1<<64 - 2,
}

// word is a corner, or a number of any width.
func (g *gen) word() uint64 {
	if g.IntN(3) > 0 {
		return corners[g.IntN(len(corners))]
	}
	return g.Uint64() >> g.IntN(64)
}

func (g *gen) upTo(n int) uint64 { return uint64(g.IntN(n + 1)) }

func (g *gen) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(g.Uint32())
	}
	return b
}

// text is a NUL-terminated string over a small alphabet.
func (g *gen) text(n int) []byte {
	b := make([]byte, g.IntN(n+1)+1)
	for i := range b[:len(b)-1] {
		b[i] = "abcAB 019"[g.IntN(9)]
	}
	return b
}

func (g *gen) words(n int) []any {
	args := make([]any, n)
	for i := range args {
		args[i] = g.word()
	}
	return args
}

// forms reads the guest kernel's table of instruction forms.
func forms(t require.TestingT, l *kprobelab.Lab) []function {
	start, stop := lookup(t, l, "__start_forms"), lookup(t, l, "__stop_forms")
	table := make([]byte, stop.Sub(start))
	require.NoError(t, l.Machine.ReadMem(start, table))
	var list []function
	for ; len(table) > 0; table = table[32:] {
		word := func(i int) uint64 { return binary.LittleEndian.Uint64(table[8*i:]) }
		var name [40]byte
		require.NoError(t, l.Machine.ReadMem(x86.Addr(word(2)), name[:]))
		f := function{name: "form_" + cstring(name[:]), form: &form{x86.Addr(word(1)), word(3)},
			gen: func(g *gen) []any { return g.words(4) }}
		list = append(list, f.at(t, l))
	}
	return list
}

func cstring(b []byte) string {
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}

func lookup(t require.TestingT, l *kprobelab.Lab, name string) x86.Addr {
	found := l.Image.Lookup(name)
	require.NotEmpty(t, found, name)
	return found[0].Addr
}

func (f function) at(t require.TestingT, l *kprobelab.Lab) function {
	found := l.Image.Lookup(f.name)
	require.NotEmpty(t, found, f.name)
	f.addr, f.size = found[0].Addr, found[0].Size
	return f
}

// none is for functions without arguments.
func none(*gen) []any { return nil }

// small makes n words of at most max.
func small(n, max int) func(*gen) []any {
	return func(g *gen) []any {
		args := make([]any, n)
		for i := range args {
			args[i] = g.upTo(max)
		}
		return args
	}
}

func any1(g *gen) []any { return g.words(1) }
func any2(g *gen) []any { return g.words(2) }
func any3(g *gen) []any { return g.words(3) }
func any6(g *gen) []any { return g.words(6) }
func any8(g *gen) []any { return g.words(8) }

// badOrGood is an address: a buffer, NULL, unmapped, or not canonical.
func badOrGood(g *gen) any {
	switch g.IntN(5) {
	case 0:
		return uint64(0)
	case 1:
		return uint64(0x8000000000000000) + g.upTo(1<<20)
	case 2:
		return uint64(0xffffc8ff00000000) + g.upTo(1<<20)
	}
	return g.bytes(64)
}

// names are the names of existing files, and one of no file.
var names = []string{"/etc/passwd", "/etc/hostname", "/etc/ld.so.cache", "/proc/version", "/dev/null", "/nosuch"}

func (g *gen) name() []byte { return []byte(names[g.IntN(len(names))] + "\x00") }

// ordinary are the functions other than the instruction forms. A function that is never called from
// outside is reached through its callers.
var ordinary = []function{
	// Strings and numbers.
	{name: "snprintf", gen: func(g *gen) []any {
		formats := []string{"%s has %d", "%#06x|%-8u", "%5d%%%c", "%hhx %zu %i", "%lX %o %p", "plain"}
		n := 8 + g.IntN(56)
		f := g.IntN(len(formats))
		a := any(g.word())
		if f == 0 {
			a = g.text(12)
		}
		return []any{make([]byte, n), uint64(n), append([]byte(formats[f]), 0), a, g.word(), g.word()}
	}},
	{name: "crc32_le", gen: func(g *gen) []any { b := g.bytes(1 + g.IntN(24)); return []any{g.word(), b, uint64(len(b))} }},
	{name: "strlen", gen: func(g *gen) []any { return []any{g.text(20)} }},
	{name: "strnlen", gen: func(g *gen) []any { return []any{g.text(20), g.upTo(24)} }},
	{name: "strcmp", gen: func(g *gen) []any { return []any{g.text(3), g.text(3)} }},
	{name: "strncpy", gen: func(g *gen) []any { return []any{g.bytes(32), g.text(30), g.upTo(32)} }},
	{name: "strchr", gen: func(g *gen) []any { return []any{g.text(20), uint64("abz\x00"[g.IntN(4)])} }},
	{name: "memcmp", gen: func(g *gen) []any {
		b := g.bytes(32)
		return []any{b, append(b[:16:16], g.bytes(16)...), g.upTo(32)}
	}},
	{name: "memcpy", gen: func(g *gen) []any { return []any{g.bytes(300), g.bytes(300), g.upTo(300)} }},
	{name: "memmove", gen: func(g *gen) []any { return []any{g.bytes(300), g.bytes(300), g.upTo(300)} }},
	{name: "memset", gen: func(g *gen) []any { return []any{g.bytes(300), g.word(), g.upTo(300)} }},
	{name: "gcd", gen: any2},
	{name: "hweight32", gen: any1},
	{name: "kstrtoull", gen: func(g *gen) []any {
		return []any{append([]byte{'1' + byte(g.IntN(9))}, g.text(6)...), []uint64{0, 8, 10, 16}[g.IntN(4)], g.bytes(8)}
	}},
	{name: "sort", gen: func(g *gen) []any {
		return []any{g.bytes(48), g.upTo(12), uint64(4), symbol("cmp_u32"), uint64(0)}
	}},
	{name: "sort_u32", gen: func(g *gen) []any { return []any{g.bytes(48), g.upTo(12)} }},
	{name: "bsearch", gen: func(g *gen) []any {
		return []any{g.bytes(1), []byte("\x08\x20\x30\x31\x7f\x80\x90\xff"), uint64(8), uint64(1), symbol("cmp_u8")}
	}},
	{name: "printk", gen: func(g *gen) []any { return []any{[]byte("%d %s\n\x00"), g.word(), g.text(8)} }},

	// Shapes of calls.
	{name: "leaf", gen: any1}, {name: "leaf2", gen: any2}, {name: "outer", gen: any1}, {name: "sum8", gen: any8},
	{name: "fib", gen: small(1, 7)}, {name: "ackermann", gen: small(2, 2)}, {name: "recurse", gen: small(1, 12)},
	{name: "is_even", gen: small(1, 12)}, {name: "is_odd", gen: small(1, 12)},
	{name: "tail_a", gen: any1}, {name: "tail_b", gen: any1}, {name: "tail_c", gen: any1},
	{name: "tail_loop_a", gen: small(1, 9)}, {name: "tail_loop_b", gen: small(1, 9)},
	{name: "jump_table", gen: func(g *gen) []any { return []any{g.upTo(13), g.word(), g.word()} }},
	{name: "call_pointer", gen: func(g *gen) []any { return []any{g.word(), g.upTo(7)} }},
	{name: "call_pointer_thunk", gen: func(g *gen) []any { return []any{g.word(), g.upTo(7)} }},
	{name: "sum_to", gen: small(1, 20)}, {name: "big_frame", gen: any1}, {name: "return_pair", gen: any1},
	{name: "return_int", gen: any1}, {name: "return_byte", gen: any2},
	{name: "return_void", gen: func(g *gen) []any { return []any{g.bytes(8)} }},
	{name: "callee_pop_test", gen: any2},

	// Tasks, time, CPUs.
	{name: "schedule", gen: none}, {name: "yield", gen: none}, {name: "__cond_resched", gen: none},
	{name: "io_schedule", gen: none}, {name: "spin", gen: small(1, 20)}, {name: "work_item", gen: any1},
	{name: "worker", gen: small(1, 4)}, {name: "busy_worker", gen: small(1, 4)},
	{name: "sleepy_worker", gen: small(2, 4)}, {name: "slow_call", gen: func(g *gen) []any { return []any{g.word(), g.upTo(9)} }},
	{name: "sleep_ns", gen: small(1, 100)}, {name: "msleep", gen: small(1, 3)},
	{name: "racy_inc", gen: small(1, 9)}, {name: "atomic_add_test", gen: small(1, 9)}, {name: "locked_inc", gen: small(1, 9)},
	{name: "xchg_test", gen: func(g *gen) []any { return []any{g.bytes(8), g.word()} }},
	{name: "this_cpu_inc_test", gen: none}, {name: "preempt_count_test", gen: none},
	{name: "smp_processor_id_test", gen: none}, {name: "current_task_number", gen: none},
	{name: "irqs_off_test", gen: any1}, {name: "irqs_enabled_test", gen: none},

	// Files and tasks.
	{name: "sys_open", gen: func(g *gen) []any { return []any{g.name(), g.upTo(2), g.word()} }},
	{name: "sys_openat", gen: func(g *gen) []any { return []any{g.word(), g.name(), g.upTo(2), g.word()} }},
	{name: "sys_read", gen: func(g *gen) []any { return []any{g.upTo(4), g.bytes(64), g.upTo(64)} }},
	{name: "sys_write", gen: func(g *gen) []any { return []any{g.upTo(4), g.bytes(64), g.upTo(64)} }},
	{name: "sys_close", gen: small(1, 5)},
	{name: "sys_mkdir", gen: func(g *gen) []any { return []any{g.name(), g.word()} }},
	{name: "sys_rmdir", gen: func(g *gen) []any { return []any{g.name()} }},
	{name: "sys_symlink", gen: func(g *gen) []any { return []any{g.text(8), g.name()} }},
	{name: "sys_unlink", gen: func(g *gen) []any { return []any{g.name()} }},
	{name: "tracefs_create_dir", gen: func(g *gen) []any { return []any{g.text(8), uint64(0)} }},
	{name: "sys_fork", gen: none},
	{name: "sys_clone", gen: func(g *gen) []any { return []any{g.word(), g.word(), uint64(0), uint64(0), g.word()} }},
	{name: "kernel_clone_n", gen: small(1, 3)}, {name: "_do_fork_n", gen: small(1, 3)}, {name: "do_fork_n", gen: small(1, 3)},

	// Faults, caught and not.
	{name: "ex_load", gen: func(g *gen) []any {
		ok := any(g.bytes(4))
		if g.IntN(3) == 0 {
			ok = uint64(0)
		}
		return []any{badOrGood(g), ok, g.word()}
	}},
	{name: "ex_store", gen: func(g *gen) []any { return []any{badOrGood(g), g.word()} }},
	{name: "ex_copy", gen: func(g *gen) []any { return []any{g.bytes(64), badOrGood(g), g.upTo(64)} }},
	{name: "copy_from_kernel_nofault", gen: func(g *gen) []any { return []any{g.bytes(64), badOrGood(g), g.upTo(64)} }},
	{name: "ex_divide", gen: func(g *gen) []any { return []any{g.word(), g.upTo(3), g.word()} }},
	{name: "fault_null_read", gen: none}, {name: "fault_null_write", gen: any1},
	{name: "fault_read", gen: func(g *gen) []any { return []any{badOrGood(g)} }},
	{name: "fault_write", gen: func(g *gen) []any { return []any{badOrGood(g), g.word()} }},
	{name: "fault_text_write", gen: none}, {name: "fault_rodata_write", gen: none}, {name: "fault_exec_data", gen: none},
	{name: "fault_noncanonical", gen: none}, {name: "fault_ud2", gen: none},
	{name: "fault_divide", gen: func(g *gen) []any { return []any{g.word(), g.upTo(2)} }},
	{name: "fault_int3", gen: none}, {name: "fault_jump_null", gen: none},
	{name: "fault_jump", gen: func(g *gen) []any {
		return []any{[]any{uint64(0), symbol("leaf"), symbol("is_even"), g.bytes(16)}[g.IntN(4)], g.upTo(5)}
	}},
	{name: "fault_deep", gen: func(g *gen) []any { return []any{badOrGood(g), g.word()} }},
	{name: "bug_on", gen: small(1, 1)}, {name: "warn_on", gen: small(1, 1)},

	// Places that are patched.
	{name: "label_off_nop5", gen: any1}, {name: "label_off_nop2", gen: any1}, {name: "label_likely_on", gen: any1},
	{name: "label_on_jmp5", gen: any1}, {name: "label_on_jmp2", gen: any1}, {name: "label_likely_off", gen: any1},
	{name: "static_call_test", gen: any1}, {name: "static_call_tail_test", gen: any1},
	{name: "static_call_null_test", gen: any1}, {name: "static_call_return0_test", gen: any1},
	{name: "return_thunk_test", gen: any1}, {name: "retpoline_call_test", gen: any1}, {name: "retpoline_jump_test", gen: any1},
	{name: "alternative_test", gen: any1},

	// What the kernel's own tests probe.
	{name: "kprobe_target", gen: any1}, {name: "kprobe_target2", gen: any1}, {name: "kprobe_recursion_target", gen: any1},
	{name: "kprobe_stacktrace_target", gen: any1},
	{name: "kprobe_stacktrace_internal_target", gen: func(g *gen) []any { return []any{symbol("leaf"), g.word()} }},
	{name: "kprobe_trace_selftest_target", gen: any6}, {name: "call_clones", gen: any1},
	{name: "clone_function.isra.0", gen: any1}, {name: "register_kprobe", gen: any1}, {name: "__x64_sys_rt_sigreturn", gen: any1},

	// What jump optimization looks at.
	{name: "opt_yes", gen: any3}, {name: "opt_yes_five", gen: any3}, {name: "opt_yes_rip", gen: any3},
	{name: "opt_yes_loop", gen: small(3, 9)}, {name: "opt_yes_lock", gen: any3}, {name: "opt_no_jump_in", gen: small(3, 9)},
	{name: "opt_no_near_jump_in", gen: small(3, 9)}, {name: "opt_no_indirect", gen: any3}, {name: "opt_no_thunk", gen: any3},
	{name: "opt_no_short", gen: any3}, {name: "opt_no_call", gen: any3}, {name: "opt_no_jcc", gen: any3},
	{name: "opt_no_x87", gen: any3}, {name: "opt_no_shift", gen: any3},
	{name: "opt_no_extable", gen: func(g *gen) []any { return []any{badOrGood(g)} }},
	{name: "opt_no_jump_label", gen: any3}, {name: "opt_no_undecodable", gen: any3}, {name: "opt_neighbours", gen: any3},
}
