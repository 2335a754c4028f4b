package kprobes

// UnregisterKprobe removes a probe (unregister_kprobe, docs/spec 1.8). An object
// that is not registered gets its Addr cleared, and nothing else happens.
//
// The kernel waits until no CPU can be in the handlers of the probe. Here one CPU runs at a time,
// and between runs no handler runs. When a handler calls this function, a hit that is under way on
// another CPU still runs its post handler.
func (k *Kprobes) UnregisterKprobe(p *Kprobe) {
	if p != nil {
		k.UnregisterKprobes([]*Kprobe{p})
	}
}

// UnregisterKprobes removes several probes: all are disarmed and taken out
// first, then all are freed. Nil elements and an empty list do nothing.
func (k *Kprobes) UnregisterKprobes(ps []*Kprobe) {
	k.change()
	var dead, left []*Kprobe
	for _, p := range ps {
		if p == nil {
			continue
		}
		if err := k.unregisterTop(p); err != nil {
			k.notUnregistered(p, err)
			continue
		}
		if e := k.table.lookup(p.Addr); e == nil {
			dead = append(dead, p)
		} else {
			left = append(left, p)
		}
	}
	k.grace()
	for _, p := range dead {
		k.unregisterBottom(p)
	}
	for _, p := range left {
		p.ool = nil // it is the others' slot
	}
	for _, p := range ps {
		if p != nil && !k.registered(p) {
			k.dropRecord(p)
		}
	}
}

// notUnregistered clears the address of an object that was not registered. A
// probe whose breakpoint cannot be taken out stays registered. Unregistering
// returns nothing, so Err tells.
func (k *Kprobes) notUnregistered(p *Kprobe, err error) {
	if k.registered(p) {
		k.fail(err)
		return
	}
	p.Addr = 0
}

// unregisterTop disables the probe and takes it out of the table, or out of
// its aggregate (__unregister_kprobe_top).
func (k *Kprobes) unregisterTop(p *Kprobe) error {
	entry, err := k.disable(p)
	if err != nil {
		return err
	}
	a := entry.aggregate
	switch {
	case a == nil:
		k.point(PointTable, entry)
		k.table.remove(entry)
	case len(a.members) == 1 && disarmedEntry(entry):
		k.point(PointTable, entry)
		k.table.remove(entry)
	default:
		k.leave(entry, p)
		if !entry.Disabled() {
			k.optimize(entry) // a post handler may have gone
		}
	}
	return nil
}

// unregisterBottom frees the objects that no CPU can reach any more (__unregister_kprobe_bottom).
func (k *Kprobes) unregisterBottom(p *Kprobe) {
	if entry := p.entry; entry != nil {
		k.freedObject(entry)
		k.freeDetour(entry)
		entry.aggregate.members, p.entry = nil, nil
	}
	k.freeSlot(p)
}
