package run

import (
	"errors"

	"kprobelab/errno"
	"kprobelab/kprobes/probepoint"
	"kprobelab/machine"
	"kprobelab/watch"
)

func (e *RefusedProbe) record() Record { return of("refused", &e.Probe).Refused(e.Err) }

// Refused adds why a probe is refused.
func (r Record) Refused(err error) Record {
	r.Errno, r.Error = -int(errno.Of(err)), err.Error()
	var refusal *probepoint.Refusal
	if errors.As(err, &refusal) {
		r.Rule = refusal.Rule.String()
		if refusal.Addr != 0 {
			r.Addr = refusal.Addr.String()
		}
	}
	return r
}

func (e *Accessed) record() Record {
	r := of("watch", e.Probe).At(e.Where).Registers(e.Regs)
	r.Access = watch.Access(e.Hit.Kinds)
	if e.Hit.Kinds != machine.WatchExec {
		r.Old, r.New = HexWord(e.Hit.Old), HexWord(e.Hit.New)
	}
	return r
}
