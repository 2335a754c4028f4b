package textpoke

import (
	"slices"

	"kprobelab/x86"
)

// Text is the part of a machine that a change of text uses.
type Text interface {
	// NumCPU is the number of CPUs.
	NumCPU() int
	// PokeTextNoSync changes text. Every CPU keeps the bytes that it has already fetched
	// (text_poke).
	PokeTextNoSync(addr x86.Addr, b []byte) error
	// SyncCore makes one CPU see all text that was poked (the sync-core IPI).
	SyncCore(cpu int)
}

// Change is one address of a change (struct text_poke_loc).
type Change struct {
	At x86.Addr
	// New are the bytes to be written.
	New []byte
	// Landing is the address at which a CPU continues that executes the change's int3 while the
	// change is announced.
	Landing x86.Addr
	// Calls: the change makes a call, so that the address after it is pushed.
	Calls bool
}

// Run is a change under way. Other CPUs may run between its steps.
type Run struct {
	p       *Poker
	left    Protocol
	changes []Change
}

// Poker is the text_poke of one machine.
type Poker struct {
	m Text
	// Before is called before a step that is no write and no synchronization (the machine sees
	// those itself); may be nil.
	Before func(Step, x86.Addr)
	// announced is the array that the int3 handler searches, sorted by address
	// (text_poke_array).
	announced []Change
	// queue holds the changes that Queue has collected (tp_vec).
	queue []Change
}

// New is the text_poke of a machine.
func New(m Text) Poker { return Poker{m: m} }

// Ready reports whether there is a machine whose text it changes.
func (p *Poker) Ready() bool { return p.m != nil }

// Start begins a change; Step takes its steps.
func (p *Poker) Start(steps Protocol, c ...Change) *Run { return &Run{p, steps, c} }

// Done reports whether no step is left.
func (r *Run) Done() bool { return r == nil || len(r.left) == 0 }

// At is the first address of the change.
func (r *Run) At() x86.Addr { return r.changes[0].At }

// Step takes the next step, and returns its kind. It must not be called when no step is left.
func (r *Run) Step() (Step, error) {
	s := r.left[0]
	r.left = r.left[1:]
	var failed error
	switch s {
	case Announce, Withdraw:
		if r.p.Before != nil {
			r.p.Before(s, r.At())
		}
		r.p.announced = nil
		if s == Announce {
			r.p.announced = r.changes
		}
	case Sync:
		r.p.sync()
	default:
		for i := range r.changes {
			if err := r.write(&r.changes[i], s); err != nil {
				failed = err
			}
		}
		if s == Whole {
			r.p.sync()
		}
	}
	return s, failed
}

// sync is text_poke_sync.
func (p *Poker) sync() {
	for cpu := range p.m.NumCPU() {
		p.m.SyncCore(cpu)
	}
}

// int3 is the byte that a step writes first.
var int3 = []byte{x86.Int3}

func (r *Run) write(c *Change, s Step) error {
	b, at := c.New, c.At
	switch s {
	case Int3:
		b = int3
	case Tail:
		b, at = c.New[1:], c.At+1
	case First:
		b = c.New[:1]
	}
	if len(b) == 0 {
		return nil
	}
	return r.p.m.PokeTextNoSync(at, slices.Clone(b))
}

// All takes all steps that are left.
func (r *Run) All() error {
	var failed error
	for !r.Done() {
		if _, err := r.Step(); err != nil {
			failed = err
		}
	}
	return failed
}

// Met returns the change that is announced at the address of an int3, nil if there is none
// (poke_int3_handler). Like the kernel it searches binarily: in an array that is not sorted it may
// miss.
func (p *Poker) Met(at x86.Addr) *Change {
	list := p.announced
	for len(list) > 0 {
		n := len(list) / 2
		switch {
		case list[n].At == at:
			return &list[n]
		case list[n].At < at:
			list = list[n+1:]
		default:
			list = list[:n]
		}
	}
	return nil
}

// Busy reports whether a change is announced.
func (p *Poker) Busy() bool { return len(p.announced) > 0 }

// Digest feeds add with the changes that are announced or wait.
func (p *Poker) Digest(add func(uint64)) {
	for _, list := range [][]Change{p.announced, p.queue} {
		add(uint64(len(list)))
		for _, c := range list {
			c.digest(add)
		}
	}
}

// Digest calls add with the state of the rest of the change.
func (r *Run) Digest(add func(uint64)) {
	add(uint64(len(r.left)))
	for _, c := range r.changes {
		c.digest(add)
	}
}

func (c *Change) digest(add func(uint64)) {
	add(uint64(c.At))
	add(uint64(c.Landing))
	for _, b := range c.New {
		add(uint64(b))
	}
}
