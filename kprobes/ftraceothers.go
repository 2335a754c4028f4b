package kprobes

import (
	"fmt"

	"kprobelab/errno"
	"kprobelab/kprobes/textpoke"
	"kprobelab/x86"
)

// What others do with the function tracer, as far as probes on fentry sites notice.

// KillFtrace is ftrace_kill: the tracer has found itself broken, and changes no site
// from now on.
func (k *Kprobes) KillFtrace() { k.ftrace.killed = true }

// HoldFtraceSite records that a live patch holds a fentry site, or has released it. Meanwhile no
// other user that may change ip, such as a probe with a post handler, can have the site. It fails
// with EBUSY if a probe has the site.
func (k *Kprobes) HoldFtraceSite(at x86.Addr, on bool) error {
	if p := k.table.lookup(at); on && p != nil && p.ft != nil && p.ft.ops == &k.ftrace.ipmodify {
		return fmt.Errorf("a probe with a post handler is there: %w", errno.EBUSY)
	}
	if k.ftrace.patched == nil {
		k.ftrace.patched = map[x86.Addr]bool{}
	}
	k.ftrace.patched[at] = on
	return nil
}

// mayArm reports whether the tracer lets a registration have a site.
func (k *Kprobes) mayArm(at x86.Addr, ops *ftraceOps) error {
	switch {
	case k.ftrace.killed:
		return fmt.Errorf("the function tracer was killed: %w", errno.ENODEV)
	case ops == &k.ftrace.ipmodify && k.ftrace.patched[at]:
		return fmt.Errorf("a live patch has the function: %w", errno.EBUSY)
	}
	return nil
}

// ftraceCall is the change that has a site call a registration's trampoline.
func (k *Kprobes) ftraceCall(at x86.Addr, ops *ftraceOps) textpoke.Change {
	return textpoke.Change{At: at, New: callInsn(at, ops.trampoline), Landing: ops.trampoline, Calls: true}
}

// FtraceTrampolines are the trampolines that fentry sites call for probes, as far as
// they are placed.
func (k *Kprobes) FtraceTrampolines() (list []x86.Addr) {
	for _, ops := range []*ftraceOps{&k.ftrace.plain, &k.ftrace.ipmodify} {
		if ops.trampoline != 0 {
			list = append(list, ops.trampoline)
		}
	}
	return list
}
