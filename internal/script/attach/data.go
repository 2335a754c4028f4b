package attach

import (
	"errors"

	"kprobelab/errno"
	"kprobelab/x86"
)

// watch sets a watchpoint of data or of an instruction.
func (r *Runner) watch(p *planted) error {
	w := *p.Probe.Watched
	w.Len = watchable(w.Len)
	switch {
	case r.o.Watch == nil:
		return errors.New("watchpoints need an image")
	case w.Symbol == "" && w.Addr == 0:
		return errno.ENOENT
	}
	var err error
	p.remove, err = r.o.Watch(&w, func(regs *x86.PtRegs) {
		if !w.Target || r.hit.inTarget() {
			r.entered(p, regs)
		}
	})
	if err == nil {
		p.How = "watchpoint"
	}
	return err
}

// watchable returns the debug register's length that stap uses for a script's length of n bytes.
func watchable(n uint32) uint32 {
	switch n {
	case 1, 2, 4:
		return n
	case 3:
		return 4
	}
	return 8
}
