package process

import (
	"encoding/binary"
	"maps"

	"kprobelab/errno"
	"kprobelab/internal/bounded"
	"kprobelab/x86"
)

// strings reads an array of pointers to strings, up to a null; 0 is none.
func (p *Process) strings(at uint64) (list []string, err error) {
	for total := 0; at != 0; at += 8 {
		var b [8]byte
		if err := p.Read(x86.Addr(at), b[:]); err != nil {
			return nil, err
		}
		to := binary.LittleEndian.Uint64(b[:])
		if to == 0 {
			break
		}
		s, err := p.text(x86.Addr(to), bounded.ProgramArguments)
		if err == errno.EINVAL {
			err = errno.E2BIG
		}
		if err != nil {
			return nil, err
		}
		if total += len(s) + 1; total > bounded.ProgramArguments || len(list) >= bounded.ProgramStrings {
			return nil, errno.E2BIG
		}
		list = append(list, s)
	}
	return list, nil
}

func (p *Process) execve(r *x86.PtRegs) (uint64, error) {
	return p.execveAt(1<<64+atCWD, r.DI, r)
}

func (p *Process) execveAt(dir, at uint64, r *x86.PtRegs) (uint64, error) {
	f, err := p.named(dir, at)
	if err != nil {
		return 0, err
	}
	args, err := p.strings(r.SI)
	if err != nil {
		return 0, err
	}
	env, err := p.strings(r.DX)
	if err != nil {
		return 0, err
	}
	if len(args) == 0 {
		args = []string{""} // since 5.18, and 5.10.110
	}
	l, err := p.prepare(f, args)
	if err != nil {
		return 0, err
	}
	p.alone()
	g := p.group
	p.leaveSpace(g)
	g.Space = p.ram.space()
	if err := g.Space.enter(); err != nil {
		return 0, err
	}
	if p.c.Tracer != nil {
		p.c.Tracer.Executed()
	}
	g.program, g.args, g.env, g.comm = f, l.args, env, ""
	g.exitSignal = sigCHLD
	actions := *g.actions
	g.actions = &actions
	g.actions.reset()
	g.open = maps.Clone(g.open)
	for fd, o := range g.open {
		if o.closes {
			delete(g.open, fd)
		}
	}
	t := p.thread
	t.stack, t.atEnd, t.fsBase = altStack{flags: stackNone}, 0, 0
	t.interrupted = nil
	if err := p.load(l, env, r); err != nil {
		p.Force(SIGSEGV) // there is no way back
		return 0, err
	}
	p.restartFloats(r)
	return 0, nil
}

// alone ends the other threads of the process; the running one gets the first thread's number
// (de_thread).
func (p *Process) alone() {
	for _, t := range p.threads {
		if t != p.thread && !t.ended {
			p.endThread(t)
		}
	}
	if p.thread != p.threads[0] {
		if p.c.Tracer != nil {
			p.c.Tracer.ThreadEnd(p.tid)
		}
		p.tid = p.PID()
	}
	p.threads = []*thread{p.thread}
}

// restartFloats gives a new program its float registers and FS base.
func (p *Process) restartFloats(regs *x86.PtRegs) {
	_ = p.m.WriteMem(p.float, initialFloat()) // it is the machine's own
	p.outside(p.own+switchCode, regs, func(*x86.PtRegs) {})
	const msrFSBase = 0xc0000100
	regs.CX, regs.AX, regs.DX = msrFSBase, 0, 0
}

// actions are a process's signal actions, indexed by signal.
type actions [lastSig + 1]action

// reset sets every handler to the default; ignored signals stay ignored (flush_signal_handlers).
func (a *actions) reset() {
	for s := range a {
		if a[s].handler != handlerIgnore {
			a[s].handler = handlerDefault
		}
		a[s] = action{handler: a[s].handler}
	}
}
