package main

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
	require.Equal(t, record{"calls", "70", ".....", "vwrite", []string{`(vfs_write+0x0/0x3f0) text="two`, `lines"`}}, list[3])
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
	const different, moved, background, renumbered = "different", "moved", "background", "renumbered"
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
		"not_yet_optimized":      {".....     1.000003", "..Zff     1.000003", "", 0, 3},
		"an_int3_at_an_entry":    {".....     1.000002: open", "d....     1.000002: open", different, 1, 0},
		"handlers_in_a_stack":    {" => do_sys_openat2\n", " => kprobe_trace_func\n => kprobe_dispatcher\n => 0xffffffffc00020c8\n => do_sys_openat2\n", "", 0, 4},
		"an_address_in_a_stack":  {" => do_sys_openat2\n", " => 0xffffffffc00020c8\n => do_sys_openat2\n", different, 1, 0},
		"a_pointer":              {"0xffff888004b9e840", "0xffff888004b9e000", "", 0, 5},
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
			got := map[string]int{different: len(res.different), moved: res.moved, background: res.background}
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
		"later_a_jump":      {"....", "d...", "vfs_read+0x5", 0},
		"five_flags":        {".....", "d....", "vfs_read+0x5", 0},
		"an_entry":          {"....", "d...", "vfs_read+0x0", 1},
		"in_an_interrupt":   {"..h.", "d.h.", "vfs_read+0x5", 1},
		"another_flag":      {".n..", "dn..", "vfs_read+0x5", 1},
		"both_are_an_int3s": {"d...", "d...", "vfs_read+0x5", 0},
	} {
		t.Run(name, func(t *testing.T) {
			require.Len(t, compare(line(c.ours, c.place), line(c.kernels, c.place)).different, c.differ)
		})
	}
}
