package report

import (
	"kprobelab/errno"
	"kprobelab/internal/tracing/definition"
	"kprobelab/kprobes/rule"
)

// Definer is a Kernel that has debugging information: it turns a probe in the words of the
// source into definitions for kprobe_events, one for each place.
type Definer interface {
	Definitions(line definition.Line) ([]definition.Line, error)
}

// said answers for a probe in the words of the source: with the first place that does not
// take it, or else with the first place.
func (k *checker) said(p *Probe) (c CheckCell) {
	refuse := func(why string) CheckCell {
		c = CheckCell{Found: FoundAbsent}
		c.refuse(errno.EINVAL, rule.Line, why)
		c.Register, c.Kretprobe, c.Events = c.Errno, c.Errno, c.Errno
		return c
	}
	d, ok := k.Kernel.(Definer)
	if !ok {
		return refuse("it needs debugging information, which this kernel does not have")
	}
	lines, err := d.Definitions(p.line)
	if err != nil {
		return refuse(err.Error())
	}
	for i, line := range lines {
		one := textProbe(line)
		cell := k.cell(&one)
		if i == 0 || c.accepted() && !cell.accepted() {
			c = cell
		}
	}
	return c
}
