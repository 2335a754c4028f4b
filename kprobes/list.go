package kprobes

import (
	"fmt"
	"strings"
)

// List is the debugfs file kprobes/list (docs/spec 8.1): a line for every
// probe, in the order of the kernel's hash buckets, newest first in each. A
// line without flags ends in spaces.
func (k *Kprobes) List() string {
	var b strings.Builder
	k.table.each(func(entry *Kprobe) {
		for _, p := range k.members(entry) {
			k.listLine(&b, entry, p)
		}
	})
	return b.String()
}

func (k *Kprobes) listLine(b *strings.Builder, entry, p *Kprobe) {
	kind := "k"
	switch {
	case p.kret != nil:
		kind = "r"
	case p.jprobe != nil:
		kind = "j"
	}
	fmt.Fprintf(b, "%016x  %s  ", uint64(p.Addr), kind)
	if s, ok := k.view.SymbolAt(p.Addr); ok {
		module := s.Module
		if module == "" {
			module = " "
		}
		fmt.Fprintf(b, "%s+0x%x  %s ", s.Name, uint64(p.Addr.Sub(s.Addr)), module)
	} else {
		fmt.Fprintf(b, "%s ", p.Addr)
	}
	b.WriteString(listFlags(entry, p))
	b.WriteByte('\n')
}

// listFlags has the member's own state first, then the aggregate's.
func listFlags(entry, p *Kprobe) string {
	s := ""
	switch {
	case p.Gone():
		s = "[GONE]"
	case p.Disabled():
		s = "[DISABLED]"
	}
	if entry.Optimized() {
		s += "[OPTIMIZED]"
	}
	if entry.OnFtrace() {
		s += "[FTRACE]"
	}
	return s
}
