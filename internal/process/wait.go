package process

import (
	"encoding/binary"
	"slices"

	"kprobelab/errno"
	"kprobelab/x86"
)

// waitFor holds the arguments of a waiting wait4.
type waitFor struct {
	pid     int32 // of one child; -1, 0 and the group's number are for all
	options uint64
	status  x86.Addr // where it goes, 0 for nowhere
	usage   x86.Addr
}

// Options of wait4 (WNOHANG, WUNTRACED, WCONTINUED, __WNOTHREAD, __WALL, __WCLONE).
const (
	waitNoHang    = 1
	waitStopped   = 2
	waitContinued = 8
	waitNoThread  = 0x20000000
	waitAll       = 0x40000000
	waitClone     = 0x80000000
	waitOptions   = waitNoHang | waitStopped | waitContinued | waitNoThread | waitAll | waitClone
	usageSize     = 144
)

// of reports whether a child is waited for (eligible_child).
func (w *waitFor) of(c *group) bool {
	if w.pid > 0 && c.pid != int(w.pid) || w.pid < -1 && w.pid != -FirstPID {
		return false
	}
	return w.options&waitAll != 0 || (c.exitSignal != sigCHLD) == (w.options&waitClone != 0)
}

// ready returns a child whose status wait4 can report, nil if there is none; any is true if a child
// can be waited for.
func (g *group) ready(w *waitFor) (child *group, any bool) {
	for _, c := range g.children {
		if !w.of(c) {
			continue
		}
		any = true
		if c.ended || c.stopped && !c.told && w.options&waitStopped != 0 {
			return c, true
		}
	}
	return nil, any
}

// waitEnds reports that a wait4 would return now.
func (g *group) waitEnds(w *waitFor) bool {
	c, any := g.ready(w)
	return c != nil || !any
}

// waited is the result of a wait4 that returns.
func (p *Process) waited(w *waitFor) uint64 {
	c, any := p.ready(w)
	switch {
	case !any:
		return failed(errno.ECHILD)
	case c == nil:
		return 0
	case c.ended:
		p.children = slices.DeleteFunc(p.children, func(o *group) bool { return o == c })
	}
	c.told = true
	if w.status != 0 && p.Write(w.status, binary.LittleEndian.AppendUint32(nil, c.status)) != nil ||
		w.usage != 0 && p.Write(w.usage, make([]byte, usageSize)) != nil {
		return failed(errno.EFAULT)
	}
	return uint64(c.pid)
}

func (p *Process) wait4(r *x86.PtRegs) (uint64, error) {
	w := &waitFor{pid: int32(r.DI), options: r.DX & 0xffffffff, status: x86.Addr(r.SI), usage: x86.Addr(r.R10)}
	if w.options&^waitOptions != 0 {
		return 0, errno.EINVAL
	}
	if p.waitEnds(w) || w.options&waitNoHang != 0 {
		return p.waited(w), nil
	}
	nr := r.AX
	return p.sleepFor(sleep{child: w, again: &nr}, r)
}
