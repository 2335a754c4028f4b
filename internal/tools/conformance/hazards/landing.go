package hazards

import (
	"sync"

	"kprobelab/internal/qemu"
	"kprobelab/kprobes/hazard"
	"kprobelab/x86"
)

// landings watches by QEMU's debugger whether a machine comes to wrong addresses.
type landings struct {
	mu sync.Mutex
	// landed holds the wrong addresses that the machine reached. register names the register that differed, and both
	// values; "" if none did.
	landed   map[x86.Addr]bool
	register string
	done     chan struct{}
}

// watch lets the machine go on, and looks where it comes to. Each address is told of
// once; where the effect is one on registers, until one differs.
func watch(r *qemu.Running, points []Point) (*landings, error) {
	d, err := r.Debug()
	if err != nil {
		return nil, err
	}
	l := &landings{landed: map[x86.Addr]bool{}, done: make(chan struct{})}
	next := map[x86.Addr]x86.Addr{}
	for i := range points {
		p := &points[i]
		if _, ok := next[p.Lands]; p.Lands == 0 || ok {
			continue
		}
		if err := d.BreakAt(p.Lands); err != nil {
			return nil, err
		}
		next[p.Lands] = 0
		if p.Effect == hazard.WrongRegister || p.Effect == hazard.WrongResult {
			next[p.Lands] = p.Next
		}
	}
	if err := d.Go(); err != nil {
		return nil, err
	}
	go func() {
		defer close(l.done)
		defer d.Close()
		for l.one(d, next) == nil {
		}
	}()
	return l, nil
}

// one waits for a stop, notes it, and lets the machine go on.
func (l *landings) one(d *qemu.Debugger, next map[x86.Addr]x86.Addr) error {
	at, err := d.Stopped(0)
	if err != nil {
		return err
	}
	if err := d.Clear(at); err != nil {
		return err
	}
	register := ""
	if right := next[at]; right != 0 {
		if register, err = compare(d, right); err != nil {
			return err
		}
		if register == "" { // another time its registers may be others
			if err := d.BreakAt(at); err != nil {
				return err
			}
		}
	}
	l.mu.Lock()
	l.landed[at] = true
	if l.register == "" {
		l.register = register
	}
	l.mu.Unlock()
	return d.Go()
}

// at reports what is known of an address.
func (l *landings) at(a x86.Addr) (landed bool, register string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.landed[a], l.register
}

// stepper is a machine that stands.
type stepper interface {
	Registers() (qemu.Registers, error)
	SetRegisters(r *qemu.Registers) error
	Step() (qemu.Registers, error)
}

// How many instructions are compared at most.
const steps = 6

// compare runs some instructions from the right address on, then, from the same
// registers, those at the wrong one, where the machine stands, until both have come to
// the same address; and says in which register they differ, "" when in none. The machine
// then stands on the wrong way.
func compare(d stepper, right x86.Addr) (string, error) {
	wrong, err := d.Registers()
	if err != nil {
		return "", err
	}
	there := wrong
	there.SetIP(right)
	if err := d.SetRegisters(&there); err != nil {
		return "", err
	}
	way := map[x86.Addr]qemu.Registers{right: there}
	for range steps {
		if there, err = d.Step(); err != nil {
			return "", err
		}
		if _, ok := way[there.IP()]; !ok {
			way[there.IP()] = there
		}
	}
	if err := d.SetRegisters(&wrong); err != nil {
		return "", err
	}
	for range steps {
		if there, err = d.Step(); err != nil {
			return "", err
		}
		if want, ok := way[there.IP()]; ok {
			return there.Differ(&want), nil
		}
	}
	return "", nil
}
