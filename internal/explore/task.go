package explore

import (
	"errors"
	"slices"

	"kprobelab/internal/bounded"
	"kprobelab/kprobes"
	"kprobelab/kprobes/textpoke"
	"kprobelab/x86"
)

// do is an action.
func (t *task) do(a Action) {
	r := t.w.run
	switch a.Verb {
	case "call":
		t.callFunc(a.Name)
	case "unload":
		t.unloadModule(a.Name)
	case "load":
		t.loadModule(a.Name)
	case "settle":
		if err := t.w.k.Settle(); err != nil {
			r.fail(Bug, "settle: %v", err)
		}
	case "poke", "unpoke", "queue", "unqueue", "flush":
		t.locked(func() { t.patch(a) })
	default:
		t.locked(func() { t.change(a) })
	}
}

// locked is an action under kprobe_mutex.
func (t *task) locked(do func()) {
	r := t.w.run
	t.lock()
	do()
	t.unlock()
	if err := t.w.k.Err(); err != nil {
		r.fail(Bug, "%v", err)
	}
}

// lock takes kprobe_mutex, and then text_mutex. Both are one lock here, unless another
// task takes them in the opposite order.
func (t *task) lock() {
	r := t.w.run
	r.stop(pending{kind: "lock", ready: func() bool { return r.holder == nil }, writes: []int{varMutex}})
	r.holder = t
	if t.w.c.Optimize.TextMutexFirst {
		r.stop(pending{kind: "lock text_mutex", ready: func() bool { return r.text == nil }, writes: []int{varMutex}})
		r.text = t
	}
}

func (t *task) unlock() {
	r := t.w.run
	r.touch(varMutex, true)
	r.holder, r.text = nil, nil
}

// change is an action on probes.
func (t *task) change(a Action) {
	r, k := t.w.run, t.w.k
	p := r.named(a.Name)
	for _, o := range r.probes {
		if o == p || a.Verb == "arm-all" || a.Verb == "disarm-all" || a.Verb == "kill-ftrace" || a.Verb == "kill" && o.Func == a.Name {
			o.changing++
			o.epoch++
			defer func() { o.changing--; o.epoch++ }()
		}
	}
	r.touch(varEpoch, true)
	r.touch(varProbe, true)
	defer r.touch(varEpoch, true)
	var err error
	switch a.Verb {
	case "register":
		if m := t.w.moduleAt(p.at); !r.going[m] {
			r.refs = m
		}
		err = r.register(p)
		r.refs = ""
	case "unregister":
		r.unregister(p)
	case "enable":
		err = k.EnableKprobe(p.kp)
		p.on = err == nil
	case "disable":
		err = k.DisableKprobe(p.kp)
		p.on = false
	case "optimization-on", "optimization-off":
		if k.Config().Optprobes() {
			err = k.SetOptimization(a.Verb == "optimization-on")
		}
	case "arm-all", "disarm-all":
		err = k.SetEnabled(a.Verb == "arm-all")
		for _, o := range r.probes {
			o.on = a.Verb == "arm-all" && o.used && !o.kp.Disabled()
		}
	case "livepatch", "unlivepatch":
		err = k.HoldFtraceSite(t.w.program.at(a.Name), a.Verb == "livepatch")
	case "kill-ftrace":
		k.KillFtrace()
		r.killedFtrace = true
		for _, o := range r.probes {
			o.on = o.on && !o.kp.OnFtrace()
		}
	case "kill":
		at := t.w.program.at(a.Name)
		s, _ := t.w.SymbolAt(at)
		gone := x86.Range{Start: at, End: at.Add(int64(s.Size))}
		r.killed = append(r.killed, gone)
		k.KillKprobes(gone)
		for _, o := range r.probes {
			o.on = o.on && !o.kp.Gone()
		}
	}
	switch {
	case err != nil && !a.Refused && !a.Perhaps:
		r.fail(Refused, "%s: %v", a, err)
	case err == nil && a.Refused:
		r.fail(Accepted, "%s: it was accepted", a)
	}
}

func (r *run) named(name string) *probe {
	for _, p := range r.probes {
		if p.Name == name {
			return p
		}
	}
	return nil
}

var errRegistered = errors.New("it is registered already")

func (r *run) register(p *probe) error {
	k := r.w.k
	switch {
	case p.used && !k.Config().Check.Reregistration:
		return errRegistered // the object is in use, and the kernel does not look
	case p.used && p.Return:
		return k.RegisterKretprobe(&p.rp)
	case p.used:
		return k.RegisterKprobe(p.kp)
	}
	p.rp = kprobes.Kretprobe{KP: kprobes.Kprobe{Addr: p.at}, MaxActive: p.Active, DataSize: p.Data}
	delete(r.freed, p.kp)
	if p.Disabled {
		p.kp.Flags = kprobes.FlagDisabled
	}
	if p.Post {
		p.kp.PostHandler = func(*kprobes.Kprobe, *x86.PtRegs, uint64) {
			if r.cur.call.posts != nil {
				r.cur.call.posts[p]++
			}
		}
	}
	p.kp.PreHandler = func(*kprobes.Kprobe, *x86.PtRegs) int {
		r.count(p)
		return 0
	}
	p.rp.Handler = func(*kprobes.Instance, *x86.PtRegs) int {
		p.returns++
		if r.cur.call.returns != nil {
			r.cur.call.returns[p]++
		}
		return 0
	}
	register := func() error { return k.RegisterKprobe(p.kp) }
	if p.Return {
		register = func() error { return k.RegisterKretprobe(&p.rp) }
	}
	if err := register(); err != nil {
		return err
	}
	p.used, p.on = true, !p.kp.Disabled()
	return nil
}

// count notes a hit of a probe.
func (r *run) count(p *probe) {
	p.hits++
	if r.cur.call.hits != nil {
		r.cur.call.hits[p]++
	}
}

// unregister takes a probe out; the caller may free the object then.
func (r *run) unregister(p *probe) {
	if p.Return {
		r.w.k.UnregisterKretprobe(&p.rp)
	} else {
		r.w.k.UnregisterKprobe(p.kp)
	}
	p.used, p.on = false, false
	r.freed[p.kp] = true
}

// patch is an action of another part of the kernel that changes text.
func (t *task) patch(a Action) {
	k := t.w.k
	s := t.w.sites[a.Name]
	var err error
	switch a.Verb {
	case "flush":
		err = k.Text().Finish()
	case "poke", "unpoke":
		if err = s.expected(t.w, a.Verb == "poke"); err != nil {
			break
		}
		err = k.PokeSingle(s.change(a.Verb == "poke"))
	default:
		err = k.Text().Queue(s.change(a.Verb == "queue"))
	}
	if err != nil {
		t.w.run.fail(Bug, "%s: %v", a, err)
	}
}

func (s *site) change(on bool) textpoke.Change {
	if on {
		return textpoke.Change{At: s.at, New: s.jmp, Landing: s.target}
	}
	return textpoke.Change{At: s.at, New: s.nop, Landing: s.at + 5}
}

// worker is the optimizer's. Its timer comes at any time after it was set: the clock is
// then what the timer says, and the worker waits for the mutex.
func (t *task) worker() {
	r, k := t.w.run, t.w.k
	for {
		r.stop(pending{kind: "timer", reads: []int{varMutex}, ready: func() bool {
			_, due := k.WorkerDue()
			return due
		}})
		if at, _ := k.WorkerDue(); at > r.clock {
			r.clock = at
		}
		r.stop(pending{kind: "worker", writes: []int{varMutex}, ready: func() bool {
			at, due := k.WorkerDue()
			return due && at <= r.clock && (r.holder == nil || t.w.c.Optimize.TextMutexFirst) && r.text == nil
		}})
		if t.w.c.Optimize.TextMutexFirst {
			r.text = t
			r.stop(pending{kind: "lock kprobe_mutex", ready: func() bool { return r.holder == nil }, writes: []int{varMutex}})
		}
		r.holder = t
		for running := true; running; {
			switch k.WorkerStep() {
			case kprobes.Idle:
				running = false
			case kprobes.Advanced:
				running = k.WorkerRuns()
			case kprobes.Waiting:
				n := t.w.ended()
				r.stop(pending{kind: "wait for tasks", reads: []int{varTasks}, ready: func() bool { return t.w.ended() != n }})
			}
		}
		t.unlock()
		if err := k.Err(); err != nil {
			r.fail(Bug, "%v", err)
		}
	}
}

// ended counts the calls that have ended.
func (w *world) ended() (n uint64) {
	for _, t := range w.tasks {
		n += t.calls
	}
	return n
}

// Point implements kprobes.Stepper.
func (w *world) Point(p kprobes.Point) {
	r := w.run
	if r.free {
		r.noteFree(p)
		return
	}
	s := pending{kind: p.Kind.String(), at: p.Addr}
	switch p.Kind {
	case kprobes.PointLookup:
		s.reads = []int{varTable, varProbe}
	case kprobes.PointResume:
		s.reads = []int{varProbe}
	case kprobes.PointTable:
		s.writes = []int{varTable, varProbe}
	case kprobes.PointMembers, kprobes.PointFlags, kprobes.PointFree:
		s.writes = []int{varProbe}
	case kprobes.PointModule:
		s.reads = []int{varModule}
	case kprobes.PointAnnounce:
		s.writes = []int{varAnnounce}
	case kprobes.PointGrace:
		r.gracePeriod()
		return
	case kprobes.PointDrain:
		r.cur.drain()
		return
	case kprobes.PointFreed:
		what := "a detour buffer whose probe was"
		if p.Probe != nil {
			what = "a call whose instance of a return probe was"
		}
		r.fail(UseAfterFree, "%s is in %s freed", r.cur.name, what)
		return
	}
	r.stop(s)
	if p.Probe != nil {
		r.alive(p.Probe, s.kind)
	}
	r.noteFree(p)
}

func (r *run) noteFree(p kprobes.Point) {
	if p.Kind != kprobes.PointFree {
		return
	}
	if p.Probe != nil && r.probeOf(p.Probe) == nil {
		r.freed[p.Probe] = true
	}
	if p.Addr != 0 {
		r.slots = append(r.slots, p.Addr)
	}
}

// probeOf is the probe of the scenario that has the object; nil for an aggregator.
func (r *run) probeOf(kp *kprobes.Kprobe) *probe {
	for _, p := range r.probes {
		if p.kp == kp {
			return p
		}
	}
	return nil
}

// alive: the object was not freed.
func (r *run) alive(p *kprobes.Kprobe, what string) {
	if r.freed[p] && r.cur.calling {
		r.fail(UseAfterFree, "%s: %s of the probe at %s, which was freed", r.cur.name, what, r.w.symbolic(p.Addr))
	}
}

// gracePeriod waits for each CPU that may still hold a removed object. With PREEMPTION
// that is a CPU inside a handler, else a CPU inside a call.
func (r *run) gracePeriod() {
	w := r.w
	var reads []int
	for cpu := range w.cpus {
		reads = append(reads, varHandling+cpu)
	}
	r.stop(pending{kind: "grace period", reads: append(slices.Clone(reads), varTasks)})
	left := map[*task]uint64{}
	for _, t := range w.tasks {
		if t != r.cur && t.calling && (!w.c.Preemption || t.trapped+t.preempt > 0) {
			left[t] = t.epoch()
		}
	}
	if len(left) == 0 {
		return
	}
	r.stop(pending{kind: "end of the grace period", reads: append(reads, varTasks), ready: func() bool {
		for t, epoch := range left {
			if t.epoch() == epoch {
				return false
			}
		}
		return true
	}})
}

// epoch changes when the task has passed a quiescent state.
func (t *task) epoch() uint64 {
	if !t.w.c.Preemption {
		return t.calls
	}
	return t.handled
}

// drain is wait_for_kprobe_optimizer, without the mutex.
func (t *task) drain() {
	r, k := t.w.run, t.w.k
	t.unlock()
	t.waitsUnlocked = true
	r.stop(pending{kind: "wait for the worker", writes: []int{varMutex}, ready: func() bool {
		_, due := k.WorkerDue()
		return !due && r.holder == nil
	}})
	r.holder, t.waitsUnlocked = t, false
}

// callFunc calls a function, to its end.
func (t *task) callFunc(name string) {
	r, w := t.w.run, t.w
	if r.free {
		r.fail(Refused, "setup: call %s: nothing runs in the setup", name)
		return
	}
	at := w.program.at(name)
	r.stop(pending{kind: "call", at: at, reads: []int{varEpoch, varModule}, writes: []int{varTasks, varStale + t.cpu, varHandling + t.cpu}})
	if t.inModule = w.moduleAt(at); r.going[t.inModule] {
		return // there is nothing to call
	}
	sp := stackBase.Add(int64(stackSize*(t.n+1)) - 64)
	t.regs = x86.PtRegs{
		DI: uint64(t.n + 1), IP: uint64(at), SP: uint64(sp), CS: x86.KernelCS, SS: x86.KernelDS,
		Flags: x86.FlagIF | x86.FlagFixed, OrigAX: ^uint64(0),
	}
	t.call = r.record()
	t.calling, t.inExec = true, false
	t.push(uint64(magic))
	for n := 0; r.verdict == "" && !t.exited && x86.Addr(t.regs.IP) != magic; n++ {
		if n == bounded.ExploreCall {
			r.fail(Livelock, "%s: %s goes on after %d instructions", t.name, name, n)
			break
		}
		t.step()
	}
	r.stop(pending{kind: t.ending(), at: at, reads: []int{varEpoch}, writes: []int{varTasks, varProbe, varStale + t.cpu, varHandling + t.cpu}})
	if t.exited {
		w.traps.TaskExit(t.n)
	}
	t.calling = false
	t.calls++
	if r.verdict == "" {
		r.judge(t, name)
	}
	t.call = callRecord{}
}

// ending names the way in which a call ends: it returns, or its task ends inside it.
func (t *task) ending() string {
	if t.exited {
		return "exit"
	}
	return "return"
}

func (r *run) record() callRecord {
	c := callRecord{
		epochs: map[*probe]int{}, on: map[*probe]bool{}, hits: map[*probe]int{},
		missed: map[x86.Addr]int{}, passes: map[x86.Addr]int{}, returns: map[*probe]int{}, posts: map[*probe]int{},
	}
	for _, p := range r.probes {
		c.epochs[p], c.on[p] = p.epoch, p.on
		if p.changing > 0 {
			c.epochs[p] = -1
		}
	}
	return c
}

// event is a step of a hit.
func (r *run) event(e kprobes.Event) {
	t := r.cur
	if e.Probe != nil {
		r.alive(e.Probe, e.Kind.String())
	}
	switch e.Kind {
	case kprobes.EventOptimized, kprobes.EventDetour:
		t.detours++
	case kprobes.EventTrap, kprobes.EventPre:
		if e.Kind == kprobes.EventPre && r.first(e.Probe) {
			return // it was chosen in the step before
		}
		r.stop(pending{kind: e.Kind.String(), at: e.Addr, reads: []int{varProbe}})
		if e.Probe != nil {
			r.alive(e.Probe, e.Kind.String())
		}
	case kprobes.EventInstance:
		r.touch(varProbe, true)
		r.count(r.probeOf(e.Probe))
	case kprobes.EventReturnHandler:
		r.stop(pending{kind: e.Kind.String(), at: e.Addr, reads: []int{varProbe}, writes: []int{varProbe}})
		r.alive(e.Probe, e.Kind.String())
	case kprobes.EventMissed, kprobes.EventNoInstance, kprobes.EventInNMI:
		r.touch(varProbe, true)
		if t.call.missed != nil {
			t.call.missed[e.Probe.Addr]++
		}
	case kprobes.EventPoke:
		t.pokes++
	}
}

// first: the probe is the only one at its address, or the aggregate's first.
func (r *run) first(p *kprobes.Kprobe) bool {
	list := r.w.k.Members(p.Addr)
	return len(list) == 0 || list[0] == p
}
