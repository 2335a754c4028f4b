package kprobes

import (
	"kprobelab/kprobes/probepoint"
	"kprobelab/kprobes/rule"
)

// DisableKprobe stops a probe's handlers without removing it (disable_kprobe).
// It fails with EINVAL where p is not registered; a probe that is disabled
// already, or gone, stays as it is.
func (k *Kprobes) DisableKprobe(p *Kprobe) error {
	if err := k.closed(); err != nil {
		return err
	}
	if p == nil {
		return probepoint.Refuse(rule.NotRegistered, 0, "")
	}
	_, err := k.disable(p)
	return err
}

// disable is __disable_kprobe. It returns the table entry.
func (k *Kprobes) disable(p *Kprobe) (*Kprobe, error) {
	k.change()
	entry := k.entryOf(p)
	if entry == nil {
		return nil, probepoint.Refuse(rule.NotRegistered, p.Addr, k.name(p))
	}
	if p.Disabled() {
		return entry, nil
	}
	if p != entry {
		k.point(PointFlags, p)
		p.Flags |= FlagDisabled
	}
	if p != entry && !entry.aggregate.allDisabled() {
		return entry, nil
	}
	if k.armed(entry) {
		if err := k.disarm(entry); err != nil {
			p.Flags &^= FlagDisabled
			return nil, k.armRefused(p, err)
		}
	}
	k.point(PointFlags, entry)
	entry.Flags |= FlagDisabled
	return entry, nil
}

// EnableKprobe lets a disabled probe run again (enable_kprobe). It fails with
// EINVAL where p is not registered or is gone.
//
// While all probes are globally disarmed a probe that is alone at its address
// stays disabled, as in the kernel (docs/spec 1.8, "Quirk").
func (k *Kprobes) EnableKprobe(p *Kprobe) error {
	if err := k.closed(); err != nil {
		return err
	}
	if p == nil {
		return probepoint.Refuse(rule.NotRegistered, 0, "")
	}
	entry := k.entryOf(p)
	if entry == nil {
		return probepoint.Refuse(rule.NotRegistered, p.Addr, k.name(p))
	}
	if p.Gone() {
		return probepoint.Refuse(rule.Gone, p.Addr, k.name(p))
	}
	k.change()
	if p != entry {
		k.point(PointFlags, p)
		p.Flags &^= FlagDisabled
	}
	if k.disarmed || !entry.Disabled() {
		return nil
	}
	k.point(PointFlags, entry)
	entry.Flags &^= FlagDisabled
	if err := k.arm(entry); err != nil {
		entry.Flags |= FlagDisabled
		if !k.c.Ftrace.RefusedIsEnabled {
			p.Flags |= FlagDisabled
		}
		return k.armRefused(p, err)
	}
	return nil
}
