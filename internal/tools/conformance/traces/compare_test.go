package traces

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const trace = `# tracer: nop
#
            init-1       [000] .....     1.000001: open: (do_sys_openat2+0x0/0x170) path="/sys/kernel/tracing/trace"
           calls-70      [000] .....     1.000002: open: (do_sys_openat2+0x0/0x170) path="/etc/hostname"
           calls-70      [000] .....     1.000002: <stack trace>
 => do_sys_openat2
 => __x64_sys_openat
 => entry_SYSCALL_64_after_hwframe
           calls-70      [000] .....     1.000003: vwrite: (vfs_write+0x0/0x3f0) text="two
lines"
           calls-71      [000] d.h1.     1.000004: send: (do_send_sig_info+0x0/0xa0) sig=14
           calls-71      [000] d.h1.     1.000004: <stack trace>
 => do_send_sig_info
 => asm_sysvec_apic_timer_interrupt
 => do_idle
           calls-71      [000] .....     1.000005: close: (filp_close+0x0/0x70) file=0xffff888004b9e840
`

func read(t *testing.T, text string) []record {
	list, err := parse(text)
	require.NoError(t, err)
	return list
}

func TestParse(t *testing.T) {
	list := read(t, trace)
	require.Len(t, list, 7)
	require.Equal(t, record{"calls", "70", ".....", "vwrite", []string{`(vfs_write+0x0/0x3f0) text="two`, `lines"`}, list[3].place}, list[3])
	require.Equal(t, list[1].text[0], list[2].place, "the stack is of the record before")
	require.True(t, list[2].isStack())
	require.Len(t, list[2].text, 3)
	_, err := parse("no trace\n")
	require.ErrorContains(t, err, "no line of a trace")
}

func TestCompare(t *testing.T) {
	const (
		first  = `           calls-70      [000] .....     1.000002: open: (do_sys_openat2+0x0/0x170) path="/etc/hostname"` + "\n"
		worker = `     kworker/0:1-30      [000] .....     1.000003: exit: (do_exit+0x0/0x170) code=0` + "\n" +
			`     kworker/0:1-30      [000] .....     1.000003: <stack trace>` + "\n => do_exit\n"
	)
	const different, moved, background, renumbered, pointers = "different", "moved", "background", "renumbered", "pointers"
	for name, c := range map[string]struct {
		old, with string
		want      string // what the result has, and how many
		n         int
		rule      int // counted from 1; 0 for none
	}{
		"the_same":               {"", "", "", 0, 0},
		"time_and_cpu":           {"[000] .....     1.000003", "[001] .....     2.500000", "", 0, 0},
		"the_hosts_task":         {"init-1       [000] .....     1.000001: open", "init-1       [000] .....     1.000001: close", "", 0, 0},
		"another_text":           {`"/etc/hostname"`, `"/etc/passwd"`, different, 1, 0},
		"another_second_line":    {"lines\"", "line\"", different, 1, 0},
		"another_event":          {": send:", ": kill:", different, 1, 0},
		"another_name":           {"calls-71", "cells-71", different, 3, 0},
		"other_flags":            {"d.h1.     1.000004: send", "..h1.     1.000004: send", different, 1, 0},
		"a_function_is_missing":  {" => __x64_sys_openat\n", "", different, 1, 0},
		"a_record_is_missing":    {first, "", different, 2, 0},
		"what_was_interrupted":   {" => do_idle", " => vfs_read", "", 0, 1},
		"which_interrupt":        {"asm_sysvec_apic", "asm_sysvec_call", different, 1, 0},
		"need_resched":           {".....     1.000003", ".N...     1.000003", "", 0, 2},
		"asked_lazily":           {".....     1.000003", ".l...     1.000003", "", 0, 2},
		"another_flag_is_no_n":   {".....     1.000003", "..n..     1.000003", different, 1, 0},
		"not_yet_optimized":      {".....     1.000003", "..Zff     1.000003", "", 0, 3},
		"an_int3_at_an_entry":    {".....     1.000002: open", "d....     1.000002: open", different, 1, 0},
		"handlers_in_a_stack":    {" => do_sys_openat2\n", " => kprobe_trace_func\n => kprobe_dispatcher\n => 0xffffffffc00020c8\n => do_sys_openat2\n", "", 0, 4},
		"an_address_in_a_stack":  {" => do_sys_openat2\n", " => 0xffffffffc00020c8\n => do_sys_openat2\n", different, 1, 0},
		"a_pointer":              {"0xffff888004b9e840", "0xffff888004b9e000", pointers, 1, 0},
		"a_number_like_pointers": {"0xffff888004b9e840", "0xfff888004b9e000", different, 1, 0},
		"process_numbers":        {"calls-71", "calls-72", renumbered, 1, 0},
		"a_kernel_thread":        {first, worker + " => ret_from_fork\n" + first, background, 2, 0},
		"a_task_of_a_program":    {first, worker + " => entry_SYSCALL_64_after_hwframe\n" + first, different, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.ReplaceAll(trace, c.old, c.with)
			if c.old == "" {
				text = trace
			}
			res := compare(read(t, text), read(t, trace))
			got := map[string]int{different: len(res.different), moved: res.moved, background: res.background, pointers: res.pointers}
			if res.renumbered {
				got[renumbered] = 1
			}
			for what, n := range got {
				if what == c.want {
					require.Equal(t, c.n, n, what)
				} else if c.want != different || what != moved {
					require.Zero(t, n, what)
				}
			}
			for i, n := range res.by {
				require.Equal(t, i+1 == c.rule, n > 0, rules[i].why)
			}
		})
	}
}

func TestTasksInAnotherOrder(t *testing.T) {
	lines := strings.SplitAfter(trace, "\n")
	var a strings.Builder
	for _, l := range append(append([]string{}, lines[10:]...), lines[2:10]...) {
		a.WriteString(l)
	}
	res := compare(read(t, a.String()), read(t, trace))
	require.Empty(t, res.different)
	require.NotZero(t, res.moved)
	require.False(t, res.renumbered)
}

// Rule: without a count of preemption an int3 shows by the interrupts that are off, and only a probe inside
// a function is one.
func TestIntThreeWithoutPreemption(t *testing.T) {
	line := func(flags, place string) []record {
		return read(t, "           calls-70      [000] "+flags+"     1.000002: inread: ("+place+"/0x140) count=8\n")
	}
	for name, c := range map[string]struct {
		ours, kernels, place string
		differ               int
	}{
		"later_a_jump":       {"....", "d...", "vfs_read+0x5", 0},
		"five_flags":         {".....", "d....", "vfs_read+0x5", 0},
		"an_entry":           {"....", "d...", "vfs_read+0x0", 1},
		"in_an_interrupt":    {"..h.", "d.h.", "vfs_read+0x5", 1},
		"another_flag":       {"..s.", "d.s.", "vfs_read+0x5", 1},
		"asked, and an int3": {".n..", "dn..", "vfs_read+0x5", 0},
		"both_are_an_int3s":  {"d...", "d...", "vfs_read+0x5", 0},
	} {
		t.Run(name, func(t *testing.T) {
			require.Len(t, compare(line(c.ours, c.place), line(c.kernels, c.place)).different, c.differ)
		})
	}
}

// sides reads the records of a task on both sides: a line each of event and text, and a stack after a ">".
func sides(t *testing.T, task string, ours, kernels []string) *result {
	trace := func(lines []string) []record {
		var b strings.Builder
		for _, l := range lines {
			l, stack, ok := strings.Cut(l, ">")
			b.WriteString("           " + task + "      [000] .....     1.000002: " + l + "\n")
			if ok {
				b.WriteString("           " + task + "      [000] .....     1.000002: <stack trace>\n => " + stack + "\n")
			}
		}
		return read(t, b.String())
	}
	return compare(trace(ours), trace(kernels))
}

// TestPointersNameTheSameObject: an object has one address on each side while it lives.
func TestPointersNameTheSameObject(t *testing.T) {
	const a, b, c, d = "0xffff888000000000", "0xffff888000001000", "0xffff888000002000", "0xffff888000003000"
	for name, tc := range map[string]struct {
		ours, kernels     []string
		pointers, differs int
	}{
		"elsewhere":                       {[]string{a, a}, []string{b, b}, 2, 0},
		"two that are exchanged":          {[]string{a, b, a}, []string{b, a, b}, 3, 0},
		"memory is given again here":      {[]string{a, a}, []string{b, c}, 2, 0},
		"memory is given again there":     {[]string{a, b}, []string{c, c}, 2, 0},
		"one here is two that live there": {[]string{a, a, a}, []string{b, c, b}, 2, 1},
		"two that live here are one":      {[]string{a, b, a}, []string{c, c, c}, 2, 1},
		"the same, and then another":      {[]string{a, a, a}, []string{a, b, a}, 1, 0},
		"four, in turn":                   {[]string{a, b, a, b}, []string{c, d, c, d}, 4, 0},
		"four, the last two exchanged":    {[]string{a, b, a, b, a}, []string{c, d, d, c, c}, 4, 1},
		"a number":                        {[]string{"0x10"}, []string{"0x20"}, 0, 1},
		"a pointer of user memory":        {[]string{"0x7fff00000000"}, []string{"0x7fff00001000"}, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			for i := range tc.ours {
				tc.ours[i] = "close: (filp_close+0x0/0x70) file=" + tc.ours[i]
				tc.kernels[i] = "close: (filp_close+0x0/0x70) file=" + tc.kernels[i]
			}
			res := sides(t, "calls-70", tc.ours, tc.kernels)
			require.Equal(t, tc.pointers, res.pointers)
			require.Len(t, res.different, tc.differs)
		})
	}
}

// TestFutexesAreAMatterOfTime: what a task does but for them has to be the same.
func TestFutexesAreAMatterOfTime(t *testing.T) {
	const wait, wake, read = "futex: (do_futex+0x4/0x1c0) op=128 val=0>do_futex", "futex: (do_futex+0x4/0x1c0) op=129 val=1>do_futex", "vread: (vfs_read+0x4/0x360) count=4>vfs_read"
	for name, tc := range map[string]struct {
		ours, kernels        []string
		same, raced, differs int
	}{
		"the same":            {[]string{wait, read, wake}, []string{wait, read, wake}, 6, 0, 0},
		"one waits":           {[]string{read, wake, read}, []string{read, wait, wake, read}, 4, 6, 0},
		"in another order":    {[]string{wait, read, wake}, []string{wake, wait, read}, 2, 8, 0},
		"and another reads":   {[]string{wake, read}, []string{wait, read, read}, 2, 4, 1},
		"a stack of a record": {[]string{wake, read}, []string{wait, "vread: (vfs_read+0x4/0x360) count=4>ksys_read"}, 1, 4, 1},
	} {
		t.Run(name, func(t *testing.T) {
			res := sides(t, "calls-70", tc.ours, tc.kernels)
			require.Equal(t, tc.same, res.same)
			require.Equal(t, tc.raced, res.raced)
			require.Len(t, res.different, tc.differs)
		})
	}
}

// TestTheStackOfAnIntThree has its flags.
func TestTheStackOfAnIntThree(t *testing.T) {
	text := func(place, flags string) []record {
		line := "           calls-70      [000] " + flags + "     1.000002: "
		return read(t, line+"inread: ("+place+"/0x360) count=4\n"+line+"<stack trace>\n => vfs_read\n")
	}
	require.Empty(t, compare(text("vfs_read+0x5", "...."), text("vfs_read+0x5", "d...")).different)
	require.Len(t, compare(text("vfs_read+0x0", "...."), text("vfs_read+0x0", "d...")).different, 2)
}

// TestTheKernelStartsTasksOfItsOwn: kthreadd's records of one more are no difference, a program's are.
func TestTheKernelStartsTasksOfItsOwn(t *testing.T) {
	const clone, own = "clone: (kernel_clone+0x4/0x3c0) flags=0x800700>kernel_clone", "\n => ret_from_fork_asm"
	res := sides(t, "kthreadd-2", []string{clone + own}, []string{clone + own, clone + own})
	require.Equal(t, 2, res.background)
	require.Empty(t, res.different)
	res = sides(t, "kthreadd-2", []string{clone + own}, []string{"new: (wake_up_new_task+0x4/0x280)>kernel_clone" + own, clone + own})
	require.NotEmpty(t, res.different)
	res = sides(t, "calls-70", []string{clone}, []string{clone, clone})
	require.Zero(t, res.background)
	require.NotEmpty(t, res.different)
}

// TestProcessNumbersOfTheSameTask: do_wait returns the number of a task whose name is the same on both sides.
func TestProcessNumbersOfTheSameTask(t *testing.T) {
	text := func(child, ret, event string) []record {
		return read(t, "           calls-70      [000] .....     1.000002: "+event+": (kernel_wait4+0xb7/0x160 <- do_wait) ret="+ret+"\n"+
			"           child-"+child+"      [000] .....     1.000002: exit: (do_exit+0x0/0x70) code=0\n")
	}
	for name, tc := range map[string]struct {
		ret, event        string
		numbered, differs int
	}{
		"the child's":          {"72", "waitr", 1, 0},
		"another child's":      {"73", "waitr", 0, 1},
		"an error":             {"-10", "waitr", 0, 1},
		"a number of bytes":    {"72", "vreadr", 0, 1},
		"the number here":      {"71", "waitr", 0, 1},
		"the parent's own one": {"70", "waitr", 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			theirs := text("72", tc.ret, tc.event)
			res := compare(text("71", "71", tc.event), theirs)
			require.Equal(t, tc.numbered, res.numbered)
			if tc.ret == "71" {
				require.Equal(t, 2, res.same, "the text is the same, though the number is not the child's there")
				return
			}
			require.Len(t, res.different, tc.differs)
		})
	}
}

// Under QEMU init starts a program, on a dump the supervisor: what their copies do before they execute it is left out, and nothing of a copy
// of the program's own.
func TestWhatStartsTheProgramIsLeftOut(t *testing.T) {
	const (
		start   = `           calls-70      [000] .....     1.000002: close: (filp_close+0x0/0x70) comm="kprobelab"` + "\n"
		fault   = `           calls-70      [000] .....     1.000002: fault: (handle_mm_fault+0x0/0x2d0) addr=0x401019 flags=0x354` + "\n"
		execute = `           calls-70      [000] .....     1.000003: filp: (do_filp_open+0x0/0x160) dfd=-100 name="/bin/calls" flags=0x8020` + "\n"
		opens   = `           calls-70      [000] .....     1.000003: filp: (do_filp_open+0x0/0x160) dfd=-100 name="/bin/calls" flags=0x8001` + "\n"
		runs    = `           calls-70      [000] .....     1.000004: close: (filp_close+0x0/0x70) comm="calls"` + "\n"
		own     = `       kprobelab-69      [000] .....     1.000001: close: (filp_close+0x0/0x70) comm="kprobelab"` + "\n"
	)
	inits := func(s string) string {
		return strings.ReplaceAll(strings.ReplaceAll(s, `"kprobelab"`, `"init"`), "0x401019", "0x6b600129")
	}
	res := compare(read(t, own+fault+start+execute+start+runs), read(t, inits(fault+start)+execute+inits(start)+runs))
	require.Empty(t, res.different)
	require.Equal(t, 1, res.same)
	for name, list := range map[string]string{
		"the program's own copy":          fault + execute + runs,
		"a copy that executes nothing":    fault + start + runs,
		"a copy that opens, executes not": fault + start + opens + runs,
	} {
		t.Run(name, func(t *testing.T) {
			require.NotEmpty(t, compare(read(t, list), read(t, inits(list))).different)
		})
	}
}
