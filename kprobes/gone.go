package kprobes

import "kprobelab/x86"

// KillKprobes makes every probe in a range of text gone (kill_kprobe, docs/spec
// 1.10): its code is about to disappear with a module, or with the kernel's
// init memory. The text is written no more, except at ftrace sites; the slots
// are freed; the probes can only be unregistered.
func (k *Kprobes) KillKprobes(r x86.Range) {
	k.change()
	k.table.each(func(entry *Kprobe) {
		if r.Contains(entry.Addr) {
			k.kill(entry)
		}
	})
}

func (k *Kprobes) kill(entry *Kprobe) {
	if entry.Gone() {
		return
	}
	if entry.OnFtrace() && k.armed(entry) {
		// The function tracer gives its site up; what else is there goes with
		// the text.
		if err := k.disarm(entry); err != nil {
			k.fail(err)
		}
	}
	k.freeSlot(entry)
	k.point(PointFlags, entry)
	entry.Flags |= FlagGone
	if entry.aggregate == nil {
		return
	}
	entry.aggregate.post, entry.aggregate.brk = false, false
	for _, m := range entry.aggregate.members {
		m.Flags |= FlagGone
		m.ool = nil
	}
	k.killOptimized(entry)
}
