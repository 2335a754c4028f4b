package interp

import (
	"encoding/binary"
	"sort"

	"kprobelab/internal/contract"
	"kprobelab/machine"
	"kprobelab/x86"
)

// watch is the list of watched memory. Its pages are in neither small table, so that each access to
// them is made by readBytes or writeBytes.
type watch struct {
	list []machine.Watch // by address
	// guests are the breakpoints that a booted kernel has set.
	guests []breakpoint
	// pages are the pages with a watched byte of data.
	pages map[uint64]bool
	// data and exec are true if there is a Watch of each sort.
	data, exec bool
	// hits are the hits of the instruction that runs. place has, for each Watch of the list, 1 plus
	// the index of its hit, 0 without a hit. hit lists the Watches with a hit.
	hits  []machine.WatchHit
	place []int32
	hit   []int
	// off counts the calls of the host under way that report hits.
	off int
}

// none is an address that no instruction has: it is not canonical.
const none = 1 << 63

func (e *engine) Watch(list []machine.Watch) error {
	w := watch{
		list: list, pages: map[uint64]bool{}, off: e.watch.off,
		hits: make([]machine.WatchHit, 0, len(list)), place: make([]int32, len(list)), hit: make([]int, 0, len(list)),
	}
	for i := range list {
		w.add(&list[i])
	}
	if e.b != nil {
		for _, c := range e.cpus {
			w.guests = c.breakpoints(w.guests)
		}
	}
	for i := range w.guests {
		w.add(&w.guests[i].Watch)
	}
	e.watch = w
	e.flushTLB()
	return nil
}

func (w *watch) add(one *machine.Watch) {
	if one.Kinds&machine.WatchExec != 0 {
		w.exec = true
	}
	if one.Kinds&(machine.WatchRead|machine.WatchWrite) != 0 {
		w.data = true
		w.pages[uint64(one.Addr)/pageSize] = true
		w.pages[uint64(one.Addr.Add(int64(one.Len)-1))/pageSize] = true
	}
}

// watchAgain follows a change of the guest's breakpoints.
func (e *engine) watchAgain() { _ = e.Watch(e.watch.list) }

// on reports whether accesses are reported now.
func (w *watch) on() bool { return (w.data || w.exec) && w.off == 0 }

// pending reports whether there are hits to report. Hits that are being reported do not count.
func (w *watch) pending() bool { return len(w.hits) > 0 && w.off == 0 }

// met reports whether the instruction has hit anything, of the host's or the guest's.
func (c *cpu) met() bool { return c.e.watch.pending() || c.sys.hits != 0 && c.e.watch.off == 0 }

// watched reports whether a page is to be in no small table.
func (w *watch) watched(number uint64) bool { return w.data && w.pages[number] }

// access records an access to n bytes, before it changes memory.
func (e *engine) access(a uint64, n int, kind uint32) {
	w := &e.watch
	if w.off > 0 {
		return
	}
	if len(w.guests) > 0 {
		e.hitBreakpoints(a, n, kind)
	}
	from := uint64(0)
	if a > machine.MaxWatch {
		from = a - machine.MaxWatch
	}
	for i := sort.Search(len(w.list), func(i int) bool { return uint64(w.list[i].Addr) > from }); i < len(w.list); i++ {
		one := &w.list[i]
		if uint64(one.Addr)-a >= uint64(n) && a-uint64(one.Addr) >= uint64(one.Len) {
			if uint64(one.Addr) > a {
				return
			}
			continue
		}
		if one.Kinds&kind != 0 {
			e.noteHit(i, kind)
		}
	}
}

func (e *engine) noteHit(i int, kind uint32) {
	w := &e.watch
	if w.place[i] == 0 {
		w.hits = append(w.hits, machine.WatchHit{Watch: w.list[i].Number, Old: e.held(&w.list[i])})
		w.hit = append(w.hit, i)
		w.place[i] = int32(len(w.hits))
	}
	w.hits[w.place[i]-1].Kinds |= kind
}

// held returns the value of a Watch's bytes; an unmapped byte is 0.
func (e *engine) held(w *machine.Watch) uint64 {
	var b [machine.MaxWatch]byte
	for i := range b[:w.Len] {
		at := w.Addr.Add(int64(i))
		if p := e.page(at, 0); p != nil {
			b[i] = p[at%pageSize]
		}
	}
	return binary.LittleEndian.Uint64(b[:])
}

// forget gives up the hits of an instruction that did not complete.
func (w *watch) forget() {
	for _, i := range w.hit {
		w.place[i] = 0
	}
	w.hits, w.hit = w.hits[:0], w.hit[:0]
}

// runWatching is runBlock and runCounting while there is something to watch.
func (c *cpu) runWatching(b *block) bool {
	e := c.e
	every := e.opt.EveryInstruction
	n := uint64(len(b.ops))
	if !every {
		e.Instrs += n
		e.Work += b.work
	}
	for i := range b.ops {
		o := &b.ops[i]
		rest := n - uint64(i) - 1 // that were counted, and follow
		if every {
			if i > 0 && (c.reason != reasonNone || e.Instrs >= e.StopAt.Load()) {
				c.ip = o.ip
				return true
			}
			e.Instrs++
			rest = 0
		}
		if e.watch.exec && c.executes(o.ip) {
			stay := c.tell(b, o.ip)
			c.resumed = c.ip
			if !stay {
				e.Instrs -= rest + 1
				return false
			}
		}
		c.resumed = none
		c.flags &^= flagRF
		if !o.exec(c, o) {
			c.forgetHits()
			return c.happened(o)
		}
		if !c.met() {
			continue
		}
		next := o.next
		if i == len(b.ops)-1 && !b.falls {
			next = c.ip
		}
		if !c.tell(b, next) || i == len(b.ops)-1 {
			e.Instrs -= rest
			return true
		}
	}
	if every {
		e.Work += b.work
	}
	if b.falls {
		c.ip = b.end
	}
	return true
}

// executes notes the hits of an instruction that is about to run, and reports whether there are
// any. An instruction whose hit was reported continues without another, and so does a repeated one.
func (c *cpu) executes(ip uint64) bool {
	w := &c.e.watch
	if w.off > 0 || !w.executed(ip) || c.goesOn(ip) {
		return false
	}
	c.e.hitBreakpoints(ip, 1, machine.WatchExec)
	for i := sort.Search(len(w.list), func(i int) bool { return uint64(w.list[i].Addr) >= ip }); i < len(w.list) && uint64(w.list[i].Addr) == ip; i++ {
		if w.list[i].Kinds&machine.WatchExec != 0 {
			c.e.noteHit(i, machine.WatchExec)
		}
	}
	return c.met()
}

// executed reports whether the execution of the instruction at an address is watched.
func (w *watch) executed(ip uint64) bool {
	for i := range w.guests {
		if g := &w.guests[i]; uint64(g.Addr) == ip && g.Kinds&machine.WatchExec != 0 {
			return true
		}
	}
	for i := sort.Search(len(w.list), func(i int) bool { return uint64(w.list[i].Addr) >= ip }); i < len(w.list) && uint64(w.list[i].Addr) == ip; i++ {
		if w.list[i].Kinds&machine.WatchExec != 0 {
			return true
		}
	}
	return false
}

// forgetHits gives up all hits of an instruction that did not complete.
func (c *cpu) forgetHits() {
	c.e.watch.forget()
	c.sys.hits = 0
}

// tell tells the host of the hits, with ip as the next instruction. It reports whether the
// block can go on there.
func (c *cpu) tell(b *block, ip uint64) bool {
	e := c.e
	c.ip = ip
	if len(e.watch.hits) == 0 { // the guest's alone
		return false
	}
	e.Extra += e.opt.TrapCost
	e.addWork(contract.WorkTrap)
	regs := c.takeFrame()
	defer c.putFrame(regs)
	c.regs(regs)
	hits := e.watch.hits
	for i, n := range e.watch.hit {
		hits[i].New = e.held(&e.watch.list[n])
	}
	e.watch.off++
	answer := c.host(func(h *machine.Host) contract.HostAnswer { return h.Watched(hits, regs) })
	e.watch.off--
	e.watch.forget() // of a list that the host has put in the place of this one, nothing
	if answer == contract.Stop {
		c.reason = reasonError
		return false
	}
	flags := c.flags
	c.setRegs(regs)
	c.ip = regs.IP
	return c.ip == ip && c.sys.hits == 0 && !b.dead && c.reason == reasonNone && (c.flags^flags)&x86.FlagTF == 0
}
