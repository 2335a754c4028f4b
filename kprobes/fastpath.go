package kprobes

import "kprobelab/x86"

// FastPath lets guest code run handlers in guest code without a call into Go.
// The subsystem is whole without one: then a hit calls each handler through Go.
// A FastPath changes how long a hit takes, and nothing else.
type FastPath interface {
	// Hit says that a hit of a table entry came to Go by this way, and that
	// guest code may take the next one. key is the entry's address for WayInt3,
	// the address of the int3 that follows the copy for WayStep, the buffer's
	// number for WayDetour, and the address past the site for WayTracer.
	Hit(way Way, entry *Kprobe, key uint64)
	// Change precedes every change of what is registered, enabled or observed:
	// the next hit of every probe comes to Go, and all that the FastPath holds of
	// the subsystem's comes back, but for an instance whose handler guest code
	// runs.
	Change()
	// Enter says that Go handles a trap or a call-out of a CPU, and Leave that
	// it is done; they are nested as the traps are. In between guest code of
	// that CPU leaves every hit to Go, and what the task has pending is the
	// subsystem's; -1 is no task. Leave gets what Enter returned, or Held{} where
	// what guest code was running has ended with its task.
	Enter(cpu, task int) Held
	Leave(cpu int, h Held)
}

// Held is what guest code was doing on a CPU.
type Held struct {
	// Probe is the table entry whose handlers it runs for Task, or the entry
	// probe of a return probe whose handler it runs; nil for none.
	Probe *Kprobe
	Task  int
	// Word is the FastPath's own.
	Word uint64
}

// SetFastPath says how to make the FastPath when the first probe with handlers
// in guest code is registered. It may return nil where it is of no use.
func (k *Kprobes) SetFastPath(make func(Inside) (FastPath, error)) { k.guest.makeFast = make }

// learn is for the hit path: it costs a nil check where there is no FastPath.
func (k *Kprobes) learn(way Way, entry *Kprobe, key uint64) {
	if k.fast != nil && k.observe == nil {
		k.fast.Hit(way, entry, key)
	}
}

// changeFast is FastPath.Change where there is one.
func (k *Kprobes) changeFast() {
	if k.fast != nil {
		k.fast.Change()
	}
}

// arrive is the first thing that Go does at a trap or a call-out: what happened
// since without Go becomes the CPU's state. depart is the last.
func (k *Kprobes) arrive() (*cpuState, Held) {
	n := k.cpuNumber()
	if k.fast == nil {
		return k.settle(n), Held{}
	}
	return k.enterFast(n, k.task())
}

func (k *Kprobes) depart(cpu *cpuState, h Held) {
	if k.fast != nil {
		k.leaveFast(cpu, k.cpuNumber(), h)
	}
}

// enterFast makes the probe whose handler guest code runs the one that the CPU
// handles, so that a hit in it is a nested one. leaveFast ends that, unless the
// instruction of a nested probe is to be executed first.
func (k *Kprobes) enterFast(n, task int) (*cpuState, Held) {
	cpu, h := k.settle(n), k.fast.Enter(n, task)
	if h.Probe != nil && cpu.current == nil {
		cpu.current, cpu.status, cpu.ool = h.Probe, HitActive, nil
		cpu.way, cpu.task = WayDetour, h.Task
	}
	return cpu, h
}

func (k *Kprobes) leaveFast(cpu *cpuState, n int, h Held) {
	if h.Probe != nil && cpu.current == h.Probe && cpu.status != Reenter {
		cpu.current = nil
	}
	k.fast.Leave(n, h)
}

// inGuest is what guest code does on a CPU now.
func (k *Kprobes) inGuest(n int) Held {
	h := k.fast.Enter(n, -1)
	k.fast.Leave(n, h)
	return h
}

// takeHome has all that a task has pending in the list here.
func (k *Kprobes) takeHome(task int) {
	if k.fast != nil {
		n := k.cpuNumber()
		k.fast.Leave(n, k.fast.Enter(n, task))
	}
}

// Inside is what a FastPath may use of the subsystem beside its methods.
type Inside struct{ *Kprobes }

// Machine is the subsystem's machine.
func (in Inside) Machine() Machine { return in.m }

// Members are the probes of a table entry, newest first.
func (in Inside) Members(entry *Kprobe) []*Kprobe { return in.members(entry) }

// Entry is the table entry of a probe, nil where it is not registered.
func (in Inside) Entry(p *Kprobe) *Kprobe { return in.entryOf(p) }

// Boosts reports whether a table entry's copy goes on by itself.
func (in Inside) Boosts(entry *Kprobe) bool { return in.boosts(entry, entry.ool) }

// Kretprobe is the return probe that p is the entry of, nil for none.
func (in Inside) Kretprobe(p *Kprobe) *Kretprobe { return p.kret }

// Callback is the function that detour buffers, the tracer's trampolines or the
// return trampoline call, 0 where there is none yet.
func (in Inside) Callback(way Way) x86.Addr {
	switch way {
	case WayDetour:
		return in.opt.callback
	case WayTracer:
		return in.ftrace.handler
	case WayReturn:
		return in.kret.callout
	}
	return 0
}

// SetCallback has them call another function. Detour buffers that stand already
// go on calling the old one.
func (in Inside) SetCallback(way Way, at x86.Addr) error {
	switch way {
	case WayDetour:
		in.opt.callback = at
	case WayTracer:
		in.ftrace.handler = at
		for _, ops := range []*ftraceOps{&in.ftrace.plain, &in.ftrace.ipmodify} {
			if ops.trampoline != 0 {
				if err := in.m.PokeText(ops.trampoline, assemble(ftraceParts, ops.trampoline, at)); err != nil {
					return err
				}
			}
		}
	case WayReturn:
		parts := plainParts
		if in.c.Kret.Rethook {
			parts = rethookParts
		}
		return in.m.PokeText(in.kret.trampoline, assemble(parts, in.kret.trampoline, at))
	}
	return nil
}

// PlaceCallbacks makes those of WayTracer and WayReturn, where they are not there
// yet.
func (in Inside) PlaceCallbacks() error {
	if err := in.placeFtraceHandler(); err != nil {
		return err
	}
	return in.placeTrampoline()
}

// Node is an instance's guest memory, 0 where its probe's handlers are in Go.
func (in Inside) Node(i *Instance) x86.Addr { return i.node }

// Lend gives away all free instances of a return probe.
func (in Inside) Lend(rp *Kretprobe) (list []*Instance) {
	for i := in.take(rp.pool); i != nil; i = in.take(rp.pool) {
		list = append(list, i)
	}
	rp.pool.lent += len(list)
	return list
}

// TakeBack makes a lent instance free again.
func (in Inside) TakeBack(i *Instance) {
	i.pool.lent--
	in.recycle(i)
}

// Pend makes a lent instance a task's newest pending call.
func (in Inside) Pend(i *Instance, task int, ret, frame x86.Addr) {
	i.pool.lent--
	i.Task, i.RetAddr, i.frame = task, ret, frame
	in.push(i)
}

// Resume goes on after the pre handlers of a hit by int3, which returned ret.
func (in Inside) Resume(entry *Kprobe, ret int32, regs *x86.PtRegs) {
	cpu := in.settle(in.cpuNumber())
	in.begin(cpu, entry, regs)
	cpu.status = HitActive
	cpu.come(WayInt3, regs)
	cpu.task = in.task()
	if ret != 0 {
		cpu.current = nil
		return
	}
	in.setupStep(cpu, entry, regs, false)
}

// EndStep ends a step at the int3 that follows the copy, as if there were no
// post handler. It reports whether this CPU was stepping there.
func (in Inside) EndStep(regs *x86.PtRegs) bool {
	cpu := in.cpu()
	if cpu.status != HitSS || !in.endsStep(cpu, regs) {
		return false
	}
	in.endStep(cpu, regs)
	cpu.current = nil
	return true
}

// Fail records an error for Kprobes.Err.
func (in Inside) Fail(err error) { in.fail(err) }
