package sample

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/profile"
	"kprobelab/x86"
)

// The published 4.4 line is the slides' of 2017 (docs/spec 13.1); the others are
// its format rows.
func TestHandlerLines(t *testing.T) {
	at := x86.Addr(0xffffffff8107e110)
	regs := &x86.PtRegs{IP: 0xffffffff8107e111, Flags: 0x246}
	for style, want := range map[profile.SampleStyle][2]string{
		profile.SampleBare: {
			"pre_handler: p->addr = 0xffffffff8107e110, ip = ffffffff8107e111, flags = 0x246",
			"post_handler: p->addr = 0xffffffff8107e110, flags = 0x246",
		},
		profile.SampleSymbol: {
			"<_do_fork> pre_handler: p->addr = 0xffffffff8107e110, ip = ffffffff8107e111, flags = 0x246",
			"<_do_fork> post_handler: p->addr = 0xffffffff8107e110, flags = 0x246",
		},
		profile.SampleFunc: {
			"handler_pre: <_do_fork> p->addr = 0xffffffff8107e110, ip = ffffffff8107e111, flags = 0x246",
			"handler_post: <_do_fork> p->addr = 0xffffffff8107e110, flags = 0x246",
		},
	} {
		l := Lines{Style: style}
		require.Equal(t, want[0], l.Pre("_do_fork", at, regs))
		require.Equal(t, want[1], l.Post("_do_fork", at, regs))
	}
}

func TestModuleLines(t *testing.T) {
	at := x86.Addr(0xffffffff8107e110)
	bare, named := Lines{profile.SampleBare}, Lines{profile.SampleFunc}
	require.Equal(t, "Planted kprobe at ffffffff8107e110", bare.Planted(at))
	require.Equal(t, "kprobe_init: Planted kprobe at ffffffff8107e110", named.Planted(at))
	require.Equal(t, "register_kprobe failed, returned -84", bare.Failed(-84))
	require.Equal(t, "kprobe_exit: kprobe at ffffffff8107e110 unregistered", named.Unregistered(at))
	require.Equal(t, "kprobe at 0000000000001000 unregistered", bare.Unregistered(0x1000))
	require.Equal(t, "Planted return probe at _do_fork: ffffffff8107e110", named.PlantedReturn("_do_fork", at))
	require.Equal(t, "register_kretprobe failed, returned -22", named.FailedReturn(-22))
	require.Equal(t, "_do_fork returned 19922 and took 263367 ns to execute", named.Returned("_do_fork", 19922, 263367))
	require.Equal(t, "kretprobe at ffffffff8107e110 unregistered", named.UnregisteredReturn(at))
	require.Equal(t, "Missed probing 11 instances of sys_open", named.Missed(11, "sys_open"))
	require.Equal(t, "do_fork returned 101", bare.ReturnedOnly("do_fork", 101))
	require.Equal(t, "fault_handler: p->addr = 0xffffffff8107e110, trap #14", bare.Fault(at, 14))
	require.Equal(t, "Planted jprobe at ffffffff8107e110, handler addr ffffffffa0000000", bare.PlantedJprobe(at, 0xffffffffa0000000))
	require.Equal(t, "register_jprobe failed, returned -38", named.FailedJprobe(-38))
	require.Equal(t, "jprobe at ffffffff8107e110 unregistered", bare.UnregisteredJprobe(at))
}

// As the article shows them (docs/spec 13.4).
func TestArticleLines(t *testing.T) {
	require.Equal(t, "current task on CPU#1: swapper (before scheduling), preempt_count = 0", ArticleBefore(1, "swapper", 0))
	require.Equal(t, "current task on CPU#1: swapper (after scheduling), preempt_count = 0", ArticleAfter(1, "swapper", 0))
	require.Equal(t, "Scheduling times is 5918 during of 7655 milliseconds.", ArticleTimes(5918, 7655))
	require.Equal(t, "sys_open returns -2", ArticleOpenReturns(-2))
	require.Equal(t, "Missed 11 sys_open probe instances.", ArticleMissed(11))
	require.Equal(t, "register_jprobe failed, returned -38", ArticleFailed("register_jprobe", -38))
}
