package run

import "kprobelab/internal/sample/module"

// OfSample is an event of a sample module as a record.
func OfSample(m module.Event) Record {
	e := Record{Event: m.Name, Detail: m.Line}
	if p := m.Probe; p != nil {
		e.Kind, e.Probe = p.Kind, p.Symbol
		if p.Addr != 0 {
			e.Addr = p.Addr.String()
		}
	}
	if at := m.At; at != nil {
		e = e.At(Where{CPU: at.CPU, Task: at.Task, Now: at.Now})
		e.Comm = at.Comm
	}
	switch m.Name {
	case "pre", "post":
		e = e.Registers(m.Regs)
	case "return":
		e.Value = HexWord(m.Value)
		if m.Duration != 0 { // else the module took no time
			e.Duration = &m.Duration
		}
	case "refused":
		e = e.Refused(m.Err)
	case "counters":
		e.Hits, e.Nmissed = &m.Probe.Hits, &m.Probe.Missed
	}
	return e
}
