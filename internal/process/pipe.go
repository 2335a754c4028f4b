package process

import (
	"slices"

	"kprobelab/errno"
	"kprobelab/internal/bounded"
	"kprobelab/x86"
)

// pipeSize is the capacity of a pipe in bytes; pipeAtomic is the length up to which a write goes in whole (PIPE_BUF).
const (
	pipeSize   = 64 << 10
	pipeAtomic = PageSize
)

// pipe is a pipe with the bytes that were written and not read.
type pipe struct {
	b     []byte
	inode uint64
}

// pipeEnd is the reading or the writing end of a pipe.
type pipeEnd struct {
	*pipe
	writes bool
}

// has reports whether a process has the pipe's other end open.
func (o *pipeEnd) other(p *Process) bool {
	for _, g := range p.groups {
		for _, d := range g.open {
			if e, is := d.object.(*pipeEnd); is && e.pipe == o.pipe && e.writes != o.writes {
				return true
			}
		}
	}
	return false
}

func (o *pipeEnd) read(p *Process, _ *int64, n int) ([]byte, error) {
	switch {
	case o.writes:
		return nil, errno.EBADF
	case len(o.b) == 0 && n > 0 && o.other(p):
		return nil, errWait
	}
	b := slices.Clone(o.b[:min(n, len(o.b))])
	o.b = o.b[len(b):]
	if len(o.b) == 0 {
		o.pipe.b = nil
	}
	return b, nil
}

func (o *pipeEnd) write(p *Process, _ *int64, b []byte) (int, error) {
	room := pipeSize - len(o.b)
	switch {
	case !o.writes:
		return 0, errno.EBADF
	case !o.other(p):
		return 0, errno.EPIPE
	case len(b) <= pipeAtomic && len(b) > room:
		return 0, errWait
	}
	n := min(len(b), room)
	o.pipe.b = append(o.pipe.b, b[:n]...)
	if n < len(b) {
		return n, errWait
	}
	return n, nil
}

func (o *pipeEnd) ready(p *Process) (events uint32) {
	other := o.other(p)
	switch {
	case o.writes && !other:
		return pollOut | pollErr
	case o.writes && pipeSize-len(o.b) >= pipeAtomic:
		return pollOut
	case o.writes:
		return 0
	case !other:
		events = pollHup
	}
	if len(o.b) > 0 {
		events |= pollIn
	}
	return events
}

func (o *pipeEnd) attributes(*Process) status {
	return status{mode: modePipe | 0600, inode: o.inode}
}

func (p *Process) makePipe(at, flags uint64) (uint64, error) {
	if flags&^(openCloseExec|openNonBlock) != 0 {
		return 0, errno.EINVAL
	}
	if p.pipes() >= bounded.Pipes {
		return 0, errno.ENFILE
	}
	p.lastInode++
	q := &pipe{inode: p.lastInode}
	var fds [2]uint64
	for i := range fds {
		d := &description{object: &pipeEnd{q, i == 1}, flags: uint64(i) | flags&openNonBlock}
		fd, err := p.install(d, 0, flags&openCloseExec != 0)
		if err != nil {
			if i == 1 {
				delete(p.open, int(fds[0]))
			}
			return 0, err
		}
		fds[i] = fd
	}
	if err := p.putWord(at, fds[0]|fds[1]<<32); err != nil {
		delete(p.open, int(fds[0]))
		delete(p.open, int(fds[1]))
		return 0, err
	}
	return 0, nil
}

// pipes returns the number of open pipes.
func (p *Process) pipes() int {
	set := map[*pipe]bool{}
	for d := range p.opened() {
		if e, is := d.object.(*pipeEnd); is {
			set[e.pipe] = true
		}
	}
	return len(set)
}

func (p *Process) pipe2(r *x86.PtRegs) (uint64, error) { return p.makePipe(r.DI, r.SI) }
