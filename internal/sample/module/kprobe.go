package module

import (
	"kprobelab"
	"kprobelab/kprobes"
	"kprobelab/x86"
)

// Kprobe is samples/kprobes/kprobe_example.c: a kprobe on the function that
// makes tasks, with both handlers. Options.Symbol is the module's parameter.
func Kprobe(l *kprobelab.Lab, o *Options, say func(Event)) error {
	h, err := newHost(l, say)
	if err != nil {
		return err
	}
	m := &kprobe{host: h, probe: Probe{Kind: "kprobe", Symbol: or(o.Symbol, h.c.Sample.Function)}}
	return h.run(m, h.session(o))
}

type kprobe struct {
	*host
	probe Probe
	kp    kprobes.Kprobe
}

func (m *kprobe) init() error {
	m.kp = m.kprobe(m.probe.Symbol)
	m.kp.PreHandler, m.kp.PostHandler = m.pre, m.post
	if m.c.FaultHandler {
		m.kp.FaultHandler = m.fault
	}
	if err := m.lab.Kprobes.RegisterKprobe(&m.kp); err != nil {
		return m.refused(&m.probe, err, m.lines.Failed)
	}
	m.probe.Addr = m.kp.Addr
	m.say(Event{Name: "planted", Line: m.lines.Planted(m.kp.Addr), Probe: &m.probe})
	return nil
}

func (m *kprobe) pre(p *kprobes.Kprobe, regs *x86.PtRegs) int {
	m.probe.Hits++
	m.hit("pre", m.lines.Pre(m.probe.Symbol, p.Addr, regs), regs)
	return 0
}

func (m *kprobe) post(p *kprobes.Kprobe, regs *x86.PtRegs, _ uint64) {
	m.hit("post", m.lines.Post(m.probe.Symbol, p.Addr, regs), regs)
}

// fault leaves the fault to the kernel.
func (m *kprobe) fault(p *kprobes.Kprobe, regs *x86.PtRegs, trap int) int {
	m.hit("fault", m.lines.Fault(p.Addr, trap), regs)
	return 0
}

func (m *kprobe) hit(name, line string, regs *x86.PtRegs) {
	m.say(Event{Name: name, Line: line, Probe: &m.probe, At: m.current.place(), Regs: regs})
}

func (m *kprobe) exit() {
	m.lab.Kprobes.UnregisterKprobe(&m.kp)
	m.say(Event{Name: "unregistered", Line: m.lines.Unregistered(m.probe.Addr), Probe: &m.probe})
	m.counters(&m.probe, m.kp.Nmissed)
}
