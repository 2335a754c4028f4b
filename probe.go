package kprobelab

import (
	"kprobelab/internal/callsyntax"
	"kprobelab/kprobes"
)

// Kprobe is a registered probe.
type Kprobe struct {
	*kprobes.Kprobe
	in *kprobes.Kprobes
}

// Close unregisters the probe; if it is unregistered already, Close does nothing. The error is the error of a hit
// that failed since the last call.
func (p *Kprobe) Close() error {
	p.in.UnregisterKprobe(p.Kprobe)
	return p.in.ClearErr()
}

// Kprobe registers a probe at "SYM[+OFF]" or "0xADDR[+OFF]". Each handler may be
// nil. The error is a *probepoint.Refusal with the kernel's errno, or says what
// is wrong with the text.
func (l *Lab) Kprobe(place string, pre kprobes.PreHandler, post kprobes.PostHandler) (*Kprobe, error) {
	p, err := callsyntax.ParseKprobe(place)
	if err != nil {
		return nil, err
	}
	kp := &kprobes.Kprobe{
		SymbolName: p.Symbol, Addr: p.Addr, Offset: p.Offset, PreHandler: pre, PostHandler: post,
	}
	if err := l.Kprobes.RegisterKprobe(kp); err != nil {
		return nil, err
	}
	return &Kprobe{kp, l.Kprobes}, nil
}

// Kretprobe is a registered return probe.
type Kretprobe struct {
	*kprobes.Kretprobe
	in *kprobes.Kprobes
}

// Close unregisters the return probe, as Kprobe.Close does.
func (p *Kretprobe) Close() error {
	p.in.UnregisterKretprobe(p.Kretprobe)
	return p.in.ClearErr()
}

// Kretprobe registers a return probe at "SYM[:MAXACTIVE]". Each handler may be
// nil. The errors are as Kprobe's.
func (l *Lab) Kretprobe(place string, entry, ret kprobes.ReturnHandler) (*Kretprobe, error) {
	p, err := callsyntax.ParseKretprobe(place)
	if err != nil {
		return nil, err
	}
	rp := &kprobes.Kretprobe{
		KP:           kprobes.Kprobe{SymbolName: p.Symbol, Addr: p.Addr, Offset: p.Offset},
		EntryHandler: entry, Handler: ret, MaxActive: p.MaxActive,
	}
	if err := l.Kprobes.RegisterKretprobe(rp); err != nil {
		return nil, err
	}
	return &Kretprobe{rp, l.Kprobes}, nil
}
