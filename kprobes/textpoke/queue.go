package textpoke

// Queue collects a change for Finish (text_poke_queue). The array has to be sorted: if the change
// does not follow the last one, Finish is called first.
func (p *Poker) Queue(c Change) error {
	var err error
	if n := len(p.queue); n > 0 && p.queue[n-1].At > c.At {
		err = p.Finish()
	}
	p.queue = append(p.queue, c)
	return err
}

// Finish makes the changes that were collected (text_poke_finish).
func (p *Poker) Finish() error {
	list := p.queue
	p.queue = nil
	if len(list) == 0 {
		return nil
	}
	return p.Start(Batch, list...).All()
}

// StartSingle begins one change (text_poke_bp) while others may wait in the
// queue. In kernels with an array of its own for the queue, they go on waiting.
func (p *Poker) StartSingle(steps Protocol, c Change, a Array) (*Run, error) {
	switch {
	case !a.Shared || len(p.queue) == 0:
		return p.Start(steps, c), nil
	case a.Appended:
		list := append(p.queue, c)
		p.queue = nil
		return p.Start(steps, list...), nil
	}
	err := p.Finish()
	return p.Start(steps, c), err
}

// Array describes how single changes and the queue share the array of changes.
type Array struct {
	// Shared: there is one array for both (6.16 and later).
	Shared bool
	// Appended: a single change is appended to the changes that wait in the array, in whatever
	// order (bug 34 in docs/bugs.md).
	Appended bool
}
