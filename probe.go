package kprobelab

import (
	"kprobelab/internal/callsyntax"
	"kprobelab/kprobes"
)

// Kprobe registers a probe at "SYM[+OFF]" or "0xADDR[+OFF]". Each handler may be
// nil. The error is a *probepoint.Refusal with the kernel's errno, or says what
// is wrong with the text. l.Kprobes.UnregisterKprobe takes the probe away.
func (l *Lab) Kprobe(place string, pre kprobes.PreHandler, post kprobes.PostHandler) (*kprobes.Kprobe, error) {
	p, err := callsyntax.ParseKprobe(place)
	if err != nil {
		return nil, err
	}
	kp := &kprobes.Kprobe{
		SymbolName: p.Symbol, Addr: p.Addr, Offset: p.Offset, PreHandler: pre, PostHandler: post,
	}
	return kp, l.Kprobes.RegisterKprobe(kp)
}

// Kretprobe registers a return probe at "SYM[:MAXACTIVE]". Each handler may be
// nil. The errors are as Kprobe's. l.Kprobes.UnregisterKretprobe takes it away.
func (l *Lab) Kretprobe(place string, entry, ret kprobes.ReturnHandler) (*kprobes.Kretprobe, error) {
	p, err := callsyntax.ParseKretprobe(place)
	if err != nil {
		return nil, err
	}
	rp := &kprobes.Kretprobe{
		KP:           kprobes.Kprobe{SymbolName: p.Symbol, Addr: p.Addr, Offset: p.Offset},
		EntryHandler: entry, Handler: ret, MaxActive: p.MaxActive,
	}
	return rp, l.Kprobes.RegisterKretprobe(rp)
}
