package booted

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"time"

	"kprobelab/internal/bounded"
	"kprobelab/kimage"
	"kprobelab/x86"
)

// slotCounts are the instruction slots in use, of kprobes and of optimized ones.
type slotCounts struct{ kprobes, optimized int }

func (k *Kernel) slotCounts() slotCounts {
	l := k.moduleLayout()
	return slotCounts{k.slots(l, "kprobe_insn_slots"), k.slots(l, "kprobe_optinsn_slots")}
}

// settle lets virtual time pass until the kernel's optimizer has nothing left to do, for two seconds at most.
func (k *Kernel) settle() {
	step := make([]byte, 16)
	copy(step[8:], []byte{0x80, 0x96, 0x98}) // 10 ms
	for range 2 * int(time.Second/(10*time.Millisecond)) {
		if k.optimizerIdle() {
			return
		}
		if _, err := k.asks("nanosleep", step, 0); err != nil {
			return
		}
	}
}

// Unload unloads the module, and says what it has left. The judgement comes with an error, too, as far as it is known.
func (m *Module) Unload(ctx context.Context) (*Judgement, error) {
	m.Look()
	err := m.ask(ctx, true, "unload", m.Name)
	if err == nil {
		m.end()
	}
	return m.Judge(), err
}

// Judge says what the module did, and what it has left by now.
func (m *Module) Judge() *Judgement {
	m.Look()
	j := &Judgement{Log: m.log.lines(), Trouble: m.log.trouble(), Changed: m.changed(), Probes: m.Probes, Faults: m.watch.faults, After: m.watch.after}
	for _, left := range m.new() {
		for _, p := range m.Probes {
			if p.at == left.at {
				left = p // its memory is gone
			}
		}
		j.Left = append(j.Left, left)
	}
	for _, p := range m.watch.order {
		if p.refused() {
			j.Probes = append(j.Probes, p.ModuleProbe)
		}
	}
	if m.ended {
		now := m.k.slotCounts()
		j.Slots, j.OptimizedSlots = max(0, now.kprobes-m.slots.kprobes), max(0, now.optimized-m.slots.optimized)
		j.Memory = slices.SortedFunc(maps.Values(m.watch.taken), func(a, b Allocation) int { return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.at, b.at)) })
		j.Ran = m.watch.ran(m.endLog.trouble())
	}
	j.Untold = m.watch.untold()
	return j
}

var ipLine = regexp.MustCompile(`RIP: 0010:(?:0x([0-9a-f]+)|\S+)`)
var codeLine = regexp.MustCompile(`unable to handle page fault for address: ([0-9a-f]+)`)

// ran finds an oops of an instruction in the module's memory.
func (w *moduleWatch) ran(trouble []string) string {
	for _, line := range trouble {
		if m := ipLine.FindStringSubmatch(line); m != nil {
			if at, err := strconv.ParseUint(m[1], 16, 64); err == nil && w.owns(x86.Addr(at)) {
				return fmt.Sprintf("code of %s at %s ran after its end", w.name, w.place(x86.Addr(at)))
			}
		}
	}
	for _, line := range trouble {
		if m := codeLine.FindStringSubmatch(line); m != nil {
			if at, err := strconv.ParseUint(m[1], 16, 64); err == nil && w.owns(x86.Addr(at)) {
				return fmt.Sprintf("the kernel used memory of %s at %s after its end", w.name, w.place(x86.Addr(at)))
			}
		}
	}
	return ""
}

// untold says what the watch cannot tell.
func (w *moduleWatch) untold() (list []string) {
	if !w.layout.known {
		return []string{"this kernel does not describe its types: hits, slots, memory and faults are not known"}
	}
	if len(w.memory) == 0 {
		list = append(list, "the kernel did not call the module's init")
	}
	for _, p := range w.order {
		if !p.Counted && !p.refused() {
			list = append(list, fmt.Sprintf("the probe at %s has no handler: its hits are not counted", p.Place))
		}
	}
	if w.forgot {
		list = append(list, fmt.Sprintf("the module took more than %d pieces of memory at once: the rest is not known", bounded.ModuleAllocations))
	}
	if len(w.freed) > 0 && !w.watching {
		list = append(list, "uses of freed memory are not seen beside --watch")
	}
	return list
}

// ownBranch reports whether a place of text is the kernel's own to change: a static branch or a static call.
func (m *Module) ownBranch(at x86.Addr) bool {
	r := x86.Range{Start: at, End: at + 1}
	_, branch := m.k.image.SiteIn(kimage.SiteJumpLabel, r)
	_, call := m.k.image.SiteIn(kimage.SiteStaticCall, r)
	if !branch && !call {
		return false
	}
	for _, p := range m.watch.order {
		if p.address != 0 && at >= p.address && at < p.address+5 { // a jump of an optimized probe
			return false
		}
	}
	return true
}
