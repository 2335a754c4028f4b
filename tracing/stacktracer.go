package tracing

import (
	"fmt"
	"strings"

	"kprobelab/x86"
)

// stackTracer remembers the deepest stack at a function's entry
// (kernel/trace/trace_stack.c). It uses the function tracer as the trace arrays
// do, with a filter of its own.
type stackTracer struct {
	// on is the sysctl kernel.stack_tracer_enabled.
	on     bool
	filter functionFilter
	// max is the depth in bytes that a stack has to exceed; entries are the
	// deepest stack, from the function outwards.
	max     uint64
	entries []stackEntry
}

// stackEntry is a return address, and how deep it lies: bytes to the stack's end.
type stackEntry struct{ addr, depth uint64 }

// maxStackEntries bounds the entries (STACK_TRACE_ENTRIES).
const maxStackEntries = 500

func (s *stackTracer) wants(site x86.Addr) bool {
	return s.on && (len(s.filter) == 0 || s.filter[site])
}

// stackNodes are the stack tracer's files.
func (t *Tracing) stackNodes() []*node {
	if !t.notrace {
		return nil
	}
	return []*node{
		setting("stack_max_size", func() string { return fmt.Sprintf("%d\n", t.stack.max) }, func(s string) error {
			v, err := decimal(s)
			if err == nil {
				t.stack.max = v
			}
			return err
		}),
		text("stack_trace", t.stackText),
		t.top.filterNode("stack_trace_filter", t.stack.filter, allFunctions),
		folder("kernel", func() []*node {
			n := setting("stack_tracer_enabled", func() string { return zeroOne(t.stack.on) + "\n" }, func(s string) error {
				v, err := decimal(s)
				if err != nil {
					return err
				}
				t.stack.on = v != 0
				return t.traceFunctions()
			})
			n.mode = 0o644
			return []*node{n}
		}),
	}
}

// checkStack measures the depth of the stack at a function's site (check_stack). The first entry is
// the address after the site, which the call there pushes.
func (t *Tracing) checkStack(site x86.Addr, regs *x86.PtRegs) {
	top := regs.SP&^(x86.ThreadSize-1) + x86.ThreadSize
	depth := top - regs.SP + 8
	if depth <= t.stack.max {
		return
	}
	t.stack.max = depth
	const call = 5
	list := append(t.stack.entries[:0], stackEntry{uint64(site) + call, depth})
	t.eachCaller(regs, func(addr, at uint64) bool {
		list = append(list, stackEntry{addr, top - at})
		return len(list) < maxStackEntries
	})
	t.stack.entries = list
}

// afterCall reports whether a word is the address right after a call in text: a
// direct one, or one through a register or memory.
func (t *Tracing) afterCall(w uint64) bool {
	if _, ok := t.k.View().SymbolAt(x86.Addr(w)); !ok {
		return false
	}
	const longest = 7
	var b [longest]byte
	if t.k.View().CodeAt(x86.Addr(w-longest), b[:]) != longest {
		return false
	}
	if b[longest-5] == 0xe8 {
		return true
	}
	for _, n := range []int{2, 3, 6, 7} { // FF /2 with its ModRM, SIB, displacement
		if b[longest-n] == 0xff && b[longest-n+1]>>3&7 == 2 {
			return true
		}
	}
	return false
}

// stackText returns the content of the file stack_trace.
func (t *Tracing) stackText() string {
	s := &t.stack
	var b strings.Builder
	fmt.Fprintf(&b, "        Depth    Size   Location    (%d entries)\n        -----    ----   --------\n", len(s.entries))
	if !s.on && s.max == 0 {
		b.WriteString("#\n#  Stack tracer disabled\n#\n# To enable the stack tracer, either add 'stacktrace' to the\n" +
			"# kernel command line\n# or 'echo 1 > /proc/sys/kernel/stack_tracer_enabled'\n#\n")
	}
	for i, e := range s.entries {
		size := e.depth
		if i+1 < len(s.entries) {
			size -= s.entries[i+1].depth
		}
		fmt.Fprintf(&b, "%3d) %8d   %5d   %s\n", i, e.depth, size, t.symbol(e.addr, true))
	}
	return b.String()
}
