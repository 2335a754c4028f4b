package process

import (
	"encoding/binary"
	"fmt"
	"maps"

	"kprobelab/errno"
	"kprobelab/internal/bounded"
	"kprobelab/x86"
)

var errProcesses = fmt.Errorf("the program has made more than %d processes", bounded.Processes)

// Flags of clone.
const (
	cloneSignal       = 0xff
	cloneVM           = 0x100
	cloneFS           = 0x200
	cloneFiles        = 0x400
	cloneSighand      = 0x800
	cloneVfork        = 0x4000
	cloneThread       = 0x10000
	cloneSysvsem      = 0x40000
	cloneSetTLS       = 0x80000
	cloneParentTID    = 0x100000
	cloneChildClear   = 0x200000
	cloneDetached     = 0x400000
	cloneChildSetTID  = 0x1000000
	cloneIO           = 0x80000000
	cloneClearSighand = 0x100000000

	cloneKnown = cloneVM | cloneFS | cloneFiles | cloneSighand | cloneVfork | cloneThread | cloneSysvsem | cloneSetTLS |
		cloneParentTID | cloneChildClear | cloneDetached | cloneChildSetTID | cloneIO | cloneClearSighand
)

// newTask holds the arguments of clone (struct kernel_clone_args).
type newTask struct {
	flags               uint64
	exitSignal          Signal
	stack, tls          uint64
	parentTID, childTID x86.Addr
}

func (p *Process) clone(r *x86.PtRegs) (uint64, error) {
	return p.newTask(newTask{
		flags: r.DI & 0xffffffff &^ cloneSignal, exitSignal: Signal(r.DI & cloneSignal), stack: r.SI, tls: r.R8, parentTID: x86.Addr(r.DX), childTID: x86.Addr(r.R10),
	}, r)
}

// Sizes of struct clone_args: of its first version, and the most that a kernel reads.
const (
	cloneArgs    = 64
	maxCloneArgs = PageSize
)

func (p *Process) clone3(r *x86.PtRegs) (uint64, error) {
	switch {
	case r.SI > maxCloneArgs:
		return 0, errno.E2BIG
	case r.SI < cloneArgs:
		return 0, errno.EINVAL
	}
	b := make([]byte, r.SI)
	if err := p.Read(x86.Addr(r.DI), b); err != nil {
		return 0, err
	}
	word := func(n int) uint64 { return binary.LittleEndian.Uint64(b[8*n:]) }
	flags, signal, stack, size := word(0), word(4), word(5), word(6)
	switch {
	case signal > uint64(lastSig), flags&(cloneSignal|cloneDetached) != 0, (stack == 0) != (size == 0), flags&(cloneThread) != 0 && signal != 0,
		flags&cloneSighand != 0 && flags&cloneClearSighand != 0:
		return 0, errno.EINVAL
	case len(b) > cloneArgs && (word(8) != 0 || len(b) > cloneArgs+8 && word(9) != 0):
		p.unknown(r.AX) // chosen numbers
		return 0, errno.ENOSYS
	}
	return p.newTask(newTask{
		flags: flags, exitSignal: Signal(signal), stack: stack + size, tls: word(7), parentTID: x86.Addr(word(3)), childTID: x86.Addr(word(2)),
	}, r)
}

// newTask makes a thread or a process (copy_process).
func (p *Process) newTask(c newTask, r *x86.PtRegs) (uint64, error) {
	flags, tasks := c.flags, 0
	for _, g := range p.groups {
		tasks += len(g.threads) + len(g.children)
	}
	switch {
	case flags&cloneThread != 0 && flags&cloneSighand == 0, flags&cloneSighand != 0 && flags&cloneVM == 0:
		return 0, errno.EINVAL
	case flags&^cloneKnown != 0: // namespaces, traced children
		p.unknown(r.AX)
		return 0, errno.ENOSYS
	case flags&cloneSetTLS != 0 && c.tls >= uint64(userTop):
		return 0, errno.EPERM
	case tasks >= bounded.Threads:
		return 0, errno.EAGAIN
	}
	g := p.group
	if flags&cloneThread == 0 {
		if p.made++; p.made > bounded.Processes {
			p.giveUp(errProcesses, r)
			return 0, nil
		}
		var err error
		if g, err = p.newProcess(&c); err != nil {
			return 0, err
		}
	}
	p.outside(p.own+floatSave, r, func(regs *x86.PtRegs) { p.begin(g, &c, regs) })
	return 0, nil
}

// newProcess is a process without threads, as clone leaves it.
func (p *Process) newProcess(c *newTask) (*group, error) {
	g := &group{
		Space: p.Space, program: p.program, parent: p.group, open: p.open, args: p.args, env: p.env, comm: p.comm, cwd: p.cwd, cwdFolder: p.cwdFolder, umask: p.umask, exitSignal: c.exitSignal, usesVM: c.flags&cloneVfork != 0,
	}
	if c.flags&cloneVM == 0 {
		s, err := p.Space.fork()
		if err != nil {
			return nil, err
		}
		g.Space = s
	} else {
		p.Space.users++
	}
	if c.flags&cloneFiles == 0 {
		g.open = maps.Clone(p.open)
	}
	if g.actions = p.actions; c.flags&cloneSighand == 0 {
		copied := *p.actions
		g.actions = &copied
	}
	if c.flags&cloneClearSighand != 0 {
		g.actions.reset()
	}
	return g, nil
}

// begin adds the new task, whose registers are the running one's.
func (p *Process) begin(g *group, c *newTask, regs *x86.PtRegs) {
	p.lastTID++
	t := &thread{group: g, tid: p.lastTID, floats: p.floats512(), regs: *regs, fsBase: p.fsBase}
	t.mask, t.stack.flags = p.mask, stackNone
	if c.flags&(cloneVM|cloneVfork) != cloneVM {
		t.stack = p.stack
	}
	if t.regs.AX = 0; c.stack != 0 {
		t.regs.SP = c.stack
	}
	if c.flags&cloneSetTLS != 0 {
		t.fsBase = c.tls
	}
	if c.flags&cloneChildClear != 0 {
		t.atEnd = c.childTID
	}
	id := binary.LittleEndian.AppendUint32(nil, uint32(t.tid))
	if c.flags&cloneParentTID != 0 {
		_ = p.Write(c.parentTID, id) // the kernel does not look, either
	}
	if c.flags&cloneChildSetTID != 0 {
		_ = g.Write(c.childTID, id)
	}
	g.threads = append(g.threads, t)
	regs.AX = uint64(t.tid)
	if c.flags&cloneThread != 0 {
		return
	}
	g.pid = t.tid
	p.groups = append(p.groups, g)
	p.children = append(p.children, g)
	if p.c.Tracer != nil {
		p.c.Tracer.Forked(t.tid, g.Space, c.flags&cloneVfork != 0)
	}
	if g.usesVM {
		p.asleep = &sleep{vfork: g}
	}
}

func (p *Process) parentPID(*x86.PtRegs) (uint64, error) {
	if p.parent == nil {
		return initPID, nil
	}
	return uint64(p.parent.pid), nil
}
