package registers

import (
	"fmt"
	"iter"
	"slices"

	"kprobelab/errno"
)

// Rule names the rule that refuses a breakpoint.
type Rule string

// Rules of perf_event_open and of the breakpoint itself.
const (
	NotForAll    Rule = "PERF_RESTRICTED"
	NotTheKernel Rule = "PERF_KERNEL"
	NoTask       Rule = "NO_TASK"
	NoCPU        Rule = "NO_CPU"
	NoAccess     Rule = "NO_ACCESS"
	NoRegister   Rule = "NO_REGISTER"
	PastTheEnd   Rule = "PAST_THE_END"
	EntryMemory  Rule = "ENTRY_MEMORY"
	NoKprobe     Rule = "NO_KPROBE"
	ExecuteLong  Rule = "EXECUTE_LENGTH"
	NoSuchAccess Rule = "ACCESS"
	NoSuchLength Rule = "LENGTH"
	NoRanges     Rule = "RANGE"
	Unaligned    Rule = "UNALIGNED"
	Excluded     Rule = "EXCLUDE_KERNEL"
	Privileged   Rule = "KERNEL_ADDRESS"
	CPUWide      Rule = "PERF_CPU"
	CPUOffline   Rule = "OFFLINE"
	OthersTask   Rule = "OTHERS_TASK"
)

// Refusal is a breakpoint that the kernel refuses.
type Refusal struct {
	Rule  Rule
	Errno errno.Errno
	Text  string
}

// Error returns the errno and the reason.
func (r *Refusal) Error() string { return fmt.Sprintf("%s: %s", r.Errno.Error(), r.Text) }

// Unwrap returns the errno.
func (r *Refusal) Unwrap() error { return r.Errno }

// asked is the request that the checks examine.
type asked struct {
	*Event
	s  *Set
	by Asker
	// ofPerf is true if perf_event_open makes the request, false if the kernel itself does.
	ofPerf bool
}

// check is one of the kernel's checks. Text is its sentence.
type check struct {
	rule    Rule
	errno   errno.Errno
	text    string
	refuses func(a *asked) bool
}

func (a *asked) unprivileged() bool { return a.ofPerf && !a.by.Privileged }

// Checks before the event is made (perf_event_open).
var before = []check{
	{NotForAll, errno.EACCES, "kernel.perf_event_paranoid leaves perf_event_open to root", func(a *asked) bool {
		return a.unprivileged() && a.s.Kernel.Restricted && a.s.Kernel.Paranoid > 2
	}},
	{NotTheKernel, errno.EACCES, "kernel.perf_event_paranoid leaves events of the kernel to root: exclude_kernel has to be set", func(a *asked) bool {
		return a.unprivileged() && !a.ExcludeKernel && a.s.Kernel.Paranoid > 1
	}},
	{NoTask, errno.ESRCH, "there is no such task", func(a *asked) bool { return a.Task != Any && a.s.gone[a.Task] }},
	{NoCPU, errno.EINVAL, "there is no such CPU, or neither a task nor a CPU is named", func(a *asked) bool {
		return (a.CPU < 0 || a.CPU >= a.s.Kernel.CPUs) && (a.Task == Any || a.CPU != Any)
	}},
}

// Checks of the registers (reserve_bp_slot), before the address is looked at.
var slots = []check{
	{NoAccess, errno.EINVAL, "a breakpoint is for no access, or for all of them", func(a *asked) bool { return a.Type == Empty || a.Type == Invalid }},
	{NoRegister, errno.ENOSPC, "the debug registers are taken: there are 4", func(a *asked) bool { return !a.s.room(a.Event) }},
}

// Checks of the attributes (hw_breakpoint_parse).
var parse = []check{
	{PastTheEnd, errno.EINVAL, "it has no byte, or goes past the last address", func(a *asked) bool { return a.Addr.Add(int64(a.Len)-1) < a.Addr }},
	{EntryMemory, errno.EINVAL, "the ways into the kernel use this memory", func(a *asked) bool {
		return a.s.Kernel.entry(a.Addr, a.Addr.Add(int64(a.Len)-1))
	}},
	{NoKprobe, errno.EINVAL, "execution of the kernel is watched only where a kprobe would be accepted, and this is on its blacklist", func(a *asked) bool {
		return a.Type == Execute && a.Addr >= a.s.Kernel.userEnd() && a.s.Kernel.Blacklisted != nil && a.s.Kernel.Blacklisted(a.Addr)
	}},
	{ExecuteLong, errno.EINVAL, "the length of an execute breakpoint is 8, sizeof(long)", func(a *asked) bool { return a.Type == Execute && a.Len != ExecuteLen }},
	{NoSuchAccess, errno.EINVAL, "the processor has write, read and write, and execute", func(a *asked) bool {
		return a.Type != Write && a.Type != Read|Write && a.Type != Execute
	}},
	{NoSuchLength, errno.EINVAL, "the length is 1, 2, 4 or 8", func(a *asked) bool { return a.Len == 0 || a.Len&(a.Len-1) != 0 }},
	{Unaligned, errno.EINVAL, "the address is no multiple of the length", func(a *asked) bool { return a.Type != Execute && uint64(a.Addr)&(a.Len-1) != 0 }},
	{NoRanges, errno.EOPNOTSUPP, "the processor has no ranges of more than 8 bytes", func(a *asked) bool { return a.Len > 8 && !a.s.Kernel.Ranges }},
	{Excluded, errno.EINVAL, "the address is the kernel's, and exclude_kernel is set", func(a *asked) bool { return a.kernels() && a.ExcludeKernel }},
	{Privileged, errno.EPERM, "the address is the kernel's: that needs CAP_SYS_ADMIN", func(a *asked) bool { return a.kernels() && a.unprivileged() }},
}

// Checks once the event is made.
var after = []check{
	{CPUWide, errno.EACCES, "kernel.perf_event_paranoid leaves events of a CPU to root", func(a *asked) bool {
		return a.unprivileged() && a.Task == Any && a.s.Kernel.Paranoid > 0
	}},
	{OthersTask, errno.EACCES, "the task is another user's", func(a *asked) bool {
		return a.unprivileged() && a.Task != Any && a.by.Others != nil && a.by.Others(a.Task)
	}},
	{CPUOffline, errno.ENODEV, "the CPU is offline", func(a *asked) bool { return a.Task == Any && !a.s.Kernel.online(a.CPU) }},
}

// kernels reports whether the event covers a byte outside the program's memory.
func (a *asked) kernels() bool {
	n := a.Len
	if a.Type == Execute {
		n = 1 // as in the register
	}
	end := a.s.Kernel.userEnd()
	return a.Addr >= end || a.Addr.Add(int64(n)-1) >= end
}

// inOrder are all checks, in the kernel's order.
var inOrder = slices.Concat(before, slots, parse, after)

// refusals are the refusals of the checks, one after the other.
func (a *asked) refusals(list []check) iter.Seq[*Refusal] {
	return func(yield func(*Refusal) bool) {
		for i := range list {
			if c := &list[i]; c.refuses(a) && !yield(&Refusal{c.rule, c.errno, c.text}) {
				return
			}
		}
	}
}

// refused returns the first refusal.
func (a *asked) refused(list []check) error {
	for r := range a.refusals(list) {
		return r
	}
	return nil
}
