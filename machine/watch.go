package machine

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"kprobelab/errno"
	"kprobelab/internal/bounded"
	"kprobelab/internal/contract"
	"kprobelab/x86"
)

// Access kinds of a Watch, as bits.
const (
	WatchRead = 1 << iota
	WatchWrite
	// WatchExec is the execution of an instruction whose first byte is the watched one.
	WatchExec
)

// MaxWatch is the most bytes of a Watch, MaxWatches the most watches of a machine.
const (
	MaxWatch   = 8
	MaxWatches = bounded.Watchpoints
)

// Watch is a range of memory. Accesses to it by the guest's instructions are reported.
type Watch struct {
	Addr x86.Addr
	// Len is the length in bytes, 1 to MaxWatch; 1 for WatchExec.
	Len uint32
	// Kinds are the accesses.
	Kinds uint32
	// Number is its place in the list; Machine.Watch sets it.
	Number int32
}

// WatchHit describes the accesses of one instruction to one Watch. An engine in C declares the same
// struct.
type WatchHit struct {
	// Watch is the Watch's number.
	Watch int32
	// Kinds are the watched kinds of access that it made.
	Kinds uint32
	// Old and New are the values of the bytes before and after the instruction, the first byte
	// lowest.
	Old, New uint64
}

// Watcher is an Engine that reports accesses. Host.Watched is called after an instruction has
// completed, before the next one begins, with all its accesses at once. For WatchExec it is called
// before the instruction is executed; for a repeated one, once. Accesses during such a call, and
// the host's own writes, are not reported.
type Watcher interface {
	Engine
	// Watch replaces the list, which is sorted by address.
	Watch(list []Watch) error
}

// ErrNoWatch: the engine cannot report accesses.
var ErrNoWatch = fmt.Errorf("the engine has no watchpoints: %w", errno.EOPNOTSUPP)

// Watch makes the CPUs call hit for the accesses in a list, in place of the list before; an empty
// list ends it. The CPU continues with regs as hit leaves them; regs.IP is the next instruction, or
// for WatchExec the instruction itself. hits is valid during the call. Accesses of guest code that
// hit calls are not reported.
func (m *Machine) Watch(list []Watch, hit func(hits []WatchHit, regs *x86.PtRegs)) error {
	if err := m.Closed(); err != nil {
		return err
	}
	e, ok := m.engine.(Watcher)
	switch {
	case !ok:
		return ErrNoWatch
	case len(list)+len(m.shown) > MaxWatches:
		return fmt.Errorf("%d watchpoints: %w: there can be %d", len(list), errno.ENOSPC, MaxWatches)
	}
	for _, w := range list {
		if w.Len < 1 || w.Len > MaxWatch || w.Addr.Add(int64(w.Len)-1) < w.Addr {
			return fmt.Errorf("%d bytes at %s: %w", w.Len, w.Addr, errno.EINVAL)
		}
	}
	if err := m.giveWatches(e, list, m.shown); err != nil {
		return err
	}
	m.watched, m.watch = slices.Clone(list), hit
	if len(list) == 0 {
		m.watch = nil
	}
	return nil
}

// giveWatches gives the engine a list of watches, and after them the instructions of ShowExecuted.
func (m *Machine) giveWatches(e Watcher, list []Watch, shown []x86.Addr) error {
	all := slices.Clone(list)
	for _, at := range shown {
		all = append(all, Watch{Addr: at, Len: 1, Kinds: WatchExec})
	}
	for i := range all {
		all[i].Number = int32(i)
	}
	slices.SortFunc(all, func(a, b Watch) int { return cmp.Or(cmp.Compare(a.Addr, b.Addr), cmp.Compare(a.Number, b.Number)) })
	return e.Watch(all)
}

// showExecuted is ShowExecuted of a machine without a booted kernel: the instruction is a watch of the engine.
func (m *Machine) showExecuted(at x86.Addr) bool {
	e, ok := m.engine.(Watcher)
	switch {
	case slices.Contains(m.shown, at):
		return true
	case !ok, m.Closed() != nil, len(m.watched)+len(m.shown) >= MaxWatches:
		return false
	}
	shown := append(m.shown, at)
	if m.giveWatches(e, m.watched, shown) != nil {
		return false
	}
	m.shown = shown
	return true
}

// executes takes the instructions of ShowExecuted out of hits, and tells the receivers of OnExecuted.
func (m *Machine) executes(hits []WatchHit, regs *x86.PtRegs) []WatchHit {
	first := int32(len(m.watched))
	if !slices.ContainsFunc(hits, func(h WatchHit) bool { return h.Watch >= first }) {
		return hits
	}
	for _, n := range slices.Sorted(maps.Keys(m.executed)) {
		m.executed[n](regs)
	}
	hits = slices.DeleteFunc(slices.Clone(hits), func(h WatchHit) bool { return h.Watch >= first })
	if len(hits) == 0 && !m.opt.FreeHits { // the guest has no trap there
		m.sh.Extra -= m.opt.TrapCost
	}
	return hits
}

// Watching reports whether there is a list.
func (m *Machine) Watching() bool { return m.watch != nil }

// Watched reports the accesses of the instruction that has just completed, or a WatchExec.
func (h *Host) Watched(hits []WatchHit, regs *x86.PtRegs) (answer contract.HostAnswer) {
	m, returned := h.m, false
	defer m.border(&answer, &returned)
	if hits = m.executes(hits, regs); len(hits) > 0 && m.watch != nil {
		m.watch(hits, regs)
	}
	returned = true
	if m.err != nil {
		return contract.Stop
	}
	return contract.Resume
}
