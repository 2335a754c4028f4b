package session

import (
	"encoding/binary"
	"kprobelab/internal/callsyntax"

	"kprobelab/kprobes"
	"kprobelab/x86"
)

// Plant registers a probe as the kernel's sample modules do: a kprobe with a
// pre and (unless h has none) a post handler, a kretprobe with 8 bytes of data for the time of
// entry. A refusal is the kernel's, a *probepoint.Refusal.
func (l *Session) Plant(p callsyntax.Probe, h Handlers) (*Planted, error) {
	planted := &Planted{Probe: p}
	var err error
	if p.Return {
		err = l.plantReturn(planted, h)
	} else {
		err = l.plantKprobe(planted, h)
	}
	if err != nil {
		return nil, err
	}
	planted.Name = l.name(planted)
	return planted, nil
}

// name returns the symbol that the samples print: the requested one, else the symbol
// that covers the address.
func (l *Session) name(p *Planted) string {
	if p.Symbol != "" {
		return p.Symbol
	}
	if s, ok := l.Kprobes.View().SymbolAt(p.At); ok {
		return s.Name
	}
	return p.At.String()
}

func (l *Session) plantKprobe(p *Planted, h Handlers) error {
	kp := &kprobes.Kprobe{SymbolName: p.Symbol, Addr: p.Addr, Offset: p.Offset}
	kp.PreHandler = func(_ *kprobes.Kprobe, regs *x86.PtRegs) int {
		p.Hits++
		if h.Pre != nil {
			h.Pre(p, l.Here(), regs)
		}
		return 0
	}
	if h.Post != nil { // having one matters: it prevents boosting
		kp.PostHandler = func(_ *kprobes.Kprobe, regs *x86.PtRegs, _ uint64) { h.Post(p, l.Here(), regs) }
	}
	if err := l.Kprobes.RegisterKprobe(kp); err != nil {
		return err
	}
	p.At, p.plant = kp.Addr, plant{kp: kp}
	return nil
}

// stampSize is the size of an instance's data: the time of entry.
const stampSize = 8

func (l *Session) plantReturn(p *Planted, h Handlers) error {
	rp := &kprobes.Kretprobe{
		KP:        kprobes.Kprobe{SymbolName: p.Symbol, Addr: p.Addr, Offset: p.Offset},
		MaxActive: p.MaxActive, DataSize: stampSize,
	}
	rp.EntryHandler = func(i *kprobes.Instance, _ *x86.PtRegs) int {
		binary.LittleEndian.PutUint64(i.Data, l.Machine.Now())
		return 0
	}
	rp.Handler = func(i *kprobes.Instance, regs *x86.PtRegs) int {
		p.Hits++
		if h.Returned != nil {
			h.Returned(p, l.Here(), regs.AX, l.since(i))
		}
		return 0
	}
	if err := l.Kprobes.RegisterKretprobe(rp); err != nil {
		return err
	}
	p.At, p.plant = rp.KP.Addr, plant{rp: rp}
	return nil
}

// since returns the time that the call has taken in nanoseconds, -1 if the time of its
// entry is not known: kernels before 2.6.25 have no entry handlers.
func (l *Session) since(i *kprobes.Instance) int64 {
	if !l.Kprobes.Config().Kret.EntryHandler {
		return -1
	}
	return int64(l.Machine.Now() - binary.LittleEndian.Uint64(i.Data))
}

// Unplant unregisters the probe and reads its counters for the last time.
func (l *Session) Unplant(p *Planted) {
	switch {
	case p.Watched != nil:
		p.Hits = p.Watched.Hits
		_ = l.Watches.Remove(p.Watched) // it is set
	case p.plant.kp != nil:
		l.Kprobes.UnregisterKprobe(p.plant.kp)
		p.Missed = p.plant.kp.Nmissed
	case p.plant.rp != nil:
		l.Kprobes.UnregisterKretprobe(p.plant.rp)
		p.Missed = p.plant.rp.Nmissed + p.plant.rp.KP.Nmissed
		if u, ok := p.plant.rp.Usage(); ok {
			p.Pool = &u
		}
	}
	p.plant = plant{}
}

// Here returns the machine's present CPU, task and time.
func (l *Session) Here() Where {
	return Where{CPU: l.Machine.CPU(), Task: l.Machine.Task(), Now: l.Machine.Now()}
}
