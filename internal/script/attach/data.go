package attach

import (
	"errors"
	"fmt"

	"kprobelab/errno"
	"kprobelab/internal/script/host"
	"kprobelab/x86"
)

// debugRegisters is how many watchpoints an x86 processor has.
const debugRegisters = 4

// wordSize is the length that the kernel wants of a watchpoint of an instruction (sizeof(long)).
const wordSize = 8

// watch sets a watchpoint as the kernel does for all CPUs (register_wide_hw_breakpoint): what no
// debug register can have is refused, although a watchpoint here could.
func (r *Runner) watch(p *planted) error {
	w := *p.Probe.Watched
	w.Len = watchable(w.Len)
	taken := 0
	for _, other := range r.list {
		if other.Probe.Kind == host.Data && other.remove != nil {
			taken++
		}
	}
	switch {
	case r.o.Watch == nil:
		return errors.New("watchpoints need an image")
	case w.Symbol == "" && w.Addr == 0:
		return errno.ENOENT
	case taken >= debugRegisters:
		return fmt.Errorf("%w: the %d debug registers are taken", errno.ENOSPC, debugRegisters)
	case w.Executes && w.Len != wordSize:
		return fmt.Errorf("%w: a watchpoint of an instruction has %d bytes", errno.EINVAL, wordSize)
	case !w.Executes && w.Addr&uint64(w.Len-1) != 0:
		return fmt.Errorf("%w: a debug register's address is a multiple of its length, %d", errno.EINVAL, w.Len)
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

// watchable is the length of a debug register that stap takes for a script's.
func watchable(n uint32) uint32 {
	switch n {
	case 1, 2, 4:
		return n
	case 3:
		return 4
	}
	return 8
}
