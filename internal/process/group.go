package process

import (
	"encoding/binary"
	"slices"

	"kprobelab/x86"
)

// group is a process: threads that share all (a thread group).
type group struct {
	*Space
	signals
	pid     int
	program *File
	// threads: the first is its first thread, also when that has ended.
	threads  []*thread
	exitCode int // of the first thread
	open     map[int]descriptor
	// args are its arguments, comm the name that it has set, "" for its program's name.
	args []string
	env  []string
	comm string
	cwd  string
	// cwdFolder is the folder of cwd, which may have been removed since; nil for the root.
	cwdFolder *folder
	// umask is the set of permission bits that are cleared in files and folders that it makes.
	umask uint32
	// parent is nil if the parent has ended. children are the children not yet waited for.
	parent   *group
	children []*group
	// exitSignal is the signal that the parent gets when the process ends; none for the number of
	// no signal.
	exitSignal Signal
	// status is the status that wait4 returns once ended is true.
	ended  bool
	status uint32
	// stopped: a signal has stopped it. told: the parent has since waited for it.
	stopped, told bool
	// usesVM: its parent waits until it ends or starts another program (vfork).
	usesVM bool
}

// FirstPID is the number of the first process and of its first thread.
const FirstPID = 100

// initPID is the parent's number of a process without a parent.
const initPID = 1

// newGroup makes the first process.
func (p *Process) newGroup(s *Space) {
	p.lastTID = FirstPID
	t := &thread{tid: FirstPID}
	t.stack.flags = stackNone
	g := &group{Space: s, pid: FirstPID, program: p.c.Program, threads: []*thread{t}, open: p.standard(), args: p.c.Args, env: p.c.Env, cwd: "/", umask: 022, exitSignal: sigCHLD}
	g.actions = &actions{}
	t.group = g
	p.group, p.thread, p.groups = g, t, []*group{g}
}

// PID is the running process.
func (p *Process) PID() int { return p.group.pid }

// Spaces returns the address spaces of all processes; after the last has ended, that one's space.
func (p *Process) Spaces() (list []*Space) {
	if len(p.groups) == 0 {
		return []*Space{p.Space}
	}
	for _, g := range p.groups {
		if !slices.Contains(list, g.Space) {
			list = append(list, g.Space)
		}
	}
	return list
}

// PIDs are the processes of a space.
func (p *Process) PIDs(s *Space) (list []int) {
	for _, g := range p.groups {
		if g.Space == s {
			list = append(list, g.pid)
		}
	}
	return list
}

func (p *Process) byPID(pid int) *group {
	for _, g := range p.groups {
		if g.pid == pid {
			return g
		}
	}
	return nil
}

// end ends the running process (do_exit of all its threads).
func (p *Process) end(e Exit, regs *x86.PtRegs) {
	e.Regs = *regs
	g := p.group
	for _, t := range g.threads {
		if !t.ended {
			p.endThread(t)
		}
	}
	g.ended, g.status = true, uint32(e.Code&0xff)<<8|uint32(e.Signal)
	p.groups = slices.DeleteFunc(p.groups, func(o *group) bool { return o == g })
	if len(p.groups) > 0 {
		p.leaveSpace(g) // else it stays, to be looked at
	}
	for _, c := range g.children {
		c.parent = nil
	}
	g.children = nil
	// A process that was not waited for keeps its status only.
	g.open, g.args, g.env, g.program = nil, nil, nil, &File{Name: g.program.Name}
	if g.pid == FirstPID {
		p.first = &e
	}
	p.tellParent(g)
	if len(p.groups) == 0 {
		p.finish(p.first, regs)
	}
}

// endThread ends a thread (mm_release).
func (p *Process) endThread(t *thread) {
	if p.c.Tracer != nil {
		p.c.Tracer.ThreadEnd(t.tid)
	}
	t.ended = true
	if at := t.atEnd; at != 0 && (p.alive() > 0 || p.Space.users > 1) && p.Write(at, make([]byte, 4)) == nil {
		p.wakeFutex(at, 1, ^uint32(0))
	}
}

// leaveSpace detaches a process from its space, when it ends or starts another program.
func (p *Process) leaveSpace(g *group) {
	g.usesVM = false
	if s := g.Space; s.leave() && p.c.Tracer != nil {
		p.c.Tracer.SpaceEnd(s)
	}
}

// stopStatus is the status of a stop, and the mask of the signal in the status of a killed process.
// There are no core dumps.
const stopStatus = 0x7f

// Codes of SIGCHLD's siginfo (CLD_EXITED, …).
const (
	childExited  = 1
	childKilled  = 2
	childStopped = 5
)

// tellParent sends the signal of an end or a stop, and lets init take the process
// where the parent does not want to know (do_notify_parent).
func (p *Process) tellParent(g *group) {
	if g.parent == nil {
		return
	}
	info := infoFrom(sigCHLD, childExited, uint32(g.pid))
	status := g.status >> 8
	switch {
	case !g.ended:
		info.code = childStopped
	case g.status&stopStatus != 0:
		info.code, status = childKilled, g.status&stopStatus
	}
	binary.LittleEndian.PutUint32(info.body[8:], status)
	a := &g.parent.actions[sigCHLD]
	if g.ended && g.exitSignal == sigCHLD && (a.handler == handlerIgnore || a.flags&actionNoChildWait != 0) {
		g.parent.children = slices.DeleteFunc(g.parent.children, func(o *group) bool { return o == g })
	}
	if info.signal = g.exitSignal; !g.ended {
		if info.signal = sigCHLD; a.flags&actionNoChildStop != 0 {
			return
		}
	}
	if info.signal.valid() {
		_ = g.parent.send(info, nil) // a signal that finds no room is lost
	}
}
