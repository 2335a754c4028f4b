package module

import (
	"encoding/binary"

	"kprobelab"
	"kprobelab/kprobes"
	"kprobelab/x86"
)

// sampleMaxActive is the sample's pool.
const sampleMaxActive = 20

// Kretprobe is samples/kprobes/kretprobe_example.c: it prints a function's time and
// result, but not for kernel threads. Options.Symbol is the module's parameter func. In
// releases without entry handlers it has no time, and kernel threads are not left out.
func Kretprobe(l *kprobelab.Lab, o *Options, say func(Event)) error {
	h, err := newHost(l, say)
	if err != nil {
		return err
	}
	m := &kretprobe{host: h, probe: Probe{Kind: "kretprobe", Symbol: or(o.Symbol, h.c.Sample.Function)}}
	m.rp.MaxActive = or(o.MaxActive, sampleMaxActive)
	return h.run(m, h.session(o))
}

type kretprobe struct {
	*host
	probe Probe
	rp    kprobes.Kretprobe
}

// stampSize is the size of an instance's data: the time of entry.
const stampSize = 8

func (m *kretprobe) init() error {
	m.rp.KP, m.rp.DataSize = m.kprobe(m.probe.Symbol), stampSize
	m.rp.EntryHandler, m.rp.Handler = m.entry, m.returned
	if err := m.lab.Kprobes.RegisterKretprobe(&m.rp); err != nil {
		return m.refused(&m.probe, err, m.lines.FailedReturn)
	}
	m.probe.Addr = m.rp.KP.Addr
	m.say(Event{Name: "planted", Line: m.lines.PlantedReturn(m.probe.Symbol, m.probe.Addr), Probe: &m.probe})
	return nil
}

// entry takes the time, and skips kernel threads.
func (m *kretprobe) entry(i *kprobes.Instance, _ *x86.PtRegs) int {
	if m.current.kernelThread() {
		return 1
	}
	binary.LittleEndian.PutUint64(i.Data, m.lab.Machine.Now())
	return 0
}

func (m *kretprobe) returned(i *kprobes.Instance, regs *x86.PtRegs) int {
	m.probe.Hits++
	e := Event{Name: "return", Probe: &m.probe, At: m.current.place(), Regs: regs, Value: regs.AX}
	if m.c.Kret.EntryHandler {
		e.Duration = int64(m.lab.Machine.Now() - binary.LittleEndian.Uint64(i.Data))
		e.Line = m.lines.Returned(m.probe.Symbol, regs.AX, e.Duration)
	} else {
		e.Line = m.lines.ReturnedOnly(m.probe.Symbol, regs.AX)
	}
	m.say(e)
	return 0
}

func (m *kretprobe) exit() {
	m.lab.Kprobes.UnregisterKretprobe(&m.rp)
	m.say(Event{Name: "unregistered", Line: m.lines.UnregisteredReturn(m.probe.Addr), Probe: &m.probe})
	m.say(Event{Name: "missed", Line: m.lines.Missed(int(m.rp.Nmissed), m.probe.Symbol), Probe: &m.probe})
	m.counters(&m.probe, m.rp.Nmissed)
}
